/* SPDX-License-Identifier: MIT */
/*
 * A timer of libevent a device, armed again by each heartbeat: event_add() on its min-heap.
 *
 *     timers_libevent DEVICES HEARTBEATS
 *
 * As fast as it gets: the heartbeat names the event itself, so that nothing is looked up; the time is the loop's cached
 * one, renewed once in 32 heartbeats; there are no locks; the events lie in one array, in huge pages. Also with one
 * common timeout (event_base_init_common_timeout()), which is a list instead of the heap, and which a fleet may use
 * whose devices all share a few timeouts.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "common.h"

#define BATCH 32

/* One of the two kinds: with the heap, or with a list. */
struct race {
	struct event_base *base;
	struct event *events;
	const struct timeval *timeout;
	uint32_t n;            /* devices */
	const uint32_t *order; /* whose turn it is */
	uint32_t beats;
};

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	abort(); /* none may come due while it is measured */
}

/* Within the loop, where the time is cached. */
static void on_start(evutil_socket_t fd, short what, void *arg)
{
	struct race *r = arg;
	(void)fd;
	(void)what;
	for (uint32_t k = 0; k < r->beats; k++) {
		if (k % BATCH == 0)
			event_base_update_cache_time(r->base);
		event_add(&r->events[r->order[k]], r->timeout);
	}
	event_base_loopbreak(r->base);
}

/* What a heartbeat costs, in ns. */
static double run(struct race *r, const uint32_t *order, uint32_t beats)
{
	struct event *start = event_new(r->base, -1, 0, on_start, r);
	if (!start)
		abort();
	r->order = order;
	r->beats = beats;
	event_active(start, EV_TIMEOUT, 1);
	int64_t began = bench_ns();
	event_base_dispatch(r->base);
	double ns = (double)(bench_ns() - began) / beats;
	event_free(start);
	return ns;
}

/* All timers are armed, and armed again, in random orders. */
static void make(struct race *r, bool common)
{
	static const struct timeval timeout = {3600, 0};
	r->base = event_base_new();
	if (!r->base)
		abort();
	r->timeout = common ? event_base_init_common_timeout(r->base, &timeout) : &timeout;
	r->events = bench_memory(r->n * sizeof(*r->events));
	for (uint32_t i = 0; i < r->n; i++)
		event_assign(&r->events[i], r->base, -1, 0, on_timeout, NULL);
	for (unsigned k = 0; k < 2; k++) {
		uint32_t *order = bench_order(r->n, k);
		run(r, order, r->n);
		free(order);
	}
}

int main(int argc, char **argv)
{
	uint32_t n = (uint32_t)bench_number(argc, argv, 1), beats = (uint32_t)bench_number(argc, argv, 2);
	struct race heap = {.n = n}, common = {.n = n};
	make(&heap, false);
	make(&common, true);
	uint64_t state = 1;
	uint32_t *order = bench_memory(beats * sizeof(*order));
	while (bench_round()) {
		bench_draw(order, beats, n, &state);
		bench_say("heap", run(&heap, order, beats));
		bench_say("common", run(&common, order, beats));
	}
	return 0; /* all goes with the process */
}
