/* SPDX-License-Identifier: MIT */
/*
 * The table of groups.
 *
 * Invariant: an index once given always names the same group name; all[i] never moves, only what it holds is exchanged
 * by a reload. `order` lists exactly the groups that are not retired, in the order of the file.
 *
 * Cost: a match tries the templates in the order of the file, each a few compares. A reload is quadratic in the number
 * of groups.
 */
#include "heartwheel/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hw_groups_init(struct hw_groups *g)
{
	memset(g, 0, sizeof(*g));
}

static void group_free(struct hw_group *group)
{
	if (!group)
		return;
	for (size_t i = 0; i < group->n_heartbeat; i++)
		hw_topic_fini(&group->heartbeat[i]);
	free(group->heartbeat);
	hw_topic_fini(&group->status);
	free(group->id_prefix);
	free(group->name);
	free(group);
}

void hw_groups_fini(struct hw_groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		group_free(g->all[i]);
	free(g->all);
	free(g->order);
	memset(g, 0, sizeof(*g));
}

static int compile_topics(struct hw_group *group, const struct hw_group_spec *spec)
{
	const char *why;
	int rc = 0;

	group->heartbeat = calloc(spec->n_heartbeat ? spec->n_heartbeat : 1, sizeof(*group->heartbeat));
	if (!group->heartbeat)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < spec->n_heartbeat; i++) {
		rc = spec->batch ? hw_topic_compile_batch(&group->heartbeat[i], spec->heartbeat[i], &why)
		                 : hw_topic_compile(&group->heartbeat[i], spec->heartbeat[i], false, &why);
		if (rc == 0)
			group->n_heartbeat++;
	}
	if (rc == 0 && spec->status && *spec->status)
		rc = hw_topic_compile(&group->status, spec->status, true, &why);
	return rc;
}

static int group_new(const struct hw_group_spec *spec, unsigned rank, struct hw_group **out)
{
	const char *prefix = spec->id_prefix ? spec->id_prefix : "";
	struct hw_group *group = calloc(1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	*group = (struct hw_group){.timeout_ms = spec->timeout_ms,
	                           .timeout_max_ms = spec->timeout_max_ms,
	                           .goodbye_delay_ms = spec->goodbye_delay_ms,
	                           .max_age_ms = spec->max_age_ms,
	                           .max_offline_rate = spec->max_offline_rate,
	                           .format = spec->format,
	                           .batch = spec->batch,
	                           .rank = rank,
	                           .name = strdup(spec->name),
	                           .id_prefix = strdup(prefix),
	                           .id_prefix_len = strlen(prefix)};
	int rc = group->name && group->id_prefix ? compile_topics(group, spec) : -ENOMEM;
	if (rc != 0)
		group_free(group);
	else
		*out = group;
	return rc;
}

/* Everything that can fail, but for the growth of the table: makes fresh[0 .. n), for the caller to free. */
static int build(struct hw_group **fresh, const struct hw_group_spec *specs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++)
			if (strcmp(specs[i].name, specs[j].name) == 0)
				return -EINVAL;
		int rc = group_new(&specs[i], (unsigned)i, &fresh[i]);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int grow(struct hw_groups *g, const struct hw_group_spec *specs, size_t n)
{
	size_t total = g->n;

	for (size_t i = 0; i < n; i++)
		total += hw_groups_find(g, specs[i].name) < 0;
	if (total > HW_GROUPS_MAX)
		return -ENOSPC;
	struct hw_group **all = realloc(g->all, (total ? total : 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	g->all = all;
	return 0;
}

/* Cannot fail. What was in the table before is left in `fresh`. */
static void install(struct hw_groups *g, struct hw_group **fresh, size_t n, uint16_t *order)
{
	for (size_t i = 0; i < g->n; i++)
		g->all[i]->retired = true;
	for (size_t i = 0; i < n; i++) {
		int at = hw_groups_find(g, fresh[i]->name);
		if (at < 0) {
			at = (int)g->n++;
			g->all[at] = fresh[i];
			fresh[i] = NULL;
		} else {
			struct hw_group was = *g->all[at];
			*g->all[at] = *fresh[i];
			*fresh[i] = was;
		}
		order[i] = (uint16_t)at;
	}
	free(g->order);
	g->order = order;
	g->n_order = n;
}

int hw_groups_set(struct hw_groups *g, const struct hw_group_spec *specs, size_t n)
{
	struct hw_group **fresh = calloc(n ? n : 1, sizeof(*fresh));
	uint16_t *order = calloc(n ? n : 1, sizeof(*order));
	int rc = fresh && order ? build(fresh, specs, n) : -ENOMEM;

	if (rc == 0)
		rc = grow(g, specs, n);
	if (rc == 0) {
		install(g, fresh, n, order);
		order = NULL;
	}
	for (size_t i = 0; fresh && i < n; i++)
		group_free(fresh[i]);
	free(fresh);
	free(order);
	return rc;
}

int hw_groups_find(const struct hw_groups *g, const char *name)
{
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->all[i]->name, name) == 0)
			return (int)i;
	return -1;
}

static bool matches(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len)
{
	return !hw_topic_excludes(t, topic, len) && hw_topic_match(t, topic, len, id, id_len);
}

/*
 * An empty payload on anybody's status topic is a clearing, also where another group's heartbeats would take the topic,
 * and also for a retired group, whose devices are still forgotten one by one: a clearing must never bring a device
 * back.
 */
static bool match_clearing(const struct hw_groups *g, const char *topic, size_t len, uint16_t *group, const char **id,
                           size_t *id_len)
{
	for (size_t i = 0; i < g->n_order + g->n; i++) {
		size_t at = i < g->n_order ? g->order[i] : i - g->n_order;
		if (matches(&g->all[at]->status, topic, len, id, id_len)) {
			*group = (uint16_t)at;
			return true;
		}
	}
	return false;
}

enum hw_match hw_groups_match(const struct hw_groups *g, const char *topic, size_t len, bool empty_payload,
                              uint16_t *group, const char **id, size_t *id_len)
{
	if (empty_payload && match_clearing(g, topic, len, group, id, id_len))
		return HW_MATCH_CLEARING;
	for (size_t i = 0; i < g->n_order; i++) {
		const struct hw_group *candidate = g->all[g->order[i]];
		for (size_t j = 0; j < candidate->n_heartbeat; j++) {
			if (matches(&candidate->heartbeat[j], topic, len, id, id_len)) {
				*group = g->order[i];
				return HW_MATCH_HEARTBEAT;
			}
		}
	}
	for (size_t i = 0; i < g->n_order; i++) {
		if (matches(&g->all[g->order[i]]->status, topic, len, id, id_len)) {
			*group = g->order[i];
			return HW_MATCH_STATUS;
		}
	}
	return HW_MATCH_NONE;
}

int hw_group_status_topic(const struct hw_group *g, const char *id, size_t id_len, char *buf, size_t cap)
{
	size_t n = g->id_prefix_len;

	if (!g->status.filter)
		return 0;
	/* A device from before a reload may lack the prefix, and one cannot be named by the prefix alone. */
	if (id_len > n && memcmp(id, g->id_prefix, n) == 0) {
		id += n;
		id_len -= n;
	}
	return hw_topic_render(&g->status, id, id_len, buf, cap);
}
