/* SPDX-License-Identifier: MIT */
#include "fleet_account.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

void fleet_account_death(struct fleet_account *a, double late_ms)
{
	a->early += late_ms < 0;
	if (a->n == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 1024;
		double *p = realloc(a->delays_ms, cap * sizeof(*p));
		if (!p)
			return;
		a->delays_ms = p;
		a->cap = cap;
	}
	a->delays_ms[a->n++] = late_ms;
}

void fleet_account_fini(struct fleet_account *a)
{
	free(a->delays_ms);
}

static int by_value(const void *left, const void *right)
{
	double x = *(const double *)left, y = *(const double *)right;
	return (x > y) - (x < y);
}

/* Nearest rank, of the sorted delays. */
static double percentile(const struct fleet_account *a, unsigned p)
{
	if (a->n == 0)
		return 0;
	size_t rank = (a->n * p + 99) / 100;
	return a->delays_ms[rank > 0 ? rank - 1 : 0];
}

static void distribution(const struct fleet_account *a)
{
	static const double edges[] = {0, 5, 10, 20, 33, 43, 53, 100, 250, 1000};
	size_t k = 0;
	for (size_t e = 0; e <= sizeof(edges) / sizeof(*edges); e++) {
		bool last = e == sizeof(edges) / sizeof(*edges);
		size_t from = k;
		while (k < a->n && (last || a->delays_ms[k] < edges[e]))
			k++;
		if (k > from && last)
			printf("  %7s %5.0f ms  %zu\n", "from", edges[e - 1], k - from);
		else if (k > from)
			printf("  %7s %5.0f ms  %zu\n", "below", edges[e], k - from);
	}
}

int fleet_account_tell(struct fleet_account *a, const struct fleet_options *o)
{
	if (a->n > 0)
		qsort(a->delays_ms, a->n, sizeof(double), by_value);
	double min = percentile(a, 0), p50 = percentile(a, 50), p99 = percentile(a, 99), max = percentile(a, 100);
	bool ok = a->early == 0 && a->online >= o->expect_online && a->offline >= o->expect_offline &&
	          (o->max_p99_ms <= 0 || p99 <= o->max_p99_ms);

	if (o->json) {
		printf("{\"devices\":%u,\"heartbeats\":%" PRIu64 ",\"transitions\":%" PRIu64
		       ",\"online_seen\":%u,\"offline_seen\":%u,\"early\":%" PRIu64
		       ",\"delay_ms\":{\"n\":%zu,\"min\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f},\"ok\":%s}\n",
		       o->devices, a->beats, a->transitions, a->online, a->offline, a->early, a->n, min, p50, p99, max,
		       ok ? "true" : "false");
		return ok ? 0 : 1;
	}
	printf("%u devices, %" PRIu64 " heartbeats, %" PRIu64
	       " transitions; seen online %u, offline %u, too early %" PRIu64 "\n",
	       o->devices, a->beats, a->transitions, a->online, a->offline, a->early);
	if (a->n > 0) {
		printf("from timeout to status message, %zu deaths: min %.1f  p50 %.1f  p99 %.1f  max %.1f ms\n", a->n,
		       min, p50, p99, max);
		if (!o->demo)
			distribution(a);
	}
	return ok ? 0 : 1;
}
