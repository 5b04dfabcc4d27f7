/* SPDX-License-Identifier: MIT */
/*
 * See json_writer.h. Invariant: `fresh` is true if no comma is needed before the next key, bracket or element. Cost:
 * one copy into the buffer. Bytes that need no escaping are copied together.
 */
#include "heartwheel/json_writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "heartwheel/report.h"
#include "heartwheel/utf8.h"

#define FIRST_ALLOC 256

/* --- where to ------------------------------------------------------------------------------------------------------
 */

static void put(struct hw_json *j, const char *text, size_t len)
{
	while (len > j->cap - j->n) {
		size_t part = j->cap - j->n;
		if (part > 0)
			memcpy(j->buf + j->n, text, part);
		j->n += part;
		text += part;
		len -= part;
		if (!j->more || !j->more(j)) {
			j->lost += len;
			return;
		}
	}
	if (len > 0)
		memcpy(j->buf + j->n, text, len);
	j->n += len;
}

static void put_byte(struct hw_json *j, char c)
{
	if (j->n < j->cap)
		j->buf[j->n++] = c;
	else
		put(j, &c, 1);
}

void hw_json_begin_text(struct hw_json *j, char *buf, size_t cap)
{
	j->buf = buf;
	j->cap = cap - 1;
	j->n = j->lost = 0;
	j->fresh = true;
	j->replaced = false;
	j->more = NULL;
}

int hw_json_end_text(struct hw_json *j)
{
	j->buf[j->n] = '\0';
	return j->lost ? -1 : (int)j->n;
}

static bool grow(struct hw_json *j)
{
	size_t size = j->buf ? 2 * (j->cap + 1) : FIRST_ALLOC;
	char *buf = j->lost ? NULL : realloc(j->buf, size);
	if (!buf)
		return false;
	j->buf = buf;
	j->cap = size - 1;
	return true;
}

void hw_json_begin_alloc(struct hw_json *j)
{
	j->buf = NULL;
	j->cap = j->n = j->lost = 0;
	j->fresh = true;
	j->replaced = false;
	j->more = grow;
}

char *hw_json_end_alloc(struct hw_json *j, size_t *len)
{
	char *text = j->buf;
	j->buf = NULL;
	if (text && j->lost) {
		free(text);
		text = NULL;
	}
	if (text)
		text[j->n] = '\0';
	if (len)
		*len = text ? j->n : 0;
	return text;
}

/* --- texts ---------------------------------------------------------------------------------------------------------
 */

static void put_escaped(struct hw_json *j, unsigned char c)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
	const char *at = c ? strchr(plain, c) : NULL;
	char esc[8];
	size_t n =
		at ? hw_print(esc, sizeof(esc), "\\%c", letter[at - plain]) : hw_print(esc, sizeof(esc), "\\u%04x", c);
	put(j, esc, n);
}

/* Whether the byte is written unchanged, without an escape. */
static bool is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_quoted(struct hw_json *j, const char *text, size_t len)
{
	uint32_t c;
	put_byte(j, '"');
	for (size_t i = 0, n; i < len; i += n) {
		for (n = 0; i + n < len && is_plain(text[i + n]);)
			n++;
		if (n > 0) {
			put(j, text + i, n);
			continue;
		}
		n = hw_utf8_next((const unsigned char *)text + i, len - i, &c);
		if (n == 0) {
			put(j, "\xef\xbf\xbd", 3); /* U+FFFD for each byte that is not part of a character */
			j->replaced = true;
			n = 1;
		} else if (c < 0x20 || c == '"' || c == '\\') {
			put_escaped(j, (unsigned char)c);
		} else {
			put(j, text + i, n);
		}
	}
	put_byte(j, '"');
}

size_t hw_json_quote(const char *text, size_t len, char *buf, size_t cap)
{
	struct hw_json j;
	char none;
	hw_json_begin_text(&j, cap > 0 ? buf : &none, cap > 0 ? cap : 1);
	put_quoted(&j, text, len);
	j.buf[j.n] = '\0';
	return j.n + j.lost;
}

/* --- structure -----------------------------------------------------------------------------------------------------
 */

static void separate(struct hw_json *j)
{
	if (!j->fresh)
		put_byte(j, ',');
}

void hw_json_open(struct hw_json *j, char bracket)
{
	separate(j);
	put_byte(j, bracket);
	j->fresh = true;
}

void hw_json_close(struct hw_json *j, char bracket)
{
	put_byte(j, bracket);
	j->fresh = false;
}

