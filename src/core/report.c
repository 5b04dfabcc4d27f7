/* SPDX-License-Identifier: MIT */
/* The fields that devices report, and how they are written as JSON. See report.h. */
#include "heartwheel/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/utf8.h"

const struct hw_report_field hw_report_fields[HW_REPORT_FIELDS] = {
	{"battery", HW_REPORT_NUMBER, offsetof(struct hw_report, battery)},
	{"rssi", HW_REPORT_NUMBER, offsetof(struct hw_report, rssi)},
	{"ip", HW_REPORT_TEXT, offsetof(struct hw_report, ip)},
	{"version", HW_REPORT_TEXT, offsetof(struct hw_report, version)},
	{"uptime", HW_REPORT_NUMBER, offsetof(struct hw_report, uptime)},
	{"data", HW_REPORT_JSON, offsetof(struct hw_report, data)},
};

double *hw_report_number(struct hw_report *r, int k)
{
	return (double *)(void *)((char *)r + hw_report_fields[k].at);
}

char **hw_report_string(struct hw_report *r, int k)
{
	return (char **)(void *)((char *)r + hw_report_fields[k].at);
}

void hw_report_merge(struct hw_report *to, struct hw_report *from)
{
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		if (!(from->has & 1U << k))
			continue;
		if (hw_report_fields[k].kind == HW_REPORT_NUMBER) {
			*hw_report_number(to, k) = *hw_report_number(from, k);
			continue;
		}
		char **text = hw_report_string(to, k), **news = hw_report_string(from, k);
		free(*text);
		*text = *news;
		*news = NULL;
	}
	to->has |= from->has;
	hw_report_fini(from);
}

void hw_report_fini(struct hw_report *r)
{
	for (int k = 0; k < HW_REPORT_FIELDS; k++)
		if (hw_report_fields[k].kind != HW_REPORT_NUMBER)
			free(*hw_report_string(r, k));
	memset(r, 0, sizeof(*r));
}

/* Text that is measured as far as it goes and written as far as there is room. */
struct sink {
	char *buf;
	size_t cap, len;
};

static void put(struct sink *o, const char *text, size_t n)
{
	if (o->len < o->cap) {
		size_t room = o->cap - o->len;
		memcpy(o->buf + o->len, text, n < room ? n : room);
	}
	o->len += n;
}

static void put_str(struct sink *o, const char *text)
{
	put(o, text, strlen(text));
}

static void put_escaped(struct sink *o, unsigned char c)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
	const char *at = strchr(plain, c);
	char esc[8];
	if (c && at)
		snprintf(esc, sizeof(esc), "\\%c", letter[at - plain]);
	else
		snprintf(esc, sizeof(esc), "\\u%04x", c);
	put_str(o, esc);
}

static void put_quoted(struct sink *o, const char *text, size_t len)
{
	uint32_t c;
	put(o, "\"", 1);
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)text + i, len - i, &c);
		if (n == 0) {
			put_str(o, "\xef\xbf\xbd"); /* U+FFFD for each byte that is none of a character */
			n = 1;
		} else if (c < 0x20 || c == '"' || c == '\\') {
			put_escaped(o, (unsigned char)c);
		} else {
			put(o, text + i, n);
		}
	}
	put(o, "\"", 1);
}

size_t hw_report_json(const struct hw_report *report, char *buf, size_t cap)
{
	struct hw_report *r = (struct hw_report *)(uintptr_t)report; /* only read */
	struct sink o = {buf, cap, 0};
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		char number[32];
		if (!(r->has & 1U << k))
			continue;
		put_str(&o, ",\"");
		put_str(&o, hw_report_fields[k].name);
		put_str(&o, "\":");
		if (hw_report_fields[k].kind == HW_REPORT_NUMBER)
			put(&o, number, (size_t)hw_number_text(*hw_report_number(r, k), number, sizeof(number)));
		else if (hw_report_fields[k].kind == HW_REPORT_TEXT)
			put_quoted(&o, *hw_report_string(r, k), strlen(*hw_report_string(r, k)));
		else
			put_str(&o, *hw_report_string(r, k));
	}
	if (o.len < cap)
		buf[o.len] = '\0';
	return o.len;
}

int hw_number_text(double v, char *buf, size_t cap)
{
	int n = 0;
	if (!isfinite(v))
		return snprintf(buf, cap, "null"); /* what JSON has for it */
	for (int digits = 15; digits <= 17; digits++) {
		n = snprintf(buf, cap, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	/* A program that has called setlocale() may write a comma. */
	char *comma = strchr(buf, ',');
	if (comma)
		*comma = '.';
	return n;
}

size_t hw_json_quote(const char *text, size_t len, char *buf, size_t cap)
{
	struct sink o = {buf, cap, 0};
	put_quoted(&o, text, len);
	if (cap > 0)
		buf[o.len < cap ? o.len : cap - 1] = '\0';
	return o.len;
}
