/* SPDX-License-Identifier: MIT */
/* See sheet.h. */
#include "history/sheet.h"

#include <errno.h>
#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/print.h"

void hw_sheet_begin(struct hw_sheet *s, struct evbuffer *out, bool csv)
{
	s->out = out;
	s->csv = csv;
	hw_json_begin(&s->j, out);
	if (!csv)
		hw_json_open(&s->j, '{');
}

void hw_sheet_open(struct hw_sheet *s, const char *rows, const char *head)
{
	if (s->csv) {
		evbuffer_add_printf(s->out, "%s\r\n", head);
		return;
	}
	hw_json_key(&s->j, rows);
	hw_json_open(&s->j, '[');
}

void hw_sheet_row(struct hw_sheet *s)
{
	s->fresh = true;
	if (!s->csv)
		hw_json_open(&s->j, '{');
}

/* Writes a CSV field; quotes it if it has characters that are special in RFC 4180. */
static void put_field(struct hw_sheet *s, const char *text, size_t len)
{
	bool plain = !memchr(text, ',', len) && !memchr(text, '"', len) && !memchr(text, '\n', len) &&
	             !memchr(text, '\r', len);
	if (!s->fresh)
		evbuffer_add(s->out, ",", 1);
	s->fresh = false;
	if (plain) {
		evbuffer_add(s->out, text, len);
		return;
	}
	evbuffer_add(s->out, "\"", 1);
	for (size_t i = 0; i < len; i++)
		evbuffer_add(s->out, text[i] == '"' ? "\"\"" : &text[i], text[i] == '"' ? 2 : 1);
	evbuffer_add(s->out, "\"", 1);
}

/* Whether a spreadsheet would treat the text as a formula, by its first character. */
static bool is_formula(const char *text, size_t len)
{
	return len > 0 && memchr("=+-@\t\r", text[0], 6);
}

void hw_sheet_text(struct hw_sheet *s, const char *key, const char *text, size_t len)
{
	char quoted[1024];
	if (s->csv && is_formula(text, len) && len < sizeof(quoted))
		put_field(s, quoted, hw_print(quoted, sizeof(quoted), "'%.*s", (int)len, text));
	else if (s->csv)
		put_field(s, text, len);
	else
		hw_json_bytes(&s->j, key, text, len);
}

void hw_sheet_int(struct hw_sheet *s, const char *key, int64_t v)
{
	char text[32];
	if (s->csv)
		put_field(s, text, hw_print(text, sizeof(text), "%" PRId64, v));
	else
		hw_json_int(&s->j, key, v);
}

void hw_sheet_bool(struct hw_sheet *s, const char *key, bool v)
{
	if (s->csv)
		put_field(s, v ? "1" : "0", 1);
	else
		hw_json_bool(&s->j, key, v);
}

void hw_sheet_null(struct hw_sheet *s, const char *key)
{
	if (s->csv)
		put_field(s, "", 0);
	else
		hw_json_null(&s->j, key);
}

void hw_sheet_seconds(struct hw_sheet *s, const char *key, int64_t ms)
{
	char text[32];
	if (s->csv)
		put_field(s, text, hw_print(text, sizeof(text), "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000)));
	else
		hw_json_number(&s->j, key, (double)ms / 1e3);
}

void hw_sheet_ratio(struct hw_sheet *s, const char *key, int64_t over, int64_t under, double unit, int decimals)
{
	char text[48];
	if (under <= 0) {
		hw_sheet_null(s, key);
		return;
	}
	double v = (double)over / (double)under / unit;
	if (s->csv)
		put_field(s, text, hw_print(text, sizeof(text), "%.*f", decimals, v));
	else
		hw_json_number(&s->j, key, v);
}

void hw_sheet_row_end(struct hw_sheet *s)
{
	if (s->csv)
		evbuffer_add(s->out, "\r\n", 2);
	else
		hw_json_close(&s->j, '}');
}

void hw_sheet_close(struct hw_sheet *s)
{
	if (!s->csv)
		hw_json_close(&s->j, ']');
}

int hw_sheet_end(struct hw_sheet *s)
{
	if (s->csv)
		return 0;
	hw_json_close(&s->j, '}');
	return hw_json_end(&s->j) != 0 || evbuffer_add(s->out, "\n", 1) != 0 ? -ENOMEM : 0;
}
