/* SPDX-License-Identifier: MIT */
/* See labels.h. */
#include "inventory/labels.h"

#include <string.h>

#include "heartwheel/json_writer.h"
#include "heartwheel/unseen.h"

/* Returns the group of an id, and its record in *d (NULL: the id is expected, but no device has it). Returns NULL for
 * an id that is unknown. */
static const struct hw_group *group_of(const struct hw_monitor *m, struct hw_id id, const struct hw_device **d)
{
	const struct hw_registry *r = hw_monitor_registry(m);
	const struct hw_expected *e = hw_monitor_expected(m);
	uint32_t i = hw_registry_find(r, id.text, id.len);
	*d = i == HW_NIL ? NULL : hw_registry_at(r, i);
	if (*d)
		return hw_monitor_group_of(m, *d);
	i = hw_expected_find(e, id.text, id.len);
	if (i == HW_NIL)
		return NULL;
	struct hw_expected_view v = hw_expected_at(e, i);
	return hw_monitor_expected_group(m, &v);
}

/* Adds a label in its place; replaces one of the same name. */
static void put(struct hw_labels *l, const char *name, const char *value)
{
	unsigned k = 0;
	while (k < l->n && strcmp(l->at[k].name, name) < 0)
		k++;
	if (k == l->n || strcmp(l->at[k].name, name) != 0) {
		memmove(&l->at[k + 1], &l->at[k], (l->n - k) * sizeof(*l->at));
		l->n++;
		memcpy(l->at[k].name, name, strlen(name) + 1);
	}
	memcpy(l->at[k].value, value, strlen(value) + 1);
}

void hw_labels_find(const struct hw_monitor *m, struct hw_id id, const struct hw_expected_entry *entry,
                    struct hw_labels *out)
{
	const struct hw_device *d;
	const struct hw_group *g = group_of(m, id, &d);
	struct hw_id captured = d ? hw_monitor_captured(m, d) : (struct hw_id){0};
	char value[HW_LABEL_VALUE_MAX + 1];
	out->n = 0;
	for (unsigned k = 0; g && k < g->n_labels; k++)
		if (hw_group_label_value(g, k, id, captured, value) > 0)
			put(out, g->labels[k].name, value);
	for (unsigned k = 0; entry && k < entry->n_labels; k++)
		put(out, entry->labels[k].name, entry->labels[k].value);
}

bool hw_labels_of_group(const struct hw_monitor *m, struct hw_id id)
{
	const struct hw_device *d;
	const struct hw_group *g = group_of(m, id, &d);
	return g && g->n_labels > 0;
}

const char *hw_labels_value(const struct hw_labels *l, const char *name)
{
	for (unsigned k = 0; k < l->n; k++)
		if (strcmp(l->at[k].name, name) == 0)
			return l->at[k].value;
	return NULL;
}

size_t hw_labels_print(const struct hw_labels *l, char *buf, size_t cap)
{
	struct hw_json j;
	hw_json_begin_text(&j, buf, cap);
	hw_json_open(&j, '{');
	for (unsigned k = 0; k < l->n; k++)
		hw_json_text(&j, l->at[k].name, l->at[k].value);
	hw_json_close(&j, '}');
	int n = hw_json_end_text(&j);
	return n > 0 ? (size_t)n : 0;
}
