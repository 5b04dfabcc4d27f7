/* SPDX-License-Identifier: MIT */
/* See takers.h. */
#include "takers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "heartwheel/filter_index.h"
#include "heartwheel/fnv.h"
#include "heartwheel/topic.h"

struct taker {
	const struct hw_topic *topic;
	bool ignored;
};

/* The filters of the groups before the present one. */
struct earlier {
	struct hw_filter_index index;
	struct taker *all; /* by the index' values */
	size_t n;
	uint64_t sum; /* of the hashes of the takers that were found */
};

static size_t heard(const struct hw_group *g)
{
	return g->n_heartbeat + g->n_goodbye;
}

static const struct hw_topic *filter_of(const struct hw_group *g, size_t i)
{
	if (i < g->n_heartbeat)
		return &g->heartbeat[i];
	i -= g->n_heartbeat;
	return i < g->n_goodbye ? &g->goodbye[i].topic : &g->ignore[i - g->n_goodbye];
}

static bool add_to_sum(void *arg, size_t k)
{
	struct earlier *e = arg;
	const struct taker *t = &e->all[k];
	e->sum += hw_fnv64(HW_FNV64_BEGIN + !t->ignored, t->topic->filter, t->topic->filter_len);
	return false;
}

static int add_filters(struct earlier *e, const struct hw_group *g)
{
	int rc = 0;
	for (size_t k = 0; k < heard(g) + g->n_ignore && rc == 0; k++) {
		e->all[e->n] = (struct taker){filter_of(g, k), k >= heard(g)};
		rc = hw_filter_index_add(&e->index, e->all[e->n].topic->filter, e->n);
		e->n++;
	}
	return rc;
}

static void complete(struct earlier *e, struct hw_group *g)
{
	e->sum = 0;
	for (size_t k = 0; k < heard(g); k++)
		hw_filter_index_overlaps(&e->index, filter_of(g, k)->filter, add_to_sum, e);
	uint64_t h = g->form_hash + e->sum;
	h = (h ^ h >> 32) & UINT32_MAX;
	g->form_hash = h ? h : 1;
}

int hw_takers_add(struct hw_group *const *groups, size_t n)
{
	size_t total = 0;
	for (size_t i = 0; i < n; i++)
		total += heard(groups[i]) + groups[i]->n_ignore;
	struct earlier e = {.all = calloc(total + 1, sizeof(*e.all))};
	int rc = e.all ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && rc == 0; i++) {
		complete(&e, groups[i]);
		rc = add_filters(&e, groups[i]);
	}
	hw_filter_index_fini(&e.index);
	free(e.all);
	return rc;
}