void hw_json_key(struct hw_json *j, const char *key)
{
	separate(j);
	put_byte(j, '"');
	put(j, key, strlen(key));
	put_byte(j, '"');
	put_byte(j, ':');
	j->fresh = true;
}

void hw_json_open_member(struct hw_json *j, const char *key, char bracket)
{
	hw_json_key(j, key);
	hw_json_open(j, bracket);
}

/* --- elements ------------------------------------------------------------------------------------------------------
 */

void hw_json_element(struct hw_json *j, uint64_t v)
{
	char digits[24];
	separate(j);
	put(j, digits, hw_print(digits, sizeof(digits), "%" PRIu64, v));
	j->fresh = false;
}

void hw_json_item_bytes(struct hw_json *j, const char *text, size_t len)
{
	separate(j);
	put_quoted(j, text, len);
	j->fresh = false;
}

void hw_json_item(struct hw_json *j, const char *word)
{
	hw_json_item_bytes(j, word, strlen(word));
}

/* --- members -------------------------------------------------------------------------------------------------------
 */

void hw_json_raw(struct hw_json *j, const char *key, const char *text, size_t len)
{
	hw_json_key(j, key);
	put(j, text, len);
	j->fresh = false;
}

void hw_json_members(struct hw_json *j, const char *object, size_t len)
{
	if (len <= 2)
		return;
	separate(j);
	put(j, object + 1, len - 2);
	j->fresh = false;
}

void hw_json_named_text(struct hw_json *j, const char *name, const char *text)
{
	separate(j);
	put_quoted(j, name, strlen(name));
	put_byte(j, ':');
	if (text)
		put_quoted(j, text, strlen(text));
	else
		put(j, "null", 4);
	j->fresh = false;
}

void hw_json_bytes(struct hw_json *j, const char *key, const char *text, size_t len)
{
	hw_json_key(j, key);
	put_quoted(j, text, len);
	j->fresh = false;
}

void hw_json_text(struct hw_json *j, const char *key, const char *text)
{
	if (text)
		hw_json_bytes(j, key, text, strlen(text));
	else
		hw_json_null(j, key);
}

/* Writes the digits of `v` before `end`, and returns the address of the first. printf() would be too slow for a
 * million entries. */
static char *write_digits(char *end, uint64_t v)
{
	do
		*--end = (char)('0' + v % 10);
	while (v /= 10);
	return end;
}

void hw_json_int(struct hw_json *j, const char *key, int64_t v)
{
	char digits[24], *at = write_digits(digits + sizeof(digits), v < 0 ? -(uint64_t)v : (uint64_t)v);
	if (v < 0)
		*--at = '-';
	hw_json_raw(j, key, at, (size_t)(digits + sizeof(digits) - at));
}

void hw_json_uint(struct hw_json *j, const char *key, uint64_t v)
{
	char digits[24], *at = write_digits(digits + sizeof(digits), v);
	hw_json_raw(j, key, at, (size_t)(digits + sizeof(digits) - at));
}

void hw_json_number(struct hw_json *j, const char *key, double v)
{
	char text[32];
	hw_json_raw(j, key, text, (size_t)hw_number_text(v, text, sizeof(text)));
}

void hw_json_seconds(struct hw_json *j, const char *key, int64_t ms)
{
	char text[32];
	uint64_t size = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;
	size_t n = hw_print(text, sizeof(text), "%s%" PRIu64 ".%03u", ms < 0 ? "-" : "", size / 1000,
	                    (unsigned)(size % 1000));
	hw_json_raw(j, key, text, n);
}

void hw_json_bool(struct hw_json *j, const char *key, bool v)
{
	hw_json_raw(j, key, v ? "true" : "false", v ? 4 : 5);
}

void hw_json_null(struct hw_json *j, const char *key)
{
	hw_json_raw(j, key, "null", 4);
}

void hw_json_report(struct hw_json *j, const struct hw_report *report)
{
	struct hw_report *r = (struct hw_report *)(uintptr_t)report; /* only read */
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		const char *name = hw_report_fields[k].name;
		if (!(r->has & 1U << k))
			continue;
		if (hw_report_fields[k].kind == HW_REPORT_NUMBER)
			hw_json_number(j, name, *hw_report_number(r, k));
		else if (hw_report_fields[k].kind == HW_REPORT_TEXT)
			hw_json_text(j, name, *hw_report_string(r, k));
		else
			hw_json_raw(j, name, *hw_report_string(r, k), strlen(*hw_report_string(r, k)));
	}
}
