/* SPDX-License-Identifier: MIT */
/*
 * The forms of a message: templates with names, and formats, which are texts with {fields}. Pure; the checks of
 * monitor.conf use it.
 */
#ifndef HW_ALERT_SEND_TEMPLATE_H
#define HW_ALERT_SEND_TEMPLATE_H

#include <stddef.h>

enum hw_notify_template {
	HW_NOTIFY_JSON,  /* everything, for programs */
	HW_NOTIFY_TEXT,  /* title, empty line, text */
	HW_NOTIFY_SLACK, /* {"text":"title\ntext"} for Slack, Mattermost, Rocket.Chat and Discord (/slack) */
	HW_NOTIFY_NTFY,  /* the text; title, priority and tag are headers */
	HW_NOTIFY_MAIL   /* a complete mail with headers (RFC 5322) */
};

/* The fields of a format. */
enum hw_notify_field {
	HW_NOTIFY_SUMMARY, /* one sentence */
	HW_NOTIFY_LIST,    /* one line per event */
	HW_NOTIFY_NOW,     /* the fleet's present state */
	HW_NOTIFY_NODE,
	HW_NOTIFY_TIME,
	HW_NOTIFY_COUNT, /* number of devices */
	HW_NOTIFY_DEVICE,
	HW_NOTIFY_GROUP,
	HW_NOTIFY_STATUS,
	HW_NOTIFY_SILENT,
	HW_NOTIFY_FIELDS
};
/* Their names, in that order; ends with NULL. */
extern const char *const hw_notify_fields[];

/* The errors of a format. */
enum hw_notify_fault {
	HW_NOTIFY_GOOD,
	HW_NOTIFY_UNKNOWN, /* an unknown field */
	HW_NOTIFY_BRACE,   /* an unmatched brace; {{ and }} are literal braces */
	HW_NOTIFY_ESCAPE   /* a \ before another character than n and \ */
};

/* Checks a format. `name` receives the unknown field, as far as it fits. */
enum hw_notify_fault hw_notify_judge(const char *format, char *name, size_t cap);

typedef void hw_notify_put(void *arg, const char *text, size_t len);
/* Passes the text of a valid format to `put`, piece by piece, with `values` (by enum hw_notify_field) in place of the
 * fields. */
void hw_notify_fill(const char *format, const char *const *values, hw_notify_put *put, void *arg);

#endif
