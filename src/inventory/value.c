/* SPDX-License-Identifier: MIT */
/* See value.h. Each message says what the value must be. */
#include "inventory/value.h"

#include <errno.h>
#include <string.h>

#include "conf/conf.h"
#include "heartwheel/print.h"
#include "heartwheel/utf8.h"

const char *hw_inventory_show(const char *text, size_t len, char shown[HW_SHOWN_MAX])
{
	if (hw_utf8_show(text, len, shown, HW_SHOWN_MAX - 3) > 0 && len >= HW_SHOWN_MAX - 3)
		memcpy(shown + strlen(shown), "..", 3);
	return shown;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void hw_inventory_trim(const char **text, size_t *len)
{
	while (*len > 0 && is_space(**text)) {
		++*text;
		--*len;
	}
	while (*len > 0 && is_space((*text)[*len - 1]))
		--*len;
}

/* Copies a text of at most `max` bytes. `lines`: line ends and tabs are allowed; CRLF becomes LF. */
static int copy(char *to, size_t max, const char *column, const char *text, size_t len, bool lines,
                struct hw_entry_error *error)
{
	size_t at = 0;
	hw_inventory_trim(&text, &len);
	for (size_t i = 0, n; i < len; i += n) {
		uint32_t c;
		if (text[i] >= 0x20 && text[i] < 0x7f && at < max) { /* nearly every byte */
			to[at++] = text[i];
			n = 1;
			continue;
		}
		n = hw_utf8_next((const unsigned char *)text + i, len - i, &c);
		if (n == 0)
			return hw_entry_wrong(error, column, "byte 0x%02x is not UTF-8", (unsigned char)text[i]);
		if (c == '\r' && lines && i + 1 < len && text[i + 1] == '\n')
			continue;
		if (hw_utf8_is_control(c) && !(lines && (c == '\n' || c == '\t')))
			return hw_entry_wrong(error, column, "control character U+%04X: remove it", (unsigned)c);
		if (at + n > max)
			return hw_entry_wrong(error, column, "has %zu bytes, %zu is the most", len, max);
		memcpy(to + at, text + i, n);
		at += n;
	}
	to[at] = '\0';
	return 0;
}

int hw_entry_set_text(struct hw_expected_entry *e, enum hw_column column, const char *text, size_t len,
                      struct hw_entry_error *error)
{
	if (column == HW_COLUMN_NAME)
		return copy(e->name, HW_ENTRY_NAME_MAX, "name", text, len, false, error);
	if (column == HW_COLUMN_GROUP)
		return copy(e->group, HW_ENTRY_GROUP_MAX, "group", text, len, false, error);
	return copy(e->note, HW_ENTRY_NOTE_MAX, "note", text, len, true, error);
}

int hw_entry_set_timeout_ms(struct hw_expected_entry *e, int64_t ms, struct hw_entry_error *error)
{
	if (ms < HW_ENTRY_TIMEOUT_MIN_MS || ms > HW_ENTRY_TIMEOUT_MAX_MS)
		return hw_entry_wrong(error, "timeout", "out of range: give a duration of 100ms to 3650d");
	e->timeout_ms = ms;
	return 0;
}

int hw_entry_set_timeout(struct hw_expected_entry *e, const char *text, size_t len, struct hw_entry_error *error)
{
	char digits[32], shown[HW_SHOWN_MAX];
	int64_t ms = 0;
	hw_inventory_trim(&text, &len);
	e->timeout_ms = 0;
	if (len == 0)
		return 0;
	size_t n = len < sizeof(digits) ? len : 0;
	memcpy(digits, text, n);
	digits[n] = '\0';
	int rc = strlen(digits) == len ? hw_conf_duration_parse(digits, &ms) : -EINVAL;
	if (rc == -EINVAL)
		return hw_entry_wrong(error, "timeout",
		                      "'%s' is not a duration: give 100ms to 3650d, a whole number with ms, s, m, h or "
		                      "d (as in 5m)",
		                      hw_inventory_show(text, len, shown));
	return hw_entry_set_timeout_ms(e, rc ? INT64_MAX : ms, error);
}

int hw_entry_add_parent(struct hw_expected_entry *e, const char *text, size_t len, struct hw_entry_error *error)
{
	hw_inventory_trim(&text, &len);
	if (hw_entry_check_id("parent", text, len, error) < 0)
		return -EINVAL;
	if (memchr(text, '|', len))
		return hw_entry_wrong(error, "parent", "a parent's id cannot have | in it, which separates parents");
	for (unsigned i = 0; i < e->n_parents; i++)
		if (strlen(e->parents[i]) == len && memcmp(e->parents[i], text, len) == 0)
			return hw_entry_wrong(error, "parent", "'%s' is named twice", e->parents[i]);
	if (e->n_parents == HW_PARENTS_MAX)
		return hw_entry_wrong(error, "parent", "more than %d parents", HW_PARENTS_MAX);
	memcpy(e->parents[e->n_parents], text, len);
	e->parents[e->n_parents++][len] = '\0';
	return 0;
}

int hw_entry_set_label(struct hw_expected_entry *e, const char *name, const char *text, size_t len,
                       struct hw_entry_error *error)
{
	char value[HW_LABEL_VALUE_MAX + 1];
	unsigned at = 0;
	if (copy(value, HW_LABEL_VALUE_MAX, "", text, len, false, error) < 0) {
		hw_print(error->column, sizeof(error->column), "label.%s", name);
		return -EINVAL;
	}
	while (at < e->n_labels && strcmp(e->labels[at].name, name) < 0)
		at++;
	struct hw_label *label = &e->labels[at];
	size_t after = (e->n_labels - at) * sizeof(*label);
	bool there = at < e->n_labels && strcmp(label->name, name) == 0;
	if (!*value) {
		if (there) {
			memmove(label, label + 1, after - sizeof(*label));
			e->n_labels--;
		}
		return 0;
	}
	if (!there && e->n_labels == HW_LABELS_MAX) {
		hw_entry_wrong(error, "", "more than %d labels", HW_LABELS_MAX);
		hw_print(error->column, sizeof(error->column), "label.%s", name);
		return -EINVAL;
	}
	if (!there) {
		memmove(label + 1, label, after);
		e->n_labels++;
		memcpy(label->name, name, strlen(name) + 1);
	}
	memcpy(label->value, value, strlen(value) + 1);
	return 0;
}
