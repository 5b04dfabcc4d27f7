/* SPDX-License-Identifier: MIT */
/* See entry.h: makes a patch from cells, parses a patch or an entry from JSON, and applies a patch to an entry. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/print.h"
#include "inventory/entry.h"
#include "inventory/value.h"

/* The longest JSON text of a value. A valid value of 1 KiB would be longer if each of its bytes were escaped, but no
 * writer does that. */
#define VALUE_MAX 4096

void hw_patch_init(struct hw_patch *p)
{
	p->given = 0;
	p->n_cleared = 0;
	hw_entry_init(&p->to);
}

static int set_parents(struct hw_expected_entry *e, const char *text, size_t len, struct hw_entry_error *error)
{
	const char *end = text + len;
	e->n_parents = 0;
	hw_inventory_trim(&text, &len);
	if (len == 0)
		return 0;
	for (end = text + len; text <= end;) {
		const char *bar = memchr(text, '|', (size_t)(end - text));
		const char *next = bar ? bar : end;
		if (hw_entry_add_parent(e, text, (size_t)(next - text), error) < 0)
			return -EINVAL;
		text = next + 1;
	}
	return 0;
}

/* Puts a label into the patch; an empty value clears it. */
static int set_label(struct hw_patch *p, const char *name, const char *text, size_t len, struct hw_entry_error *error)
{
	if (hw_entry_set_label(&p->to, name, text, len, error) < 0)
		return -EINVAL;
	if (hw_entry_label(&p->to, name) || p->given & 1U << HW_COLUMN_LABELS)
		return 0;
	if (p->n_cleared == HW_PATCH_LABELS_MAX)
		return hw_entry_wrong(error, "labels", "more than %d labels", HW_PATCH_LABELS_MAX);
	memcpy(p->cleared[p->n_cleared++], name, strlen(name) + 1);
	return 0;
}

static int check_label_name(const char *name, size_t len, char to[HW_LABEL_NAME_MAX + 1], struct hw_entry_error *error)
{
	char shown[HW_SHOWN_MAX];
	hw_inventory_trim(&name, &len);
	if (!hw_label_name_valid(name, len))
		return hw_entry_wrong(error, "labels",
		                      "'%s' cannot be the name of a label: a to z, 0 to 9 and _, at most %d, no digit "
		                      "first",
		                      hw_inventory_show(name, len, shown), HW_LABEL_NAME_MAX);
	memcpy(to, name, len);
	to[len] = '\0';
	return 0;
}

/* Parses the value of a label in a cell "labels", and moves *at after its ';'. Returns the value's length, or -1. */
static int label_value(const char *text, size_t len, size_t *at, char value[], size_t cap)
{
	size_t i = *at, n = 0;
	bool quoted;
	while (i < len && text[i] == ' ')
		i++;
	quoted = i < len && text[i] == '"';
	for (i += quoted; i < len; i++) {
		if (quoted && text[i] == '"') {
			if (i + 1 == len || text[i + 1] != '"')
				break;
			i++;
		} else if (!quoted && text[i] == ';') {
			break;
		}
		if (n == cap)
			return -1;
		value[n++] = text[i];
	}
	if (quoted) {
		if (i == len)
			return -1;
		for (i++; i < len && text[i] == ' ';)
			i++;
		if (i < len && text[i] != ';')
			return -1;
	}
	*at = i + 1;
	return (int)n;
}

/* All labels in one cell: site=north;floor=2 */
static int set_labels(struct hw_patch *p, const char *text, size_t len, struct hw_entry_error *error)
{
	char name[HW_LABEL_NAME_MAX + 1], value[VALUE_MAX], shown[HW_SHOWN_MAX];
	p->to.n_labels = p->n_cleared = 0;
	p->given |= 1U << HW_COLUMN_LABELS;
	for (size_t at = 0; at < len;) {
		const char *from = text + at;
		const char *equals = memchr(from, '=', len - at), *semicolon = memchr(from, ';', len - at);
		size_t rest = semicolon ? (size_t)(semicolon - from) : len - at;
		const char *part = from;
		size_t part_len = rest;
		hw_inventory_trim(&part, &part_len);
		if (part_len == 0) { /* nothing between two ; */
			at += rest + 1;
			continue;
		}
		if (!equals || (semicolon && semicolon < equals))
			return hw_entry_wrong(error, "labels", "'%s' has no =: write NAME=VALUE;NAME=VALUE",
			                      hw_inventory_show(from, rest, shown));
		if (check_label_name(from, (size_t)(equals - from), name, error) < 0)
			return -EINVAL;
		if (hw_entry_label(&p->to, name))
			return hw_entry_wrong(error, "labels", "label '%s' is named twice", name);
		at = (size_t)(equals - text) + 1;
		int n = label_value(text, len, &at, value, sizeof(value));
		if (n < 0)
			return hw_entry_wrong(error, "labels",
			                      "the value of label '%s' is too long, or its quotes are not closed",
			                      name);
		if (set_label(p, name, value, (size_t)n, error) < 0)
			return -EINVAL;
	}
	return 0;
}

