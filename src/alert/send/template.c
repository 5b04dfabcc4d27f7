/* SPDX-License-Identifier: MIT */
/* See template.h. Checking and filling use the same parser, so they always agree. */
#include "alert/send/template.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const hw_notify_fields[] = {
	[HW_NOTIFY_SUMMARY] = "summary", [HW_NOTIFY_LIST] = "list",   [HW_NOTIFY_NOW] = "now",
	[HW_NOTIFY_NODE] = "node",       [HW_NOTIFY_TIME] = "time",   [HW_NOTIFY_COUNT] = "count",
	[HW_NOTIFY_DEVICE] = "device",   [HW_NOTIFY_GROUP] = "group", [HW_NOTIFY_STATUS] = "status",
	[HW_NOTIFY_SILENT] = "silent",   [HW_NOTIFY_FIELDS] = NULL,
};

/* A piece of a format: plain text, or the name of a field. */
struct piece {
	const char *text;
	size_t len;
	int field; /* -1: plain text; HW_NOTIFY_FIELDS: unknown field */
	enum hw_notify_fault fault;
};

static int field_of(const char *name, size_t len)
{
	int k = 0;
	while (k < HW_NOTIFY_FIELDS && (strlen(hw_notify_fields[k]) != len || memcmp(hw_notify_fields[k], name, len)))
		k++;
	return k;
}

static struct piece plain(const char *text, size_t len)
{
	return (struct piece){.text = text, .len = len, .field = -1, .fault = HW_NOTIFY_GOOD};
}

static struct piece wrong(enum hw_notify_fault fault)
{
	return (struct piece){.text = "", .field = -1, .fault = fault};
}

/* Parses the piece at *format, and moves *format past it. Must not be called at the end of the format. */
static struct piece next(const char **format)
{
	const char *at = *format;
	size_t len = strcspn(at, "{}\\");
	if (len > 0) {
		*format = at + len;
		return plain(at, len);
	}
	*format = at + (at[1] ? 2 : 1);
	if (*at == '\\' && (at[1] == 'n' || at[1] == '\\'))
		return plain(at[1] == 'n' ? "\n" : "\\", 1);
	if (*at == '\\')
		return wrong(HW_NOTIFY_ESCAPE);
	if (at[1] == *at)
		return plain(at, 1);
	len = strcspn(at + 1, "{}");
	if (*at == '}' || at[1 + len] != '}')
		return wrong(HW_NOTIFY_BRACE);
	*format = at + len + 2;
	int field = field_of(at + 1, len);
	return (struct piece){.text = at + 1,
	                      .len = len,
	                      .field = field,
	                      .fault = field == HW_NOTIFY_FIELDS ? HW_NOTIFY_UNKNOWN : HW_NOTIFY_GOOD};
}

enum hw_notify_fault hw_notify_judge(const char *format, char *name, size_t cap)
{
	snprintf(name, cap, "%s", "");
	while (*format) {
		struct piece p = next(&format);
		if (p.fault == HW_NOTIFY_UNKNOWN)
			snprintf(name, cap, "%.*s", (int)p.len, p.text);
		if (p.fault != HW_NOTIFY_GOOD)
			return p.fault;
	}
	return HW_NOTIFY_GOOD;
}

void hw_notify_fill(const char *format, const char *const *values, hw_notify_put *put, void *arg)
{
	while (*format) {
		struct piece p = next(&format);
		if (p.field >= 0 && p.field < HW_NOTIFY_FIELDS)
			put(arg, values[p.field], strlen(values[p.field]));
		else
			put(arg, p.text, p.len);
	}
}
