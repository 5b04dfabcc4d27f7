/* SPDX-License-Identifier: MIT */
/*
 * See match.h, and group.h for the order of the filters. That order numbers the filters of the index.
 *
 * Cost: without an index, a match tries the templates one after another, with a few comparisons each. With the index, a
 * match takes a look-up per topic level, and tries the templates whose filters match.
 */
#include "match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/filter_index.h"

/* With fewer filters than this, an index would not be faster. */
#define INDEXED_FROM 48

struct place {
	const struct hw_topic *topic; /* borrowed */
	enum hw_match kind;
	uint16_t group;
};

struct hw_match_index {
	struct hw_filter_index filters;  /* the values are indices of `place` */
	struct hw_filter_index statuses; /* the values are those of group_at() */
	struct place *place;             /* owned; the filters that precede others are first */
	size_t n;
};

static bool matches(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len)
{
	return !hw_topic_excludes(t, topic, len) && hw_topic_match(t, topic, len, id, id_len);
}

/* --- the index ------------------------------------------------------------------ */

static size_t count_statuses(const struct hw_groups *g)
{
	return g->n_order + (g->n > g->n_order ? g->n : 0); /* without retired groups, `order` has them all */
}

/* Returns the index of the i-th group. The groups of the file, in its order, precede the retired ones. */
static uint16_t group_at(const struct hw_groups *g, size_t i)
{
	return (uint16_t)(i < g->n_order ? g->order[i] : i - g->n_order);
}

static const struct hw_topic *status_at(const struct hw_groups *g, size_t i)
{
	return &g->all[group_at(g, i)]->status;
}

/* Whether the template matches every topic that its filter matches. It does, except for a template with {name...}
 * that does not end in `#`. Such a template requires at least one level for the name, and the levels that follow the
 * name. Its filter has `#` in place of all these levels, and also matches topics without them. */
static bool is_whole(const struct hw_topic *t)
{
	return t->filter[t->filter_len - 1] != '#' || t->text[strlen(t->text) - 1] == '#';
}

static bool is_whole_filter(void *arg, size_t value)
{
	const struct hw_match_index *x = arg;
	return is_whole(x->place[value].topic);
}

static bool is_whole_status(void *arg, size_t value)
{
	const struct hw_groups *g = arg;
	return is_whole(status_at(g, value));
}

static int add_filter(struct hw_match_index *x, uint16_t group, const struct hw_topic *t, enum hw_match kind)
{
	x->place[x->n] = (struct place){t, kind, group};
	/* Another template with the same filter comes first and takes all its messages, so this template needs no
	 * entry. */
	if (hw_filter_index_equal(&x->filters, t->filter, is_whole_filter, x))
		return 0;
	return hw_filter_index_add(&x->filters, t->filter, x->n++);
}

static int add_group(struct hw_match_index *x, const struct hw_groups *g, uint16_t at)
{
	const struct hw_group *group = g->all[at];
	int rc = 0;
	for (size_t i = 0; i < group->n_ignore && rc == 0; i++)
		rc = add_filter(x, at, &group->ignore[i], HW_MATCH_IGNORED);
	for (size_t i = 0; i < group->n_goodbye && rc == 0; i++)
		rc = add_filter(x, at, &group->goodbye[i].topic, HW_MATCH_GOODBYE);
	for (size_t i = 0; i < group->n_heartbeat && rc == 0; i++)
		rc = add_filter(x, at, &group->heartbeat[i], HW_MATCH_HEARTBEAT);
	return rc;
}

static int add_status(struct hw_match_index *x, struct hw_groups *g, size_t i)
{
	const struct hw_topic *t = status_at(g, i);
	if (!t->filter || hw_filter_index_equal(&x->statuses, t->filter, is_whole_status, g))
		return 0;
	return hw_filter_index_add(&x->statuses, t->filter, i);
}

