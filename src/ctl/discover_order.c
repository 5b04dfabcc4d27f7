/* SPDX-License-Identifier: MIT */
/*
 * Orders the groups for the file. heartwheeld assigns a topic to the first group that matches it. So if the filters of
 * group A match topics of group B, A stands after B. If a group matches a topic that belongs to no device, the group
 * gets a line `ignore`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/presets.h"
#include "ctl/discover_priv.h"

#define IGNORES_MAX 20 /* of a group */

/* --- filters ------------------------------------------------------------------------------------------------------ */

/* Adds a filter to the list with which find_match() compares topics. Returns 0, -EINVAL if the filter is not allowed in
 * monitor.conf, or -ENOMEM. */
static int add_match(struct hw_find_group *g, const char *filter, size_t len)
{
	const char *why;
	char *text = strndup(filter, len);
	struct hw_topic *more = reallocarray(g->match, g->n_match + 1, sizeof(*more));
	g->match = more ? more : g->match;
	int rc = text && more ? hw_topic_compile(&g->match[g->n_match], text, HW_TOPIC_ANY, &why) : -ENOMEM;
	if (rc == 0 && len > HW_CONF_TEXT_MAX - 64) {
		hw_topic_fini(&g->match[g->n_match]);
		rc = -EINVAL;
	}
	g->n_match += rc == 0;
	free(text);
	return rc;
}

static int add_preset(struct hw_find_group *g)
{
	int rc = hw_found_add(&g->out, "preset = %s", hw_presets[g->preset].name);
	for (size_t i = 0; i < hw_preset_n_lines && rc == 0; i++) {
		const struct hw_preset_line *l = &hw_preset_lines[i];
		if (l->preset == g->preset && (strcmp(l->key, "heartbeat") == 0 || strcmp(l->key, "goodbye") == 0 ||
		                               strcmp(l->key, "ignore") == 0))
			rc = add_match(g, l->value, strcspn(l->value, " "));
	}
	return rc;
}

static bool overlaps_heartbeat(const struct hw_find_group *g, const struct hw_topic *t)
{
	for (size_t i = 0; i < g->n_match; i++)
		if (&g->match[i] != t && hw_topic_filters_overlap(g->match[i].filter, t->filter))
			return true;
	return false;
}

/* Adds a line and its filter. A filter that is not allowed in monitor.conf is left out. Returns 0 or -ENOMEM. */
static int add_filter(const struct hw_finding *f, struct hw_find_group *g, const struct hw_find_line *l)
{
	char *filter = hw_line_filter(f, g, l);
	if (!filter)
		return 0;
	if (l->kind == HW_LINE_GOODBYE && strchr(filter, ' ')) { /* it would end the filter */
		free(filter);
		return 0;
	}
	int rc = add_match(g, filter, strlen(filter));
	const char *word = l->kind == HW_LINE_GOODBYE ? hw_word_offline(hw_word_pair(l->words)) : "";
	if (rc == 0 && l->kind == HW_LINE_HEARTBEAT)
		rc = hw_found_add(&g->out, "heartbeat = %s", filter);
	else if (rc == 0 && l->kind == HW_LINE_GOODBYE)
		rc = hw_found_add(&g->out, l->member ? "goodbye = %s %s=%s" : "goodbye = %s %s%s", filter,
		                  l->member ? l->member : "", word);
	else if (rc == 0 && overlaps_heartbeat(g, &g->match[g->n_match - 1]))
		rc = hw_found_add(&g->out, "ignore = %s", filter);
	else if (rc == 0)
		hw_topic_fini(&g->match[--g->n_match]);
	free(filter);
	return rc == -EINVAL ? 0 : rc;
}

static int add_own(const struct hw_finding *f, struct hw_find_group *g)
{
	int rc = 0;
	size_t heartbeats = 0;
	for (int kind = HW_LINE_HEARTBEAT; kind <= HW_LINE_IGNORE && rc == 0; kind++) {
		for (size_t i = 0; i < g->n_lines && rc == 0; i++)
			if (g->lines[i].kind == (enum hw_line_kind)kind)
				rc = add_filter(f, g, &g->lines[i]);
		heartbeats = kind == HW_LINE_HEARTBEAT ? g->n_match : heartbeats;
	}
	while (heartbeats == 0 && g->n_match > 0)
		hw_topic_fini(&g->match[--g->n_match]);
	return rc;
}

