/* SPDX-License-Identifier: MIT */
/* Makes a group from its settings: compiles its filters, goodbyes, parents, labels and topics. See group_compile.h. */
#include "group_compile.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/filter_index.h"
#include "heartwheel/fnv.h"

/* The least goodbye_delay of a bridged group. When a broker stops, it publishes its clients' wills over its bridge 12
 * to 86 ms (measured) before it publishes the bridge's new state. */
#define BRIDGED_DELAY_MS 2000

void hw_group_free(struct hw_group *group)
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

int hw_group_new(const struct hw_group_spec *spec, unsigned rank, struct hw_group **out)
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
		hw_group_free(group);
	else
		*out = group;
	return rc;
}
