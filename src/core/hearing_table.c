/* SPDX-License-Identifier: MIT */
/* See hearing_table.h. */
#include "hearing_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/filter_index.h"

#define PACKET      64                 /* maximum size of a canary without its topic and the monitor's name */
#define BELIEVED_NS (30 * HW_NS_PER_S) /* a silence counts without a canary after this time at the earliest */

void hw_hearing_init(struct hw_hearing *h, struct hw_now now)
{
	memset(h, 0, sizeof(*h));
	h->started_ns = now.mono.ns;
	h->base_us = now.wall_ms > 0 ? now.wall_ms * 1000 : 0;
}

static void free_filters(struct hw_hearing_filter *filter, size_t n)
{
	for (size_t f = 0; filter && f < n; f++) {
		free(filter[f].filter);
		free(filter[f].canary);
	}
	free(filter);
}

void hw_hearing_fini(struct hw_hearing *h)
{
	free_filters(h->filter, h->n);
	free(h->brought);
	free(h->heir);
	free(h->group);
}

/* Fills in a new filter. The subscription has just been made, or follows at once. */
static int fill_in(struct hw_hearing_filter *f, const struct hw_group *g, const char *node, struct hw_mono now)
{
	f->since = now;
	f->filter = strdup(g->heartbeat[f->index].filter);
	f->canary = hw_topic_canary(&g->heartbeat[f->index], node);
	if (!f->filter || !f->canary)
		return -ENOMEM;
	f->own = strcmp(f->filter, f->canary) != 0;
	f->canary_len = strlen(f->canary);
	f->size = f->canary_len + 2 * strlen(node) + PACKET;
	f->due = g->canary && f->own;
	return 0;
}

static bool is_same(const struct hw_hearing_filter *a, const struct hw_hearing_filter *b)
{
	return a->group == b->group && strcmp(a->filter, b->filter) == 0 && strcmp(a->canary, b->canary) == 0;
}

/* A search for a filter of the new table in the old one. */
struct known {
	const struct hw_hearing *old;
	const struct hw_hearing_filter *f;
	size_t at; /* the index that was found */
};

static bool is_known(void *arg, size_t k)
{
	struct known *x = arg;
	x->at = k;
	return is_same(&x->old->filter[k], x->f);
}

static void take_over(struct hw_hearing_filter *f, const struct hw_hearing_filter *old)
{
	char *filter = f->filter, *canary = f->canary;
	uint16_t index = f->index;
	*f = *old;
	f->filter = filter;
	f->canary = canary;
	f->index = index;
}

/* Makes the new table's filters. A filter keeps its data if it has the same group and the same canary topic in the old
 * table. 0 or -ENOMEM. */
static int build(const struct hw_hearing *h, const struct hw_groups *groups, const char *node, struct hw_mono now,
                 struct hw_hearing_filter *filter, int64_t *brought)
{
	size_t n = 0;
	struct hw_filter_index index = {0};
	int rc = 0;
	for (size_t k = 0; k < h->n && rc == 0; k++)
		rc = hw_filter_index_add(&index, h->filter[k].filter, k);
	for (size_t k = 0; k < groups->n_order && rc == 0; k++) {
		const struct hw_group *g = groups->all[groups->order[k]];
		for (size_t j = 0; j < g->n_heartbeat && rc == 0; j++, n++) {
			struct hw_hearing_filter *f = &filter[n];
			f->group = groups->order[k];
			f->index = (uint16_t)j;
			rc = fill_in(f, g, node, now);
			struct known old = {.old = h, .f = f};
			if (rc || !hw_filter_index_equal(&index, f->filter, is_known, &old))
				continue;
			take_over(f, &h->filter[old.at]);
			brought[n] = h->brought[old.at];
		}
	}
	hw_filter_index_fini(&index);
	return rc;
}

/* The heirs of all groups, while the new table is made. */
struct heirs {
	const struct hw_hearing *old;
	struct hw_hearing_filter *filter; /* of the new table */
	struct hw_filter_index index;     /* of these */
	uint16_t *heir;                   /* owned */
	size_t n, cap;
	size_t *first;  /* owned; for each group of the old table: the index of its first heir; then the end */
	uint16_t group; /* the group whose heirs are collected */
	const struct hw_hearing_filter *was;
	int rc;
};

static bool is_kept(void *arg, size_t k)
{
	const struct heirs *x = arg;
	return x->filter[k].group == x->group;
}

/* Makes the group of filter `k` in the new table an heir. In the old table, the same filter belonged to another
 * group, the group of filter x->was. If a canary came back on the filter before, a canary is required in the new
 * group too. */
static bool add_heir(void *arg, size_t k)
{
	struct heirs *x = arg;
	struct hw_hearing_filter *f = &x->filter[k];
	if (strcmp(f->canary, x->was->canary) == 0)
		f->ever |= x->was->ever;
	for (size_t i = x->first[x->group]; i < x->n; i++)
		if (x->heir[i] == f->group)
			return false;
	if (x->n == x->cap) {
		size_t cap = x->cap ? 2 * x->cap : 16;
		uint16_t *heir = reallocarray(x->heir, cap, sizeof(*heir));
		if (!heir) {
			x->rc = -ENOMEM;
			return true;
		}
		x->heir = heir;
		x->cap = cap;
	}
	x->heir[x->n++] = f->group;
	return false;
}