int hw_patch_set(struct hw_patch *p, enum hw_column column, const char *label, const char *text, size_t len,
                 struct hw_entry_error *error)
{
	p->given |= 1U << column;
	switch (column) {
	case HW_COLUMN_NAME:
	case HW_COLUMN_GROUP:
	case HW_COLUMN_NOTE:
		return hw_entry_set_text(&p->to, column, text, len, error);
	case HW_COLUMN_PARENT:
		return set_parents(&p->to, text, len, error);
	case HW_COLUMN_LABELS:
		return set_labels(p, text, len, error);
	case HW_COLUMN_TIMEOUT:
		return hw_entry_set_timeout(&p->to, text, len, error);
	case HW_COLUMN_LABEL:
		return set_label(p, label, text, len, error);
	case HW_COLUMN_ID:
		break;
	}
	return hw_entry_wrong(error, "id", "is no value of an entry");
}

/* --- JSON --- */

/* Converts a JSON value to text: a string is unquoted; a number, true and false stay as they are written; null
 * becomes an empty text. */
static int text_of(const struct hw_json_member *m, const char *column, char buf[VALUE_MAX], size_t *len,
                   struct hw_entry_error *error)
{
	int n;
	*len = 0;
	if (m->value_len > VALUE_MAX)
		return hw_entry_wrong(error, column, "has %zu bytes: too long", m->value_len);
	if (*m->value == '"') {
		n = hw_json_unquote(m->value, m->value_len, buf);
		if (n < 0)
			return hw_entry_wrong(error, column, "half of a surrogate pair (\\ud800) is no text");
		*len = (size_t)n;
		return 0;
	}
	if (*m->value == '[' || *m->value == '{')
		return hw_entry_wrong(error, column, "is %s, and must be a text or null",
		                      *m->value == '[' ? "an array" : "an object");
	if (*m->value == 'n')
		return 0;
	memcpy(buf, m->value, m->value_len);
	*len = m->value_len;
	return 0;
}

static int read_parents(struct hw_patch *p, const struct hw_json_member *m, struct hw_entry_error *error)
{
	char buf[VALUE_MAX];
	struct hw_json_member element;
	size_t at = 0, len;
	p->given |= 1U << HW_COLUMN_PARENT;
	p->to.n_parents = 0;
	if (*m->value != '[') {
		if (text_of(m, "parent", buf, &len, error) < 0)
			return -EINVAL;
		return hw_patch_set(p, HW_COLUMN_PARENT, NULL, buf, len, error);
	}
	while (hw_json_array_next(m->value, m->value_len, &at, &element))
		if (text_of(&element, "parent", buf, &len, error) < 0 ||
		    hw_entry_add_parent(&p->to, buf, len, error) < 0)
			return -EINVAL;
	return 0;
}

static int read_label(struct hw_patch *p, const char *key, size_t key_len, const struct hw_json_member *m,
                      struct hw_entry_error *error)
{
	char name[HW_LABEL_NAME_MAX + 1], buf[VALUE_MAX];
	size_t len;
	if (check_label_name(key, key_len, name, error) < 0)
		return -EINVAL;
	if (text_of(m, "", buf, &len, error) < 0) {
		hw_print(error->column, sizeof(error->column), "label.%s", name);
		return -EINVAL;
	}
	p->given |= 1U << HW_COLUMN_LABEL;
	return set_label(p, name, buf, len, error);
}

static int read_labels(struct hw_patch *p, const struct hw_json_member *m, bool merge, struct hw_entry_error *error)
{
	struct hw_json_member label;
	size_t at = 0;
	if (*m->value != '{' && *m->value != 'n')
		return hw_entry_wrong(error, "labels", "must be an object or null");
	if (!merge || *m->value == 'n') {
		p->given |= 1U << HW_COLUMN_LABELS;
		p->n_cleared = 0;
	}
	while (*m->value == '{' && hw_json_object_next(m->value, m->value_len, &at, &label))
		if (read_label(p, label.key, label.key_len, &label, error) < 0)
			return -EINVAL;
	return 0;
}

