/* SPDX-License-Identifier: MIT */
/*
 * The table of groups.
 *
 * Invariant: an index always belongs to the same group name. all[i] never moves; a reload only exchanges its contents.
 * `order` lists exactly the groups that are not retired, in the order of the file.
 *
 * Cost: a reload compares the names of all groups.
 */
#include "heartwheel/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "group_compile.h"
#include "heartwheel/filter_index.h"
#include "match.h"
#include "takers.h"

void hw_groups_init(struct hw_groups *g)
{
	memset(g, 0, sizeof(*g));
}

void hw_groups_fini(struct hw_groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		hw_group_free(g->all[i]);
	hw_match_index_free(g->index);
	free(g->all);
	free(g->order);
	memset(g, 0, sizeof(*g));
}

/* Makes fresh[0 .. n), which the caller frees. */
static int build(struct hw_group **fresh, const struct hw_group_spec *specs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++)
			if (strcmp(specs[i].name, specs[j].name) == 0)
				return -EINVAL;
		int rc = hw_group_new(&specs[i], (unsigned)i, &fresh[i]);
		if (rc != 0)
			return rc;
	}
	return hw_takers_add(fresh, n);
}

/* Searches from `*hint` on. `*hint` becomes the index after the group that was found, because a reload rarely changes
 * the order. */
static int find_from(const struct hw_groups *g, size_t *hint, const char *name)
{
	for (size_t i = 0; i < g->n; i++) {
		size_t at = (*hint + i) % g->n;
		if (strcmp(g->all[at]->name, name) != 0)
			continue;
		*hint = at + 1;
		return (int)at;
	}
	return -1;
}

/* Makes the table after the reload. A group that stays or is new gets a newly made struct; each other index keeps
 * its old one. */
static int lay_out(const struct hw_groups *g, struct hw_groups_draft *d)
{
	struct hw_groups *next = &d->next;
	size_t total = g->n;
	size_t hint = 0;
	for (size_t i = 0; i < d->n; i++)
		total += find_from(g, &hint, d->fresh[i]->name) < 0;
	if (total > HW_GROUPS_MAX)
		return -ENOSPC;
	next->all = calloc(total ? total : 1, sizeof(*next->all));
	next->order = calloc(d->n ? d->n : 1, sizeof(*next->order));
	if (!next->all || !next->order)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++)
		next->all[next->n++] = g->all[i];
	for (size_t i = 0; i < d->n; i++) {
		int at = find_from(g, &hint, d->fresh[i]->name);
		next->order[next->n_order++] = (uint16_t)(at < 0 ? (int)next->n++ : at);
		next->all[next->order[i]] = d->fresh[i];
	}
	return 0;
}

int hw_groups_draft(const struct hw_groups *g, const struct hw_group_spec *specs, size_t n, struct hw_groups_draft *d)
{
	*d = (struct hw_groups_draft){.fresh = calloc(n ? n : 1, sizeof(*d->fresh)), .n = n};
	int rc = d->fresh ? build(d->fresh, specs, n) : -ENOMEM;
	if (rc == 0)
		rc = lay_out(g, d);
	if (rc == 0)
		rc = hw_match_index_new(&d->next);
	if (rc != 0)
		hw_groups_draft_fini(d);
	return rc;
}

void hw_groups_draft_fini(struct hw_groups_draft *d)
{
	for (size_t i = 0; d->fresh && i < d->n; i++)
		hw_group_free(d->fresh[i]);
	free(d->fresh);
	hw_match_index_free(d->next.index);
	free(d->next.all);
	free(d->next.order);
	*d = (struct hw_groups_draft){.n = 0};
}

/* Adds the filters of all groups of the file. */
static int add_filters(struct hw_filter_index *x, const struct hw_groups *g)
{
	int rc = 0;
	for (size_t k = 0; k < g->n_order; k++) {
		const struct hw_group *group = g->all[g->order[k]];
		for (size_t i = 0; i < group->n_heartbeat && rc == 0; i++)
			rc = hw_filter_index_add(x, group->heartbeat[i].filter, k);
	}
	return rc;
}

static bool has_filter(const struct hw_groups *g, const struct hw_topic *by)
{
	for (size_t k = 0; k < g->n_order; k++) {
		const struct hw_group *group = g->all[g->order[k]];
		if (hw_group_heartbeat_like(group, by) < group->n_heartbeat)
			return true;
	}
	return false;
}

/* Whether the group is retired and no group of the file has its filters. (A renamed group is still heard.) `filters`
 * NULL: there was no memory for the index, so all groups are compared. */
static bool is_unheard(const struct hw_groups *g, const struct hw_group *group, const struct hw_filter_index *filters)
{
	bool heard = group->n_heartbeat > 0;
	for (size_t k = 0; group->retired && k < group->n_heartbeat && heard; k++)
		heard = filters ? hw_filter_index_equal(filters, group->heartbeat[k].filter, NULL, NULL)
		                : has_filter(g, &group->heartbeat[k]);
	return group->retired && !heard;
}

static void find_unheard(struct hw_groups *g)
{
	struct hw_filter_index filters = {0};
	bool indexed = g->n > g->n_order && add_filters(&filters, g) == 0;
	for (size_t i = 0; i < g->n; i++)
		g->all[i]->unheard = is_unheard(g, g->all[i], indexed ? &filters : NULL);
	hw_filter_index_fini(&filters);
}

