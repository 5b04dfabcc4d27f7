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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/filter_index.h"
#include "heartwheel/fnv.h"
#include "match.h"
#include "takers.h"

/* The least goodbye_delay of a bridged group. When a broker stops, it publishes its clients' wills over its bridge 12
 * to 86 ms (measured) before it publishes the bridge's new state. */
#define BRIDGED_DELAY_MS 2000

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
	for (size_t i = 0; i < group->n_goodbye; i++)
		hw_goodbye_fini(&group->goodbye[i]);
	for (size_t i = 0; i < group->n_ignore; i++)
		hw_topic_fini(&group->ignore[i]);
	free(group->heartbeat);
	free(group->goodbye);
	free(group->ignore);
	for (size_t i = 0; i < group->n_whiles; i++)
		hw_while_fini(&group->whiles[i]);
	free(group->whiles);
	for (size_t i = 0; i < group->reading.n; i++)
		hw_field_fini(&group->field[i]);
	free(group->field);
	for (unsigned i = 0; i < group->n_parents; i++)
		hw_pattern_fini(&group->parents[i]);
	free(group->parents);
	for (unsigned i = 0; i < group->n_labels; i++)
		hw_group_label_fini(&group->labels[i]);
	free(group->labels);
	hw_topic_fini(&group->status);
	hw_topic_fini(&group->form);
	free(group->probe);
	free(group->id_prefix);
	free(group->name);
	free(group);
}

void hw_groups_fini(struct hw_groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		group_free(g->all[i]);
	hw_match_index_free(g->index);
	free(g->all);
	free(g->order);
	memset(g, 0, sizeof(*g));
}