static int read_timeout_ms(struct hw_patch *p, const struct hw_json_member *m, struct hw_entry_error *error)
{
	char digits[24];
	p->given |= 1U << HW_COLUMN_TIMEOUT;
	p->to.timeout_ms = 0;
	if (*m->value == 'n')
		return 0;
	hw_print(digits, sizeof(digits), "%.*s", (int)(m->value_len < 24 ? m->value_len : 23), m->value);
	if (m->value_len > 19 || strspn(digits, "0123456789") != m->value_len)
		return hw_entry_wrong(error, "timeout_ms", "must be a whole number of milliseconds, or null");
	return hw_entry_set_timeout_ms(&p->to, strtoll(digits, NULL, 10), error);
}

static bool is_key(const struct hw_json_member *m, const char *key)
{
	return m->key_len == strlen(key) && memcmp(m->key, key, m->key_len) == 0;
}

/* The columns whose values are texts. */
static const struct {
	const char *name;
	enum hw_column column;
} texts[] = {
	{"name", HW_COLUMN_NAME}, {"group", HW_COLUMN_GROUP}, {"note", HW_COLUMN_NOTE}, {"timeout", HW_COLUMN_TIMEOUT}};

/* Reads a member of an entry. Returns 1 if it is none. */
static int read_member(struct hw_patch *p, const struct hw_json_member *m, bool merge, struct hw_entry_error *error)
{
	char buf[VALUE_MAX];
	size_t len;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (is_key(m, texts[i].name)) {
			if (text_of(m, texts[i].name, buf, &len, error) < 0)
				return -EINVAL;
			return hw_patch_set(p, texts[i].column, NULL, buf, len, error);
		}
	if (is_key(m, "parent"))
		return read_parents(p, m, error);
	if (is_key(m, "labels"))
		return read_labels(p, m, merge, error);
	if (is_key(m, "timeout_ms"))
		return read_timeout_ms(p, m, error);
	if (m->key_len > 6 && memcmp(m->key, "label.", 6) == 0)
		return read_label(p, m->key + 6, m->key_len - 6, m, error);
	return 1;
}

static int read_id(const struct hw_json_member *m, char id[HW_ID_MAX + 1], struct hw_entry_error *error)
{
	char buf[VALUE_MAX];
	size_t len;
	if (!id)
		return hw_entry_wrong(error, "id", "the id is in the path: remove it from the body");
	if (text_of(m, "id", buf, &len, error) < 0 || hw_entry_check_id("id", buf, len, error) < 0)
		return -EINVAL;
	memcpy(id, buf, len);
	id[len] = '\0';
	return 0;
}

/* Only a complete JSON object is checked further. Any other text gets one message. */
static int check_object(const char *json, size_t len, struct hw_entry_error *error)
{
	if (hw_json_object_valid(json, len))
		return 0;
	return hw_entry_wrong(error, "", "this is not a JSON object in UTF-8");
}

int hw_patch_parse(struct hw_patch *p, const char *json, size_t len, bool merge, char id[HW_ID_MAX + 1],
                   struct hw_entry_error *error)
{
	struct hw_json_member m;
	char shown[HW_SHOWN_MAX];
	size_t at = 0;
	hw_patch_init(p);
	if (id)
		*id = '\0';
	if (check_object(json, len, error) < 0)
		return -EINVAL;
	while (hw_json_object_next(json, len, &at, &m)) {
		if (is_key(&m, "source") || is_key(&m, "since_ms"))
			continue;
		int rc = is_key(&m, "id") ? read_id(&m, id, error) : read_member(p, &m, merge, error);
		if (rc < 0)
			return rc;
		if (rc)
			return hw_entry_wrong(error, hw_inventory_show(m.key, m.key_len, shown),
			                      "unknown column: there are id, name, group, parent, labels, label.NAME, "
			                      "timeout and note");
	}
	return id && !*id ? hw_entry_wrong(error, "id", "the id is missing") : 0;
}

