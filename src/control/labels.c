/* SPDX-License-Identifier: MIT */
/* See labels.h. The table keeps entries as JSON. */
#include "control/labels.h"

#include <errno.h>
#include <string.h>

#include "control/parts.h"
#include "heartwheel/expected.h"
#include "heartwheel/glob.h"
#include "heartwheel/print.h"
#include "heartwheel/report.h"
#include "heartwheel/unseen.h"
#include "http/json.h"
#include "inventory/labels.h"

/* Returns the text of the device's entry. NULL: the device has no entry, or an empty one. */
static struct hw_id text_of(const struct hw_control *c, struct hw_id id)
{
	const struct hw_expected *e = hw_monitor_expected(c->monitor);
	uint32_t i = hw_expected_count(e) > 0 ? hw_expected_find(e, id.text, id.len) : HW_NIL;
	struct hw_id text = i == HW_NIL ? (struct hw_id){0} : hw_expected_at(e, i).text;
	return text.len > 2 ? text : (struct hw_id){0};
}

static bool read_entry(const struct hw_control *c, struct hw_id id, struct hw_expected_entry *out)
{
	struct hw_entry_error error;
	struct hw_id text = text_of(c, id);
	return text.text && hw_entry_parse(out, text.text, text.len, &error) == 0;
}

void hw_write_labels(struct hw_json *j, const struct hw_control *c, struct hw_id id)
{
	struct hw_expected_entry e;
	struct hw_labels all;
	bool listed = read_entry(c, id, &e);
	hw_labels_find(c->monitor, id, listed ? &e : NULL, &all);
	if (listed && *e.name)
		hw_json_text(j, "name", e.name);
	if (all.n > 0) {
		hw_json_open_member(j, "labels", '{');
		for (unsigned k = 0; k < all.n; k++)
			hw_json_text(j, all.at[k].name, all.at[k].value);
		hw_json_close(j, '}');
	}
	if (listed && *e.note)
		hw_json_text(j, "note", e.note);
}

bool hw_contains_lower(const char *text, size_t len, const char *needle, size_t needle_len)
{
	for (size_t at = 0; at + needle_len <= len; at++) {
		size_t i = 0;
		while (i < needle_len && hw_lower(text[at + i]) == needle[i])
			i++;
		if (i == needle_len)
			return true;
	}
	return false;
}

void hw_label_filter_search(struct hw_label_filter *f, const char *needle)
{
	char quoted[sizeof(f->quoted)];
	hw_print(f->search, sizeof(f->search), "%s", needle);
	size_t n = hw_json_quote(needle, strlen(needle), quoted, sizeof(quoted));
	f->quoted_len = n >= 2 && n < sizeof(quoted) ? n - 2 : 0;
	memcpy(f->quoted, quoted + 1, f->quoted_len);
}

int hw_label_filter_label(struct hw_label_filter *f, const char *text)
{
	const char *equals = strchr(text, '=');
	if (!equals || !hw_label_name_valid(text, (size_t)(equals - text)) || strlen(equals + 1) > HW_LABEL_VALUE_MAX)
		return -EINVAL;
	hw_print(f->name, sizeof(f->name), "%.*s", (int)(equals - text), text);
	hw_print(f->glob, sizeof(f->glob), "%s", equals + 1);
	return 0;
}

bool hw_label_filter_contains(const struct hw_label_filter *f, const struct hw_control *c, struct hw_id id)
{
	struct hw_expected_entry e;
	struct hw_labels all;
	struct hw_id text = text_of(c, id);
	size_t n = strlen(f->search);
	if (!(text.text && hw_contains_lower(text.text, text.len, f->quoted, f->quoted_len)) &&
	    !hw_labels_of_group(c->monitor, id))
		return false;
	bool listed = read_entry(c, id, &e);
	if (listed && (hw_contains_lower(e.name, strlen(e.name), f->search, n) ||
	               hw_contains_lower(e.note, strlen(e.note), f->search, n)))
		return true;
	/* A label of the entry replaces the group's label of the same name, so the labels are merged before the
	 * search. */
	hw_labels_find(c->monitor, id, listed ? &e : NULL, &all);
	bool found = false;
	for (unsigned k = 0; k < all.n && !found; k++)
		found = hw_contains_lower(all.at[k].value, strlen(all.at[k].value), f->search, n);
	return found;
}

bool hw_label_filter_has(const struct hw_label_filter *f, const struct hw_control *c, struct hw_id id)
{
	struct hw_expected_entry e;
	struct hw_labels all;
	hw_labels_find(c->monitor, id, read_entry(c, id, &e) ? &e : NULL, &all);
	const char *value = hw_labels_value(&all, f->name);
	return value && hw_glob(f->glob, value, strlen(value));
}