int hw_match_index_new(struct hw_groups *g)
{
	size_t n = 0, statuses = count_statuses(g);
	for (size_t i = 0; i < g->n_order; i++) {
		const struct hw_group *group = g->all[g->order[i]];
		n += group->n_ignore + group->n_goodbye + group->n_heartbeat;
	}
	if (n + statuses < INDEXED_FROM)
		return 0;
	struct hw_match_index *x = calloc(1, sizeof(*x));
	g->index = x;
	if (x)
		x->place = calloc(n + 1, sizeof(*x->place));
	int rc = x && x->place ? 0 : -ENOMEM;
	for (size_t i = 0; i < g->n_order && rc == 0; i++)
		rc = add_group(x, g, g->order[i]);
	for (size_t i = 0; i < statuses && rc == 0; i++)
		rc = add_status(x, g, i);
	return rc;
}

void hw_match_index_free(struct hw_match_index *x)
{
	if (!x)
		return;
	hw_filter_index_fini(&x->filters);
	hw_filter_index_fini(&x->statuses);
	free(x->place);
	free(x);
}

/* A search for the first template that matches a topic. */
struct search {
	const struct hw_groups *g;
	const char *topic, *id;
	size_t len, id_len;
	size_t first; /* SIZE_MAX: none yet */
};

static void try(struct search *s, const struct hw_topic *t, size_t value)
{
	const char *id;
	size_t id_len;
	if (value >= s->first || !matches(t, s->topic, s->len, &id, &id_len))
		return;
	s->first = value;
	s->id = id;
	s->id_len = id_len;
}

static bool try_filter(void *arg, size_t value)
{
	struct search *s = arg;
	try(s, s->g->index->place[value].topic, value);
	return false;
}

static bool try_status(void *arg, size_t value)
{
	struct search *s = arg;
	try(s, status_at(s->g, value), value);
	return false;
}

static bool search(struct search *s, const struct hw_filter_index *x, hw_filter_found *found, const char **id,
                   size_t *id_len)
{
	hw_filter_index_topic(x, s->topic, s->len, found, s);
	if (s->first == SIZE_MAX)
		return false;
	*id = s->id;
	*id_len = s->id_len;
	return true;
}

/* --- matching ------------------------------------------------------------------- */

/* Returns the first group that has this status topic, as the number for group_at(); SIZE_MAX: there is none. Each
 * search in the index is a separate function, so that the path of a heartbeat stays short if there are few filters. */
static __attribute__((noinline)) size_t find_status(const struct hw_groups *g, const char *topic, size_t len,
                                                    const char **id, size_t *id_len)
{
	struct search s = {.g = g, .topic = topic, .len = len, .first = SIZE_MAX};
	search(&s, &g->index->statuses, try_status, id, id_len);
	return s.first;
}

/* The same without an index, among the first `n`. */
static inline size_t find_status_in_order(const struct hw_groups *g, size_t n, const char *topic, size_t len,
                                          const char **id, size_t *id_len)
{
	for (size_t i = 0; i < n; i++)
		if (matches(status_at(g, i), topic, len, id, id_len))
			return i;
	return SIZE_MAX;
}

/*
 * Matches a clearing: an empty payload on the status topic of a group, which removes the retained status. It is a
 * clearing even if another group's heartbeat filter matches, because it must never make a device online. Status topics
 * of retired groups match too, because their devices may still be forgotten. Always inline: most heartbeats have an
 * empty payload, and a call would cost each of them 24 instructions.
 */
static inline __attribute__((always_inline)) bool match_clearing(const struct hw_groups *g, const char *topic,
                                                                 size_t len, uint16_t *group, const char **id,
                                                                 size_t *id_len)
{
	size_t i = g->index ? find_status(g, topic, len, id, id_len)
	                    : find_status_in_order(g, count_statuses(g), topic, len, id, id_len);
	if (i == SIZE_MAX)
		return false;
	*group = group_at(g, i);
	return true;
}

bool hw_groups_is_status(const struct hw_groups *g, const char *topic, size_t len)
{
	uint16_t group;
	const char *id;
	size_t id_len;
	return match_clearing(g, topic, len, &group, &id, &id_len);
}

static enum hw_match kind_of(const struct hw_goodbye *g, bool empty_payload)
{
	if (!empty_payload)
		return HW_MATCH_GOODBYE;
	return g->beats ? HW_MATCH_HEARTBEAT : HW_MATCH_CLEARING;
}