/* Whether a filter of the group matches the topic. Sets *id to the first capture. */
static bool find_match(const struct hw_find_group *g, const struct hw_seen_topic *s, struct hw_value *id)
{
	for (size_t i = 0; i < g->n_match; i++)
		if (!hw_topic_excludes(&g->match[i], s->text, s->len) &&
		    hw_topic_match(&g->match[i], s->text, s->len, &id->text, &id->len))
			return true;
	return false;
}

static bool takes(const struct hw_find_group *g, const struct hw_seen_topic *s)
{
	struct hw_value id;
	return find_match(g, s, &id);
}

/* Removes each topic from its group if no filter of that group matches it (a filter may have been left out). Then
 * counts the devices that have topics left. */
static void count_devices(struct hw_finding *f)
{
	for (size_t i = 0; i < f->n_devices; i++)
		f->devices[i].placed = false;
	for (size_t i = 0; i < f->n_groups; i++)
		f->groups[i].devices = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct hw_find_group *g = f->state[i] == HW_TOPIC_PLACED ? &f->groups[f->group[i] - 1] : NULL;
		struct hw_find_device *d = g ? &f->devices[f->device[i] - 1] : NULL;
		if (g && !takes(g, hw_topics_at(f->topics, i))) {
			f->state[i] = HW_TOPIC_FREE;
			f->group[i] = 0;
			f->device[i] = 0;
		} else if (g && !d->placed) {
			d->placed = true;
			g->example = g->devices++ ? g->example : (uint32_t)i;
		}
	}
	for (size_t i = 0; i < f->n; i++) {
		struct hw_find_group *g = f->state[i] == HW_TOPIC_PLACED ? &f->groups[f->group[i] - 1] : NULL;
		if (g && !g->preset && g->devices < 2) {
			f->state[i] = HW_TOPIC_FREE;
			f->group[i] = 0;
			f->device[i] = 0;
		}
	}
}

/* --- order -------------------------------------------------------------------------------------------------------- */

/* Returns a table: element [a * n + b] is how many topics of group b the filters of group a match. */
static uint32_t *count_steals(const struct hw_finding *f)
{
	uint32_t *steals = calloc(f->n_groups * f->n_groups + 1, sizeof(*steals));
	for (size_t i = 0; steals && i < f->n; i++) {
		if (f->state[i] != HW_TOPIC_PLACED)
			continue;
		for (size_t a = 0; a < f->n_groups; a++)
			if (a + 1 != f->group[i] && takes(&f->groups[a], hw_topics_at(f->topics, i)))
				steals[a * f->n_groups + f->group[i] - 1]++;
	}
	return steals;
}

/* Whether group a stands before group b, if neither matches topics of the other one. */
static bool precedes(const struct hw_find_group *a, const struct hw_find_group *b)
{
	if (a->deep != b->deep)
		return b->deep;
	if ((a->preset != 0) != (b->preset != 0))
		return a->preset != 0;
	return a->preset == 0 && a->devices > b->devices;
}

static void sort_groups(const struct hw_finding *f, const uint32_t *steals, uint16_t *order, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		size_t best = k;
		uint64_t best_sum = UINT64_MAX;
		for (size_t i = k; i < n; i++) {
			uint64_t sum = 0;
			for (size_t j = k; j < n; j++)
				sum += steals[order[i] * f->n_groups + order[j]];
			if (sum < best_sum ||
			    (sum == best_sum && precedes(&f->groups[order[i]], &f->groups[order[best]]))) {
				best = i;
				best_sum = sum;
			}
		}
		uint16_t first = order[best];
		memmove(&order[k + 1], &order[k], (best - k) * sizeof(*order));
		order[k] = first;
	}
}

/* --- what is ignored ---------------------------------------------------------------------------------------------- */

/* Adds a line `ignore` for a topic. If no device has a topic with the same first level, the line covers all topics
 * with that first level. */
