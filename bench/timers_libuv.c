/* SPDX-License-Identifier: MIT */
/*
 * One timer of libuv for each device, which each heartbeat arms again: uv_timer_again() removes it from a heap of
 * pointers and inserts it again.
 *
 *     timers_libuv DEVICES HEARTBEATS
 *
 * The program is as fast as possible: the heartbeat refers to the handle itself, so there is no look-up; the loop's
 * time is updated once in 32 heartbeats; the handles are in one array, in huge pages.
 */
#include <stdlib.h>
#include <uv.h>

#include "common.h"

#define BATCH      32
#define TIMEOUT_MS 3600000

static void on_timeout(uv_timer_t *timer)
{
	(void)timer;
	abort();
}

struct race {
	uv_loop_t *loop;
	uv_timer_t *timers;
	uint32_t n; /* devices */
};

/* What a heartbeat costs, in ns. */
static double run(struct race *r, const uint32_t *order, uint32_t beats)
{
	int64_t began = bench_ns();
	for (uint32_t k = 0; k < beats; k++) {
		if (k % BATCH == 0)
			uv_update_time(r->loop);
		uv_timer_again(&r->timers[order[k]]);
	}
	return (double)(bench_ns() - began) / beats;
}

/* Arms all timers, and arms them again, in random orders. */
static void make(struct race *r)
{
	r->timers = bench_memory(r->n * sizeof(*r->timers));
	for (uint32_t i = 0; i < r->n; i++)
		if (uv_timer_init(r->loop, &r->timers[i]) ||
		    uv_timer_start(&r->timers[i], on_timeout, TIMEOUT_MS, TIMEOUT_MS))
			abort();
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
	r.loop = uv_default_loop();
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