/* Matches a topic with the filters that are tested before the heartbeat filters. HW_MATCH_NONE: none matches. This is a
 * separate function, so that a group without such filters has a short path for heartbeats. */
static __attribute__((noinline)) enum hw_match sort(const struct hw_group *group, const char *topic, size_t len,
                                                    bool empty_payload, const char **id, size_t *id_len,
                                                    const struct hw_topic **by)
{
	for (size_t i = 0; i < group->n_ignore; i++)
		if (matches(&group->ignore[i], topic, len, id, id_len))
			return HW_MATCH_IGNORED;
	for (size_t i = 0; i < group->n_goodbye; i++) {
		const struct hw_goodbye *g = &group->goodbye[i];
		if (!matches(&g->topic, topic, len, id, id_len))
			continue;
		*by = &g->topic;
		return kind_of(g, empty_payload);
	}
	return HW_MATCH_NONE;
}

static __attribute__((noinline)) enum hw_match match_by_index(const struct hw_groups *g, const char *topic, size_t len,
                                                              bool empty_payload, uint16_t *group, const char **id,
                                                              size_t *id_len, const struct hw_topic **by)
{
	struct search s = {.g = g, .topic = topic, .len = len, .first = SIZE_MAX};
	if (!search(&s, &g->index->filters, try_filter, id, id_len)) {
		size_t i = find_status(g, topic, len, id, id_len);
		if (i >= g->n_order)
			return HW_MATCH_NONE;
		*group = g->order[i];
		*by = status_at(g, i);
		return HW_MATCH_STATUS;
	}
	const struct place *p = &g->index->place[s.first];
	*group = p->group;
	if (p->kind == HW_MATCH_IGNORED)
		return HW_MATCH_IGNORED;
	*by = p->topic;
	if (p->kind == HW_MATCH_HEARTBEAT)
		return HW_MATCH_HEARTBEAT;
	return kind_of((const struct hw_goodbye *)p->topic, empty_payload); /* `topic` is its first member */
}

enum hw_match hw_groups_match(const struct hw_groups *g, const char *topic, size_t len, bool empty_payload,
                              uint16_t *group, const char **id, size_t *id_len, const struct hw_topic **by)
{
	if (empty_payload && match_clearing(g, topic, len, group, id, id_len))
		return HW_MATCH_CLEARING;
	if (g->index)
		return match_by_index(g, topic, len, empty_payload, group, id, id_len, by);
	for (size_t i = 0; i < g->n_order; i++) {
		const struct hw_group *each = g->all[g->order[i]];
		if (each->sorts) {
			enum hw_match sorted = sort(each, topic, len, empty_payload, id, id_len, by);
			*group = g->order[i];
			if (sorted != HW_MATCH_NONE)
				return sorted;
		}
		for (size_t j = 0; j < each->n_heartbeat; j++) {
			if (matches(&each->heartbeat[j], topic, len, id, id_len)) {
				*by = &each->heartbeat[j];
				*group = g->order[i];
				return HW_MATCH_HEARTBEAT;
			}
		}
	}
	size_t i = find_status_in_order(g, g->n_order, topic, len, id, id_len);
	if (i == SIZE_MAX)
		return HW_MATCH_NONE;
	*group = g->order[i];
	*by = status_at(g, i);
	return HW_MATCH_STATUS;
}

bool hw_group_is_goodbye(const struct hw_group *g, const char *topic, size_t len, const void *payload,
                         size_t payload_len, bool *no_memory)
{
	const char *id;
	size_t id_len;
	*no_memory = false;
	for (size_t i = 0; i < g->n_goodbye; i++) {
		const struct hw_goodbye *one = &g->goodbye[i];
		if (!matches(&one->topic, topic, len, &id, &id_len))
			continue;
		if (!one->text)
			return true;
		if (!one->member && payload_len == strlen(one->text) && memcmp(payload, one->text, payload_len) == 0)
			return true;
		int rc = one->member ? hw_payload_member_is(payload, payload_len, one->member, one->text) : 0;
		if (rc > 0)
			return true;
		*no_memory |= rc < 0;
	}
	return false;
}