static int read_source(struct hw_expected_entry *e, const struct hw_json_member *m, struct hw_entry_error *error)
{
	char buf[VALUE_MAX];
	size_t len;
	if (text_of(m, "source", buf, &len, error) < 0)
		return -EINVAL;
	if (len > HW_ENTRY_SOURCE_MAX || memchr(buf, '\0', len))
		return hw_entry_wrong(error, "source", "has %zu bytes, %d is the most", len, HW_ENTRY_SOURCE_MAX);
	memcpy(e->source, buf, len);
	e->source[len] = '\0';
	return 0;
}

int hw_entry_read(struct hw_expected_entry *e, const char *json, size_t len, struct hw_entry_error *error)
{
	struct hw_json_member m;
	struct hw_patch p;
	size_t at = 0;
	hw_patch_init(&p);
	while (hw_json_object_next(json, len, &at, &m)) {
		int rc = 0;
		if (is_key(&m, "source"))
			rc = read_source(&p.to, &m, error);
		else if (is_key(&m, "since_ms"))
			p.to.since_ms = m.value_len < 20 && *m.value >= '0' && *m.value <= '9'
			                        ? strtoll(m.value, NULL, 10) /* JSON goes on after a number */
			                        : 0;
		else
			rc = read_member(&p, &m, false, error);
		if (rc < 0)
			return rc;
	}
	memcpy(e, &p.to, offsetof(struct hw_expected_entry, labels) + p.to.n_labels * sizeof(*p.to.labels));
	return 0;
}

int hw_entry_parse(struct hw_expected_entry *e, const char *json, size_t len, struct hw_entry_error *error)
{
	return check_object(json, len, error) < 0 ? -EINVAL : hw_entry_read(e, json, len, error);
}

static void unquote(const struct hw_json_member *m, char *text)
{
	int n = hw_json_unquote(m->value, m->value_len, text);
	text[n > 0 ? n : 0] = '\0';
}

size_t hw_entry_outline(struct hw_expected_entry *e, const char *json, size_t len)
{
	struct hw_json_member m, parent;
	size_t at = 0, values_len = 0;
	hw_entry_init(e);
	while (hw_json_object_next(json, len, &at, &m)) {
		size_t from = (size_t)(m.key - 1 - json);
		bool is_source = is_key(&m, "source"), is_since = is_key(&m, "since_ms");
		if (!values_len && (is_source || is_since))
			values_len = from > 1 ? from - 1 : from;
		if (is_source)
			unquote(&m, e->source);
		else if (is_since)
			e->since_ms = strtoll(m.value, NULL, 10);
		else if (is_key(&m, "name"))
			unquote(&m, e->name);
		else if (is_key(&m, "group"))
			unquote(&m, e->group);
		else if (is_key(&m, "labels"))
			e->n_labels = 1;
		else if (is_key(&m, "timeout_ms"))
			e->timeout_ms = strtoll(m.value, NULL, 10);
		else if (is_key(&m, "parent"))
			for (size_t k = 0; hw_json_array_next(m.value, m.value_len, &k, &parent);)
				unquote(&parent, e->parents[e->n_parents++]);
	}
	return values_len ? values_len : len - 1;
}

int hw_entry_merge(struct hw_expected_entry *e, const struct hw_patch *p, struct hw_entry_error *error)
{
	if (p->given & 1U << HW_COLUMN_NAME)
		memcpy(e->name, p->to.name, strlen(p->to.name) + 1);
	if (p->given & 1U << HW_COLUMN_GROUP)
		memcpy(e->group, p->to.group, strlen(p->to.group) + 1);
	if (p->given & 1U << HW_COLUMN_NOTE)
		memcpy(e->note, p->to.note, strlen(p->to.note) + 1);
	if (p->given & 1U << HW_COLUMN_TIMEOUT)
		e->timeout_ms = p->to.timeout_ms;
	if (p->given & 1U << HW_COLUMN_PARENT) {
		e->n_parents = p->to.n_parents;
		memcpy(e->parents, p->to.parents, e->n_parents * sizeof(*e->parents));
	}
	if (p->given & 1U << HW_COLUMN_LABELS)
		e->n_labels = 0;
	for (unsigned i = 0; i < p->n_cleared; i++)
		if (hw_entry_set_label(e, p->cleared[i], "", 0, error) < 0)
			return -EINVAL;
	for (unsigned i = 0; i < p->to.n_labels; i++) {
		const struct hw_label *l = &p->to.labels[i];
		if (hw_entry_set_label(e, l->name, l->value, strlen(l->value), error) < 0)
			return -EINVAL;
	}
	return 0;
}
