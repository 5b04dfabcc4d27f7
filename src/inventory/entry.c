/* SPDX-License-Identifier: MIT */
/* See entry.h: an entry as JSON and as cells, and what may stand in an id. */
#include "inventory/entry.h"

#include <errno.h>
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

void hw_entry_init(struct hw_entry *e)
{
	e->timeout_ms = e->since_ms = 0;
	e->n_parents = e->n_labels = 0;
	e->name[0] = e->group[0] = e->note[0] = e->source[0] = '\0';
}

bool hw_label_name_valid(const char *name, size_t len)
{
	if (len == 0 || len > HW_LABEL_NAME_MAX || (*name >= '0' && *name <= '9'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= '0' && name[i] <= '9') && name[i] != '_')
			return false;
	return true;
}

/* Whether a spreadsheet has made a number of the id and shortened it: 1.23457E+14. */
static bool is_shortened(const char *id, size_t len)
{
	size_t i = 0, digits = 0;
	for (; i < len && ((id[i] >= '0' && id[i] <= '9') || id[i] == '.' || id[i] == ','); i++)
		digits++;
	return digits > 0 && i + 2 < len && (id[i] == 'E' || id[i] == 'e') && id[i + 1] == '+' &&
	       strspn(id + i + 2, "0123456789") >= len - i - 2;
}

/* White space and invisible characters, also those that some scripts need inside of a word: at the ends of an id they
 * come from copying. */
static bool is_blank(uint32_t c)
{
	return c == ' ' || c == 0xa0 || c == 0x202f || c == 0x3000 || (c >= 0x2000 && c <= 0x200a) ||
	       hw_utf8_is_invisible(c);
}

/* Returns the character at an end of the id, or inside it, that cannot be seen; 0: none. */
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
	hw_inventory_show(id, len, shown);
	if (is_shortened(copy, len))
		return hw_entry_wrong(error, column,
		                      "'%s' is a number that a spreadsheet has shortened: format the column as text",
		                      shown);
	if (!hw_id_valid(id, len))
		return hw_entry_wrong(
			error, column,
			"'%s' cannot be the id of a device: no +, # and control characters, and valid UTF-8", shown);
	uint32_t c = find_blank(id, len);
	if (c)
		return hw_entry_wrong(error, column,
		                      "'%s' has white space at an end, or an invisible character (U+%04X): remove it",
		                      shown, (unsigned)c);
	return 0;
}

const char *hw_entry_label(const struct hw_entry *e, const char *name)
{
	for (unsigned i = 0; i < e->n_labels; i++)
		if (strcmp(e->labels[i].name, name) == 0)
			return e->labels[i].value;
	return NULL;
}

/* Appends formatted text, or a quoted text. All fits, because HW_ENTRY_JSON_MAX is enough for the longest entry. */
struct text {
	char *buf;
	size_t n, cap;
};

static void put_bytes(struct text *t, const char *bytes, size_t len)
{
	if (len >= t->cap - t->n)
		return;
	memcpy(t->buf + t->n, bytes, len);
	t->n += len;
	t->buf[t->n] = '\0';
}

static void put(struct text *t, const char *text)
{
	put_bytes(t, text, strlen(text));
}

/* The length of a text that JSON has unchanged between quotes; -1: it must be escaped. */
static int plain_length(const char *text)
{
	int n = 0;
	for (; text[n]; n++)
		if (text[n] < ' ' || text[n] == '"' || text[n] == '\\' || text[n] == 0x7f) /* UTF-8 is negative too */
			return -1;
	return n;
}

static void put_quoted(struct text *t, const char *text)
{
	int plain = plain_length(text);
	if (plain >= 0) {
		put_bytes(t, "\"", 1);
		put_bytes(t, text, (size_t)plain);
		put_bytes(t, "\"", 1);
		return;
	}
	size_t n = hw_json_quote(text, strlen(text), t->buf + t->n, t->cap - t->n);
	if (n < t->cap - t->n)
		t->n += n;
}

static void put_key(struct text *t, const char *key)
{
	if (t->n > 1)
		put(t, ",");
	put_quoted(t, key);
	put(t, ":");
}

static void put_text(struct text *t, const char *key, const char *text)
{
	if (!*text)
		return;
	put_key(t, key);
	put_quoted(t, text);
}

static void put_number(struct text *t, const char *key, int64_t v)
{
	if (v <= 0)
		return;
	put_key(t, key);
	char digits[24], *at = digits + sizeof(digits);
	for (; v > 0; v /= 10)
		*--at = (char)('0' + v % 10);
	put_bytes(t, at, (size_t)(digits + sizeof(digits) - at));
}

static void put_parents(struct text *t, const struct hw_entry *e)
{
	if (!e->n_parents)
		return;
	put_key(t, "parent");
	for (unsigned i = 0; i < e->n_parents; i++) {
		put(t, i ? "," : "[");
		put_quoted(t, e->parents[i]);
	}
	put(t, "]");
}

static void put_labels(struct text *t, const struct hw_entry *e)
{
	if (!e->n_labels)
		return;
	put_key(t, "labels");
	for (unsigned i = 0; i < e->n_labels; i++) {
		put(t, i ? "," : "{");
		put_quoted(t, e->labels[i].name);
		put(t, ":");
		put_quoted(t, e->labels[i].value);
	}
	put(t, "}");
}

size_t hw_entry_print(const struct hw_entry *e, char *buf, size_t cap)
{
	struct text t = {.buf = buf, .cap = cap};
	put(&t, "{");
	put_text(&t, "name", e->name);
	put_text(&t, "group", e->group);
	put_parents(&t, e);
	put_labels(&t, e);
	put_number(&t, "timeout_ms", e->timeout_ms);
	put_text(&t, "note", e->note);
	put_text(&t, "source", e->source);
	put_number(&t, "since_ms", e->since_ms);
	put(&t, "}");
	return t.n;
}

size_t hw_entry_print_parents(const struct hw_entry *e, char *buf, size_t cap)
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

size_t hw_entry_print_labels(const struct hw_entry *e, char *buf, size_t cap)
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
