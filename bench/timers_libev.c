/* SPDX-License-Identifier: MIT */
/*
 * One timer of libev for each device, which each heartbeat arms again: ev_timer_again() on its 4-ary heap.
 *
 *     timers_libev DEVICES HEARTBEATS
 *
 * The program is as fast as possible: the heartbeat refers to the watcher itself, so there is no look-up; the loop's
 * time is updated once in 32 heartbeats; the watchers are in one array, in huge pages.
 */
#include <ev.h>
#include <stdlib.h>

#include "common.h"

#define BATCH   32
#define TIMEOUT 3600.0

static void on_timeout(struct ev_loop *loop, ev_timer *timer, int what)
{
	(void)loop;
	(void)timer;
	(void)what;
	abort();
}

struct race {
	struct ev_loop *loop;
	ev_timer *timers;
	uint32_t n; /* devices */
};

/* What a heartbeat costs, in ns. */
static double run(struct race *r, const uint32_t *order, uint32_t beats)
{
	int64_t began = bench_ns();
	for (uint32_t k = 0; k < beats; k++) {
		if (k % BATCH == 0)
			ev_now_update(r->loop);
		ev_timer_again(r->loop, &r->timers[order[k]]);
	}
	return (double)(bench_ns() - began) / beats;
}

/* Arms all timers, and arms them again, in random orders. */
static void make(struct race *r)
{
	r->timers = bench_memory(r->n * sizeof(*r->timers));
	for (uint32_t i = 0; i < r->n; i++) {
		ev_init(&r->timers[i], on_timeout);
		r->timers[i].repeat = TIMEOUT;
	}
	for (unsigned k = 0; k < 2; k++) {
		uint32_t *order = bench_order(r->n, k);
		run(r, order, r->n);
		free(order);
	}
}

int main(int argc, char **argv)
{
	struct race r = {.n = (uint32_t)bench_number(argc, argv, 1)};
	uint32_t beats = (uint32_t)bench_number(argc, argv, 2);
	r.loop = ev_loop_new(EVFLAG_AUTO);
	if (!r.loop)
		return 1;
	make(&r);
	uint64_t state = 1;
	uint32_t *order = bench_memory(beats * sizeof(*order));
	while (bench_round()) {
		bench_draw(order, beats, r.n, &state);
		bench_say("again", run(&r, order, beats));
	}
	return 0; /* all goes with the process */
}