/* Does not depend on the order of the list. */
static uint64_t hash_list(uint64_t h, const char *const *list, size_t n)
{
	uint64_t sum = n;
	for (size_t i = 0; i < n; i++)
		sum += hw_fnv64(HW_FNV64_BEGIN, list[i], strlen(list[i]));
	return hw_fnv64(h, &sum, sizeof(sum));
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	return hw_fnv64(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

static int compile_goodbyes(struct hw_group *group, const struct hw_group_spec *spec)
{
	const char *why;
	struct hw_filter_index heartbeats = {0};
	int rc = 0;
	for (size_t i = 0; i < group->n_heartbeat && spec->n_goodbye > 0 && rc == 0; i++)
		rc = hw_filter_index_add(&heartbeats, group->heartbeat[i].text, i);
	for (size_t i = 0; i < spec->n_goodbye && rc == 0; i++) {
		struct hw_goodbye *g = &group->goodbye[i];
		rc = hw_goodbye_compile(g, spec->goodbye[i], &why);
		group->n_goodbye += rc == 0;
		if (rc == 0)
			g->beats = hw_filter_index_equal(&heartbeats, g->topic.text, NULL, NULL);
	}
	hw_filter_index_fini(&heartbeats);
	return rc;
}

/* Compiles a list of templates. Counts in `*n` the templates that are compiled so far. On an error the caller
 * releases only these. */
static int compile_list(struct hw_topic *list, size_t *n, const char *const *texts, size_t n_texts,
                        enum hw_topic_kind kind)
{
	const char *why;
	for (; *n < n_texts; (*n)++) {
		int rc = hw_topic_compile(&list[*n], texts[*n], kind, &why);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static const struct hw_topic *filter_at(const struct hw_group *group, size_t i)
{
	return i < group->n_heartbeat ? &group->heartbeat[i] : &group->goodbye[i - group->n_heartbeat].topic;
}

/* Finds the capture {name...} of the group; empty: there is none. Returns -EINVAL if there are two: in an id, the
 * end of the first capture would not be clear. */
static int find_several(const struct hw_group *group, struct hw_value *name)
{
	bool several;
	*name = (struct hw_value){"", 0};
	for (size_t i = 0; i < group->n_heartbeat + group->n_goodbye; i++) {
		for (unsigned k = 0; k < filter_at(group, i)->n_captures; k++) {
			struct hw_value one = hw_topic_capture(filter_at(group, i), k, &several);
			if (!several)
				continue;
			if (name->len > 0 && (name->len != one.len || memcmp(name->text, one.text, one.len) != 0))
				return -EINVAL;
			*name = one;
		}
	}
	return 0;
}

/* Compiles a template of a group. If any filter of the group has {name...}, a plain {name} in this template counts
 * as {name...}. */
static int compile_widened(struct hw_topic *t, const char *text, const struct hw_group *group, enum hw_topic_kind kind)
{
	struct hw_value name;
	char *level = NULL, *wide = NULL;
	const char *why, *at = NULL;
	int rc = find_several(group, &name);
	if (rc != 0)
		return rc;
	if (name.len > 0) {
		if (asprintf(&level, "{%.*s}", (int)name.len, name.text) < 0)
			return -ENOMEM;
		at = strstr(text, level);
	}
	if (at && asprintf(&wide, "%.*s{%.*s...}%s", (int)(at - text), text, (int)name.len, name.text,
	                   at + strlen(level)) < 0)
		wide = NULL;
	rc = at && !wide ? -ENOMEM : hw_topic_compile(t, at ? wide : text, kind, &why);
	free(level);
	free(wide);
	return rc;
}

/* Resolves the names in a pattern to indexes of values. A name that the group's id does not use is added to `more`. */
static int bind_pattern(const struct hw_group *group, struct hw_pattern *p, struct hw_value more[HW_CAPTURES_MAX],
                        unsigned *n_more)
{
	for (unsigned k = 0; k < p->n_names; k++) {
		struct hw_value name = hw_pattern_name(p, k);
		uint8_t at = hw_topic_find_value(&group->form, more, *n_more, name);
		if (at == HW_SLOT_NONE) {
			at = (uint8_t)(group->form.n_captures + *n_more);
			if (at >= HW_CAPTURES_MAX || group->batch)
				return -EINVAL;
			more[(*n_more)++] = name;
		}
		p->slot[k] = at;
	}
	return 0;
}

static int bind_patterns(struct hw_group *group, struct hw_value more[HW_CAPTURES_MAX], unsigned *n_more)
{
	int rc = 0;
	*n_more = 0;
	for (unsigned i = 0; i < group->n_labels && rc == 0; i++)
		rc = bind_pattern(group, &group->labels[i].value, more, n_more);
	group->n_captured = *n_more;
	memcpy(group->captured, more, *n_more * sizeof(*more));
	for (unsigned i = 0; i < group->n_parents && rc == 0; i++)
		rc = bind_pattern(group, &group->parents[i], more, n_more);
	return rc;
}

static int compile_labels(struct hw_group *group, const struct hw_group_spec *spec)
{
	const char *why;
	if (spec->n_labels > HW_GROUP_LABELS_MAX)
		return -EINVAL;
	group->labels = calloc(spec->n_labels + 1, sizeof(*group->labels));
	if (!group->labels)
		return -ENOMEM;
	for (; group->n_labels < spec->n_labels; group->n_labels++) {
		int rc = hw_group_label_compile(&group->labels[group->n_labels], spec->labels[group->n_labels], &why);
		if (rc != 0)
			return rc;
	}
	group->labels_hash = hash_list(HW_FNV64_BEGIN, spec->labels, spec->n_labels);
	group->topics_hash = group->parents_hash ^ group->labels_hash;
	return 0;
}

static int compile_parents(struct hw_group *group, const struct hw_group_spec *spec)
{
	const char *why;
	if (spec->n_parents > HW_PARENTS_MAX)
		return -EINVAL;
	group->parents = calloc(spec->n_parents + 1, sizeof(*group->parents));
	if (!group->parents)
		return -ENOMEM;
	for (; group->n_parents < spec->n_parents; group->n_parents++) {
		int rc = hw_pattern_compile(&group->parents[group->n_parents], spec->parents[group->n_parents], &why);
		if (rc != 0)
			return rc;
	}
	group->parents_hash = hash_list(hash_text(HW_FNV64_BEGIN, spec->name), spec->parents, spec->n_parents) | 1;
	group->parent_death = spec->parent_death;
	group->child_proves = spec->child_proves || spec->parent_death == HW_PARENT_TAKE;
	return 0;
}

static int bind_status(struct hw_group *group)
{
	const char *why;
	int rc = hw_topic_bind(&group->status, &group->form, NULL, 0, &why);
	for (unsigned k = 0; rc == 0 && k < group->status.n_captures; k++)
		if (group->status.slot[k] == HW_SLOT_NONE)
			rc = -EINVAL;
	return rc;
}

/* Compiles the group's id, and binds the captures of the group's templates to it. */
static int compile_id(struct hw_group *group, const struct hw_group_spec *spec)
{
	const char *why;
	int rc = compile_widened(&group->form, spec->id && *spec->id ? spec->id : "{id}", group, HW_TOPIC_FORM);
	if (rc != 0)
		return rc;
	group->assembled = group->form.n_captures != 1 || strchr(group->form.text, '/');
	group->as_it_stands = !group->assembled && group->id_prefix_len == 0 && group->format != HW_FORMAT_HOMIE;
	struct hw_value more[HW_CAPTURES_MAX];
	unsigned n_more;
	rc = bind_patterns(group, more, &n_more);
	if (rc == 0 && group->batch)
		return group->assembled ? -EINVAL : 0;
	for (size_t i = 0; rc == 0 && i < group->n_heartbeat + group->n_goodbye; i++)
		rc = hw_topic_bind((struct hw_topic *)(uintptr_t)filter_at(group, i), &group->form, more, n_more, &why);
	return rc;
}

static int compile_filters(struct hw_group *group, const struct hw_group_spec *spec)
{
	int rc;
	if (spec->batch && spec->n_goodbye > 0)
		return -EINVAL;
	group->heartbeat = calloc(spec->n_heartbeat + 1, sizeof(*group->heartbeat));
	group->goodbye = calloc(spec->n_goodbye + 1, sizeof(*group->goodbye));
	group->ignore = calloc(spec->n_ignore + 1, sizeof(*group->ignore));
	if (!group->heartbeat || !group->goodbye || !group->ignore)
		return -ENOMEM;
	rc = compile_list(group->heartbeat, &group->n_heartbeat, spec->heartbeat, spec->n_heartbeat,
	                  spec->batch ? HW_TOPIC_BATCH : HW_TOPIC_ANY);
	if (rc == 0)
		rc = compile_goodbyes(group, spec);
	if (rc == 0)
		rc = compile_list(group->ignore, &group->n_ignore, spec->ignore, spec->n_ignore, HW_TOPIC_ANY);
	group->sorts = group->n_goodbye + group->n_ignore > 0;
	return rc;
}

static int compile_whiles(struct hw_group *group, const struct hw_group_spec *spec)
{
	const char *why;
	group->whiles = calloc(spec->n_whiles + 1, sizeof(*group->whiles));
	if (!group->whiles)
		return -ENOMEM;
	for (; group->n_whiles < spec->n_whiles; group->n_whiles++) {
		int rc = hw_while_compile(&group->whiles[group->n_whiles], spec->whiles[group->n_whiles], &why);
		if (rc != 0)
			return rc;
		group->bridged |= strncmp(group->whiles[group->n_whiles].topic, "$SYS/", 5) == 0;
	}
	if (group->bridged && group->goodbye_delay_ms < BRIDGED_DELAY_MS)
		group->goodbye_delay_ms = BRIDGED_DELAY_MS;
	return 0;
}

static int compile_fields(struct hw_group *group, const struct hw_group_spec *spec)
{
	const char *why;
	group->field = calloc(spec->n_field + 1, sizeof(*group->field));
	if (!group->field)
		return -ENOMEM;
	group->reading = (struct hw_reading){.fields = group->field, .plain = spec->format == HW_FORMAT_PLAIN};
	for (; group->reading.n < spec->n_field; group->reading.n++) {
		int rc = hw_field_compile(&group->field[group->reading.n], spec->field[group->reading.n], &why);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int compile_topics(struct hw_group *group, const struct hw_group_spec *spec)
{
	int rc = compile_filters(group, spec);
	if (rc == 0)
		rc = compile_whiles(group, spec);
	if (rc == 0)
		rc = compile_fields(group, spec);
	if (rc == 0)
		rc = compile_parents(group, spec);
	if (rc == 0)
		rc = compile_labels(group, spec);
	if (rc == 0)
		rc = compile_id(group, spec);
	if (rc != 0 || !spec->status || !*spec->status)
		return rc;
	rc = compile_widened(&group->status, spec->status, group, HW_TOPIC_FORM);
	return rc == 0 ? bind_status(group) : rc;
}

static uint64_t form_of(const struct hw_group_spec *spec)
{
	const int64_t numbers[] = {spec->max_age_ms, spec->format, spec->batch, spec->retained};
	uint64_t h = hw_fnv64(HW_FNV64_BEGIN, numbers, sizeof(numbers));
	h = hash_list(hash_list(h, spec->heartbeat, spec->n_heartbeat), spec->goodbye, spec->n_goodbye);
	h = hash_list(h, spec->ignore, spec->n_ignore);
	return hash_text(hash_text(h, spec->id && *spec->id ? spec->id : "{id}"), spec->id_prefix);
}

static int group_new(const struct hw_group_spec *spec, unsigned rank, struct hw_group **out)
{
	const char *prefix = spec->id_prefix ? spec->id_prefix : "", *probe = spec->probe ? spec->probe : "";
	struct hw_group *group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	*group = (struct hw_group){.timeout_ms = spec->timeout_ms,
	                           .timeout_max_ms = spec->timeout_max_ms,
	                           .first_within_ms = spec->first_within_ms,
	                           .learn = spec->learn,
	                           .timeout_min_ms = spec->timeout_min_ms,
	                           .mistakes = spec->mistakes,
	                           .mistakes_per_ms = spec->mistakes_per_ms,
	                           .learn_gaps = spec->learn_gaps,
	                           .goodbye_delay_ms = spec->goodbye_delay_ms,
	                           .max_age_ms = spec->max_age_ms,
	                           .max_offline_rate = spec->max_offline_rate,
	                           .online_after = spec->online_after,
	                           .format = spec->format,
	                           .batch = spec->batch,
	                           .canary = spec->canary,
	                           .retained = spec->retained,
	                           .probes = *probe ? spec->probes : 0,
	                           .probe_after_ms = spec->probe_after_ms,
	                           .probe = strdup(probe),
	                           .rank = rank,
	                           .form_hash = form_of(spec),
	                           .name = strdup(spec->name),
	                           .id_prefix = strdup(prefix),
	                           .id_prefix_len = strlen(prefix)};
	int rc = group->name && group->id_prefix && group->probe ? compile_topics(group, spec) : -ENOMEM;
	if (rc != 0)
		group_free(group);
	else
		*out = group;
	return rc;
}

/* Makes fresh[0 .. n), which the caller frees. */
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
		group_free(d->fresh[i]);
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
	int rc = copy ? group_new(&spec, UINT32_MAX, &g->all[g->n]) : -ENOMEM;
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
