/* SPDX-License-Identifier: MIT */
/* See entry.h: writes an entry as JSON and as cells, and checks ids. */
#include "inventory/entry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"
#include "heartwheel/topic.h"
#include "heartwheel/utf8.h"
#include "inventory/value.h"

int hw_entry_wrong(struct hw_entry_error *error, const char *column, const char *format, ...)
{
	va_list args;
	hw_print(error->column, sizeof(error->column), "%s", column);
	va_start(args, format);
	hw_vprint(error->message, sizeof(error->message), format, args);
	va_end(args);
	return -EINVAL;
}

void hw_entry_init(struct hw_expected_entry *e)
{
	e->timeout_ms = e->since_ms = 0;
	e->n_parents = e->n_labels = 0;
	e->name[0] = e->group[0] = e->note[0] = e->source[0] = '\0';
}

/* Whether the id looks like a number that a spreadsheet has shortened, such as 1.23457E+14. */
static bool is_shortened(const char *id, size_t len)
{
	size_t i = 0, digits = 0;
	for (; i < len && ((id[i] >= '0' && id[i] <= '9') || id[i] == '.' || id[i] == ','); i++)
		digits++;
	return digits > 0 && i + 2 < len && (id[i] == 'E' || id[i] == 'e') && id[i + 1] == '+' &&
	       strspn(id + i + 2, "0123456789") >= len - i - 2;
}

/* White space and invisible characters. At an end of an id, such characters come from copying a text, even characters
 * that some scripts need inside of a word. */
static bool is_blank(uint32_t c)
{
	return c == ' ' || c == 0xa0 || c == 0x202f || c == 0x3000 || (c >= 0x2000 && c <= 0x200a) ||
	       hw_utf8_is_invisible(c);
}

/* Returns white space at an end of the id, or an invisible character anywhere in it; 0: there is none. */
static uint32_t find_blank(const char *id, size_t len)
{
	uint32_t c = 0;
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)id + i, len - i, &c);
		if ((i == 0 && is_blank(c)) || (hw_utf8_is_invisible(c) && c != 0x200c && c != 0x200d))
			return c;
	}
	return is_blank(c) ? c : 0;
}

int hw_entry_check_id(const char *column, const char *id, size_t len, struct hw_entry_error *error)
{
	char copy[HW_ID_MAX + 1], shown[HW_SHOWN_MAX];
	if (len == 0)
		return hw_entry_wrong(error, column, "the id is missing");
	if (len > HW_ID_MAX)
		return hw_entry_wrong(error, column, "the id has %zu bytes, %d is the most", len, HW_ID_MAX);
	memcpy(copy, id, len);
	copy[len] = '\0';
	if (is_shortened(copy, len))
		return hw_entry_wrong(error, column,
		                      "'%s' is a number that a spreadsheet has shortened: format the column as text",
		                      hw_inventory_show(id, len, shown));
	if (!hw_id_valid(id, len))
		return hw_entry_wrong(
			error, column,
			"'%s' cannot be the id of a device: no +, # and control characters, and valid UTF-8",
			hw_inventory_show(id, len, shown));
	uint32_t c = find_blank(id, len);
	if (c)
		return hw_entry_wrong(error, column,
		                      "'%s' has white space at an end, or an invisible character (U+%04" PRIX32
		                      "): remove it",
		                      hw_inventory_show(id, len, shown), c);
	return 0;
}

const char *hw_entry_label(const struct hw_expected_entry *e, const char *name)
{
	for (unsigned i = 0; i < e->n_labels; i++)
		if (strcmp(e->labels[i].name, name) == 0)
			return e->labels[i].value;
	return NULL;
}

/* Appends text. All of it fits, because HW_ENTRY_JSON_MAX is enough for the longest entry. */
struct text {
	char *buf;
	size_t n, cap;
};

static void put(struct text *t, const char *text)
{
	size_t len = strlen(text);
	if (len >= t->cap - t->n)
		return;
	memcpy(t->buf + t->n, text, len + 1);
	t->n += len;
}

static void write_text(struct hw_json *j, const char *key, const char *text)
{
	if (*text)
		hw_json_text(j, key, text);
}

static void write_number(struct hw_json *j, const char *key, int64_t v)
{
	if (v > 0)
		hw_json_int(j, key, v);
}

static void write_parents(struct hw_json *j, const struct hw_expected_entry *e)
{
	if (!e->n_parents)
		return;
	hw_json_open_member(j, "parent", '[');
	for (unsigned i = 0; i < e->n_parents; i++)
		hw_json_item(j, e->parents[i]);
	hw_json_close(j, ']');
}

static void write_labels(struct hw_json *j, const struct hw_expected_entry *e)
{
	if (!e->n_labels)
		return;
	hw_json_open_member(j, "labels", '{');
	for (unsigned i = 0; i < e->n_labels; i++)
		hw_json_named_text(j, e->labels[i].name, e->labels[i].value);
	hw_json_close(j, '}');
}

size_t hw_entry_print(const struct hw_expected_entry *e, char *buf, size_t cap)
{
	struct hw_json j;
	hw_json_begin_text(&j, buf, cap);
	hw_json_open(&j, '{');
	write_text(&j, "name", e->name);
	write_text(&j, "group", e->group);
	write_parents(&j, e);
	write_labels(&j, e);
	write_number(&j, "timeout_ms", e->timeout_ms);
	write_text(&j, "note", e->note);
	write_text(&j, "source", e->source);
	write_number(&j, "since_ms", e->since_ms);
	hw_json_close(&j, '}');
	hw_json_end_text(&j);
	return j.n;
}

size_t hw_entry_print_parents(const struct hw_expected_entry *e, char *buf, size_t cap)
{
	struct text t = {.buf = buf, .cap = cap};
	put(&t, "");
	for (unsigned i = 0; i < e->n_parents; i++) {
		put(&t, i ? "|" : "");
		put(&t, e->parents[i]);
	}
	return t.n;
}

static void put_label_value(struct text *t, const char *value)
{
	if (!strpbrk(value, ";\"")) {
		put(t, value);
		return;
	}
	put(t, "\"");
	for (const char *s = value; *s; s++) {
		char two[3] = {*s, *s == '"' ? '"' : '\0', '\0'};
		put(t, two);
	}
	put(t, "\"");
}

size_t hw_entry_print_labels(const struct hw_expected_entry *e, char *buf, size_t cap)
{
	struct text t = {.buf = buf, .cap = cap};
	put(&t, "");
	for (unsigned i = 0; i < e->n_labels; i++) {
		put(&t, i ? ";" : "");
		put(&t, e->labels[i].name);
		put(&t, "=");
		put_label_value(&t, e->labels[i].value);
	}
	return t.n;
}