void hw_groups_install(struct hw_groups *g, struct hw_groups_draft *d)
{
	for (size_t i = 0; i < g->n; i++) {
		g->all[i]->retired = true;
		g->all[i]->probes = 0; /* the file no longer requests them */
	}
	for (size_t i = 0; i < d->n; i++) {
		size_t at = d->next.order[i];
		if (at < g->n) {
			struct hw_group was = *g->all[at];
			d->fresh[i]->relabelled = was.labels_hash != d->fresh[i]->labels_hash;
			*g->all[at] = *d->fresh[i];
			*d->fresh[i] = was;
			d->next.all[at] = g->all[at];
		} else {
			d->fresh[i] = NULL;
		}
	}
	hw_match_index_free(g->index);
	free(g->all);
	free(g->order);
	*g = d->next;
	d->next = (struct hw_groups){.n = 0};
	hw_groups_draft_fini(d);
	find_unheard(g);
}

int hw_groups_set(struct hw_groups *g, const struct hw_group_spec *specs, size_t n)
{
	struct hw_groups_draft d;
	int rc = hw_groups_draft(g, specs, n, &d);
	if (rc == 0)
		hw_groups_install(g, &d);
	return rc;
}

int hw_groups_find(const struct hw_groups *g, const char *name)
{
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->all[i]->name, name) == 0)
			return (int)i;
	return -1;
}

/* The timeout of a group whose real timeout is unknown. Its devices are not judged, and their keys are refreshed at
 * this interval. */
#define UNKNOWN_TIMEOUT_MS 30000

int hw_groups_name(struct hw_groups *g, const char *name, size_t len)
{
	for (size_t i = 0; i < g->n; i++)
		if (strlen(g->all[i]->name) == len && memcmp(g->all[i]->name, name, len) == 0)
			return (int)i;
	if (!hw_id_valid(name, len))
		return -EINVAL;
	if (g->n >= HW_GROUPS_MAX)
		return -ENOSPC;
	struct hw_group **all = realloc(g->all, (g->n + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	g->all = all;
	char *copy = strndup(name, len);
	struct hw_group_spec spec = {
		.name = copy, .timeout_ms = UNKNOWN_TIMEOUT_MS, .timeout_max_ms = INT64_MAX / 4, .canary = true};
	int rc = copy ? hw_group_new(&spec, UINT32_MAX, &g->all[g->n]) : -ENOMEM;
	free(copy);
	if (rc != 0)
		return rc;
	struct hw_group *group = g->all[g->n];
	group->form_hash = 0;
	group->retired = group->unheard = true;
	return (int)g->n++;
}

size_t hw_group_heartbeat_like(const struct hw_group *g, const struct hw_topic *by)
{
	size_t at = 0;
	while (at < g->n_heartbeat && (!by || strcmp(g->heartbeat[at].filter, by->filter) != 0))
		at++;
	return at;
}

size_t hw_group_id(const struct hw_group *g, const struct hw_topic *by, const char *topic, size_t len,
                   char id[HW_ID_MAX])
{
	struct hw_value values[HW_CAPTURES_MAX];
	char text[HW_ID_MAX + 1];
	if (!hw_topic_values(by, topic, len, values))
		return 0;
	for (unsigned k = 0; k < g->form.n_captures; k++)
		if (hw_value_lacks_level(values[k]))
			return 0;
	int n = hw_topic_compose(&g->form, values, text, sizeof(text));
	if (n <= 0 || g->id_prefix_len + (size_t)n > HW_ID_MAX)
		return 0;
	memcpy(id, g->id_prefix, g->id_prefix_len);
	memcpy(id + g->id_prefix_len, text, (size_t)n);
	return g->id_prefix_len + (size_t)n;
}

/* Returns the id without the group's id_prefix. Returns the whole id if it does not begin with the prefix, as that
 * of a device from before a reload. An id is never the prefix alone. */
static struct hw_value without_prefix(const struct hw_group *g, const char *id, size_t id_len)
{
	size_t n = g->id_prefix_len;
	if (id_len > n && memcmp(id, g->id_prefix, n) == 0)
		return (struct hw_value){id + n, id_len - n};
	return (struct hw_value){id, id_len};
}

bool hw_group_values(const struct hw_group *g, const char *id, size_t id_len, struct hw_value values[HW_CAPTURES_MAX])
{
	struct hw_value rest = without_prefix(g, id, id_len);
	if (g->assembled)
		return hw_topic_values(&g->form, rest.text, rest.len, values);
	values[0] = rest; /* the only capture, with all its levels */
	return true;
}

bool hw_group_fits(const struct hw_group *g, const char *id, size_t id_len)
{
	struct hw_value values[HW_CAPTURES_MAX], rest = without_prefix(g, id, id_len);
	return (rest.text != id || g->id_prefix_len == 0) && hw_topic_values(&g->form, rest.text, rest.len, values);
}

int hw_group_status_topic(const struct hw_group *g, const char *id, size_t id_len, char *buf, size_t cap)
{
	struct hw_value values[HW_CAPTURES_MAX], rest = without_prefix(g, id, id_len);
	if (!g->status.filter)
		return 0;
	if (!g->assembled && !g->status.walked)
		return hw_topic_render(&g->status, rest.text, rest.len, buf, cap);
	return hw_group_values(g, id, id_len, values) ? hw_topic_compose(&g->status, values, buf, cap) : 0;
}
