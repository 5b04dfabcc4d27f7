/* SPDX-License-Identifier: MIT */
/*
 * JSON into an evbuffer. Invariant: `fresh` is true if no comma is needed before the next key or bracket. Cost: one
 * copy to the writer's buffer, and one evbuffer_add() for each 4 KiB.
 */
#include "http/json.h"

#include <errno.h>
#include <event2/buffer.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/payload.h"
#include "heartwheel/print.h"

static void flush(struct hw_json *j)
{
	if (j->n > 0 && evbuffer_add(j->out, j->buf, j->n) < 0)
		j->failed = true;
	j->n = 0;
}

static void put(struct hw_json *j, const char *text, size_t len)
{
	if (len > sizeof(j->buf) - j->n)
		flush(j);
	if (len > sizeof(j->buf)) {
		if (evbuffer_add(j->out, text, len) < 0)
			j->failed = true;
		return;
	}
	memcpy(j->buf + j->n, text, len);
	j->n += len;
}

void hw_json_begin(struct hw_json *j, struct evbuffer *out)
{
	j->out = out;
	j->n = 0;
	j->failed = false;
	j->fresh = true;
}

void hw_json_append(struct hw_json *j, struct evbuffer *elements)
{
	hw_json_begin(j, elements);
	j->fresh = evbuffer_get_length(elements) == 0;
}

int hw_json_end(struct hw_json *j)
{
	flush(j);
	return j->failed ? -ENOMEM : 0;
}

void hw_json_open(struct hw_json *j, char bracket)
{
	if (!j->fresh)
		put(j, ",", 1);
	put(j, &bracket, 1);
	j->fresh = true;
}

void hw_json_close(struct hw_json *j, char bracket)
{
	put(j, &bracket, 1);
	j->fresh = false;
}

void hw_json_key(struct hw_json *j, const char *key)
{
	if (!j->fresh)
		put(j, ",", 1);
	put(j, "\"", 1);
	put(j, key, strlen(key));
	put(j, "\":", 2);
	j->fresh = true;
}

static void value(struct hw_json *j, const char *key, const char *text, size_t len)
{
	hw_json_key(j, key);
	put(j, text, len);
	j->fresh = false;
}

static void put_quoted(struct hw_json *j, const char *text, size_t len)
{
	char small[2048], *quoted = small;
	size_t n = hw_json_quote(text, len, small, sizeof(small));
	if (n >= sizeof(small)) {
		quoted = malloc(n + 1);
		if (!quoted) {
			j->failed = true;
			return;
		}
		hw_json_quote(text, len, quoted, n + 1);
	}
	put(j, quoted, n);
	if (quoted != small)
		free(quoted);
}

void hw_json_bytes(struct hw_json *j, const char *key, const char *text, size_t len)
{
	hw_json_key(j, key);
	put_quoted(j, text, len);
	j->fresh = false;
}

void hw_json_raw(struct hw_json *j, const char *key, const char *text, size_t len)
{
	value(j, key, text, len);
}

void hw_json_text(struct hw_json *j, const char *key, const char *text)
{
	if (text)
		hw_json_bytes(j, key, text, strlen(text));
	else
		hw_json_null(j, key);
}

void hw_json_int(struct hw_json *j, const char *key, int64_t v)
{
	char digits[24];
	size_t n = hw_print(digits, sizeof(digits), "%" PRId64, v);
	value(j, key, digits, n);
}

void hw_json_uint(struct hw_json *j, const char *key, uint64_t v)
{
	char digits[24];
	size_t n = hw_print(digits, sizeof(digits), "%" PRIu64, v);
	value(j, key, digits, n);
}

void hw_json_number(struct hw_json *j, const char *key, double v)
{
	char text[32];
	int n = isfinite(v) ? hw_number_text(v, text, sizeof(text)) : 0;
	if (n > 0)
		value(j, key, text, (size_t)n);
	else
		hw_json_null(j, key);
}

void hw_json_element(struct hw_json *j, uint64_t v)
{
	char digits[24];
	size_t n = hw_print(digits, sizeof(digits), "%s%" PRIu64, j->fresh ? "" : ",", v);
	put(j, digits, n);
	j->fresh = false;
}

void hw_json_item_bytes(struct hw_json *j, const char *text, size_t len)
{
	if (!j->fresh)
		put(j, ",", 1);
	put_quoted(j, text, len);
	j->fresh = false;
}

void hw_json_item(struct hw_json *j, const char *word)
{
	hw_json_item_bytes(j, word, strlen(word));
}

void hw_json_bool(struct hw_json *j, const char *key, bool v)
{
	value(j, key, v ? "true" : "false", v ? 4 : 5);
}

void hw_json_null(struct hw_json *j, const char *key)
{
	value(j, key, "null", 4);
}

void hw_json_open_member(struct hw_json *j, const char *key, char bracket)
{
	hw_json_key(j, key);
	hw_json_open(j, bracket);
}

void hw_json_array(struct hw_json *j, const char *key, struct evbuffer *elements)
{
	hw_json_open_member(j, key, '[');
	flush(j);
	if (elements && evbuffer_add_buffer(j->out, elements) < 0)
		j->failed = true;
	hw_json_close(j, ']');
}

void hw_json_report(struct hw_json *j, const struct hw_report *r)
{
	size_t n = hw_report_json(r, NULL, 0);
	if (n == 0)
		return;
	char *text = malloc(n + 1);
	if (!text) {
		j->failed = true;
		return;
	}
	hw_report_json(r, text, n + 1);
	/* `text` begins with a comma, which is left out before the first member of an object or array. */
	put(j, text + (j->fresh ? 1 : 0), n - (j->fresh ? 1 : 0));
	j->fresh = false;
	free(text);
}