static void add_heirs(struct heirs *x, uint16_t from)
{
	const struct hw_hearing_group *g = &x->old->group[from];
	for (size_t k = g->first; k < g->first + g->n && x->rc == 0; k++) {
		x->was = &x->old->filter[k];
		if (!hw_filter_index_equal(&x->index, x->was->filter, is_kept, x))
			hw_filter_index_equal(&x->index, x->was->filter, add_heir, x);
	}
}

/* Finds the heirs of each group of the old table: the groups that now have its filters, and those that have the
 * filters of its earlier heirs. Returns 0 or -ENOMEM. */
static int find_heirs(struct heirs *x, size_t n)
{
	const struct hw_hearing *h = x->old;
	x->first = calloc(h->n_groups + 1, sizeof(*x->first));
	x->rc = x->first ? 0 : -ENOMEM;
	for (size_t k = 0; k < n && h->n > 0 && x->rc == 0; k++)
		x->rc = hw_filter_index_add(&x->index, x->filter[k].filter, k);
	for (size_t g = 0; g < h->n_groups && x->rc == 0; g++) {
		x->group = (uint16_t)g;
		x->first[g] = x->n;
		add_heirs(x, (uint16_t)g);
		for (size_t k = 0; k < h->group[g].n_heirs; k++)
			add_heirs(x, h->heir[h->group[g].heir + k]);
		x->first[g + 1] = x->n;
	}
	hw_filter_index_fini(&x->index);
	return x->rc;
}

static void install_heirs(struct hw_hearing *h, struct heirs *x)
{
	for (size_t g = 0; g < h->n_groups; g++) {
		h->group[g].heir = x->first[g];
		h->group[g].n_heirs = x->first[g + 1] - x->first[g];
	}
	free(h->heir);
	h->heir = x->heir;
}

static size_t count_filters(const struct hw_groups *groups, const char *node)
{
	size_t n = 0;
	for (size_t k = 0; node && k < groups->n_order; k++)
		n += groups->all[groups->order[k]]->n_heartbeat;
	return n;
}

static void add_groups(struct hw_hearing *h, size_t n)
{
	for (size_t g = h->n_groups; g < n; g++) {
		memset(&h->group[g], 0, sizeof(h->group[g]));
		hw_blind_init(&h->group[g].blind);
	}
	h->n_groups = n;
}

int hw_hearing_fit_groups(struct hw_hearing *h, size_t n)
{
	struct hw_hearing_group *group = realloc(h->group, (n + 1) * sizeof(*group));
	if (!group)
		return -ENOMEM;
	h->group = group;
	add_groups(h, n);
	return 0;
}

/* Frees the old table and puts the new table in its place. */
static void install(struct hw_hearing *h, const struct hw_groups *groups, struct hw_hearing_filter *filter,
                    int64_t *brought, size_t n)
{
	free_filters(h->filter, h->n);
	free(h->brought);
	h->filter = filter;
	h->brought = brought;
	h->n = n;
	h->at = 0;
	hw_hearing_wake(h);
	add_groups(h, groups->n);
	for (size_t g = 0; g < h->n_groups; g++) {
		const struct hw_group *group = groups->all[g];
		h->group[g].n = 0;
		h->group[g].canary = group->canary;
		h->group[g].timeout_ns = hw_group_shortest_ms(group) * HW_NS_PER_MS;
	}
	for (size_t f = n; f-- > 0;) {
		h->group[filter[f].group].first = f;
		h->group[filter[f].group].n++;
	}
}

int hw_hearing_set_filters(struct hw_hearing *h, const struct hw_groups *groups, const char *node, struct hw_mono now)
{
	size_t n = count_filters(groups, node);
	struct hw_hearing_group *group = realloc(h->group, (groups->n + 1) * sizeof(*group));
	if (!group)
		return -ENOMEM;
	h->group = group;
	struct hw_hearing_filter *filter = calloc(n + 1, sizeof(*filter));
	int64_t *brought = calloc(n + 1, sizeof(*brought));
	struct heirs heirs = {.old = h, .filter = filter};
	int rc = filter && brought ? 0 : -ENOMEM;
	if (rc == 0 && node)
		rc = build(h, groups, node, now, filter, brought);
	if (rc == 0)
		rc = find_heirs(&heirs, n);
	if (rc == 0) {
		install_heirs(h, &heirs);
		install(h, groups, filter, brought, n);
	} else {
		free_filters(filter, n);
		free(brought);
		free(heirs.heir);
	}
	free(heirs.first);
	return rc;
}

struct hw_mono hw_hearing_proven(const struct hw_hearing *h, size_t k)
{
	return hw_mono_later(h->filter[k].proof, (struct hw_mono){h->brought[k]});
}

struct hw_mono hw_hearing_last(const struct hw_hearing *h, size_t k)
{
	return hw_mono_later(hw_hearing_proven(h, k), h->filter[k].since);
}

bool hw_hearing_believes(const struct hw_hearing *h, size_t k)
{
	return h->filter[k].believed.ns && h->filter[k].believed.ns == hw_hearing_last(h, k).ns;
}

struct hw_mono hw_hearing_believed_at(const struct hw_hearing *h, size_t k)
{
	int64_t timeout_ns = h->group[h->filter[k].group].timeout_ns;
	int64_t all_ns = 3 * timeout_ns > BELIEVED_NS ? 3 * timeout_ns : BELIEVED_NS;
	return hw_mono_add(hw_hearing_last(h, k), all_ns - timeout_ns);
}
