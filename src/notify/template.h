/* SPDX-License-Identifier: MIT */
/*
 * What a message looks like to who gets it: the templates by name, and formats, text with {fields} in it. Needs neither
 * a loop nor a library: the rules of monitor.conf are judged by it.
 */
#ifndef HW_NOTIFY_TEMPLATE_H
#define HW_NOTIFY_TEMPLATE_H

#include <stddef.h>

enum hw_notify_template {
	HW_NOTIFY_JSON,  /* everything, for programs */
	HW_NOTIFY_TEXT,  /* the title, an empty line, the text */
	HW_NOTIFY_SLACK, /* {"text":"title\ntext"}, as Slack, Mattermost, Rocket.Chat and Discord (/slack) take it */
	HW_NOTIFY_NTFY,  /* the text, with the title, a priority and a tag as headers */
	HW_NOTIFY_MAIL   /* a whole mail (RFC 5322), with its headers */
};

/* What a format may name. */
enum hw_notify_field {
	HW_NOTIFY_SUMMARY, /* one sentence */
	HW_NOTIFY_LIST,    /* a line for each thing that happened */
	HW_NOTIFY_NOW,     /* how the fleet is */
	HW_NOTIFY_NODE,
	HW_NOTIFY_TIME,
	HW_NOTIFY_COUNT, /* devices */
	HW_NOTIFY_DEVICE,
	HW_NOTIFY_GROUP,
	HW_NOTIFY_STATUS,
	HW_NOTIFY_SILENT,
	HW_NOTIFY_FIELDS
};
/* Their names, in that order; NULL ends them. */
extern const char *const hw_notify_fields[];

/* What is wrong with a format. */
enum hw_notify_fault {
	HW_NOTIFY_GOOD,
	HW_NOTIFY_UNKNOWN, /* a field that there is not */
	HW_NOTIFY_BRACE,   /* a brace without its partner; {{ and }} stand for braces */
	HW_NOTIFY_ESCAPE   /* a \ before anything but n and \ */
};

/* `name` gets the unknown field, as far as it fits. */
enum hw_notify_fault hw_notify_judge(const char *format, char *name, size_t cap);

typedef void hw_notify_put(void *arg, const char *text, size_t len);
/* Puts a good format's text piece by piece, with `values` by enum hw_notify_field in the place of its fields. */
void hw_notify_fill(const char *format, const char *const *values, hw_notify_put *put, void *arg);

#endif