static int ignore_topic(struct hw_finding *f, struct hw_find_group *g, size_t topic, const struct hw_keymap *used,
                        struct hw_keymap *ignored)
{
	const struct hw_seen_topic *s = hw_topics_at(f->topics, topic);
	const uint32_t *tokens = hw_levels_of(&f->levels, topic);
	bool whole = !hw_keymap_get(used, tokens[0]);
	size_t len = whole ? f->levels.all[tokens[0]].len : s->len;
	uint32_t *at = whole ? hw_keymap_put(ignored, tokens[0]) : NULL;
	g->foreign++;
	if (whole && !at)
		return -ENOMEM;
	if (whole && *at)
		return 0;
	if (whole)
		*at = 1;
	for (unsigned k = 0; k < (whole ? 1 : s->levels); k++)
		if (!f->levels.all[tokens[k]].writable)
			return 0;
	if ((g->foreign > IGNORES_MAX && !whole) || len + strlen("/#") > HW_CONF_TEXT_MAX)
		return 0;
	return hw_found_add(&g->out, whole ? "ignore = %.*s/#" : "ignore = %.*s", (int)len, s->text);
}

static int add_ignores(struct hw_finding *f, const uint16_t *order, size_t n)
{
	struct hw_keymap used = {0}, ignored[HW_FOUND_MAX] = {{0}};
	struct hw_value id;
	int rc = 0;
	for (size_t i = 0; i < f->n && rc == 0; i++)
		if (f->state[i] == HW_TOPIC_PLACED || f->state[i] == HW_TOPIC_BESIDE) {
			uint32_t *at = hw_keymap_put(&used, hw_levels_of(&f->levels, i)[0]);
			rc = at ? 0 : -ENOMEM;
			if (at)
				*at = 1;
		}
	for (size_t i = 0; i < f->n && rc == 0; i++) {
		const struct hw_seen_topic *s = hw_topics_at(f->topics, i);
		if (f->state[i] == HW_TOPIC_PLACED || f->state[i] == HW_TOPIC_BESIDE || s->live == 0)
			continue;
		for (size_t k = 0; k < n; k++)
			if (find_match(&f->groups[order[k]], s, &id)) {
				/* heartwheeld itself refuses an id that is not valid */
				if (id.len > 0 && !hw_id_valid(id.text, id.len))
					break;
				if (f->state[i] != HW_TOPIC_COMMAND || f->groups[order[k]].deep)
					rc = ignore_topic(f, &f->groups[order[k]], i, &used, &ignored[order[k]]);
				break;
			}
	}
	hw_keymap_fini(&used);
	for (size_t i = 0; i < HW_FOUND_MAX; i++)
		hw_keymap_fini(&ignored[i]);
	return rc;
}

/* Marks each group that shares an id with a group before it. */
static int compare_ids(struct hw_finding *f, const uint16_t *order, size_t n)
{
	struct hw_keymap known = {0};
	uint32_t place[HW_FOUND_MAX] = {0};
	int rc = 0;
	for (size_t k = 0; k < n; k++)
		place[order[k]] = (uint32_t)k + 1;
	for (unsigned round = 0; round < 2; round++)
		for (size_t i = 0; i < f->n_devices && rc == 0; i++) {
			const struct hw_find_device *d = &f->devices[i];
			uint32_t *at = place[d->group] ? hw_keymap_put(&known, d->id) : NULL;
			rc = place[d->group] && !at ? -ENOMEM : 0;
			if (at && (!*at || place[d->group] < *at))
				*at = place[d->group];
			if (at && round == 1 && *at < place[d->group])
				f->groups[d->group].shares_ids = true;
		}
	hw_keymap_fini(&known);
	return rc;
}

int hw_find_order(struct hw_finding *f, uint16_t *order, size_t *n)
{
	int rc = 0;
	*n = 0;
	for (size_t i = 0; i < f->n_groups && rc == 0; i++) {
		struct hw_find_group *g = &f->groups[i];
		rc = g->preset ? add_preset(g) : add_own(f, g);
	}
	if (rc)
		return rc;
	count_devices(f);
	for (size_t i = 0; i < f->n_groups; i++)
		if (f->groups[i].n_match > 0 && f->groups[i].devices >= (f->groups[i].preset ? 1 : 2))
			order[(*n)++] = (uint16_t)i;
	uint32_t *steals = count_steals(f);
	if (!steals)
		return -ENOMEM;
	sort_groups(f, steals, order, *n);
	free(steals);
	rc = compare_ids(f, order, *n);
	return rc ? rc : add_ignores(f, order, *n);
}
