/* SPDX-License-Identifier: MIT */
/* A message in the format of one target, and the functions that make it from the fields. Internal to src/notify. */
#ifndef HW_NOTIFY_NOTE_H
#define HW_NOTIFY_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/template.h"

struct evbuffer;
struct hw_fields;

struct hw_note {
	uint64_t number;  /* number of its hw_notifier_entry */
	bool once;        /* no retry */
	char *headers;    /* HTTP headers with line ends; owned; NULL: none */
	const char *type; /* content type */
	size_t len;
	char text[]; /* followed by a NUL */
};

/* The form that a target wants. Borrowed. */
struct hw_style {
	enum hw_notify_template as;
	const char *title, *text; /* valid formats */
	const char *from, *to;    /* mail addresses */
	const char *id;           /* left part of the mail's Message-ID; NULL: random */
};

/* `json`: the content of HW_NOTIFY_JSON, not modified. Returns NULL without memory. */
struct hw_note *hw_note_new(const struct hw_style *style, const struct hw_fields *f, struct evbuffer *json,
                            int64_t now_ms);
/* A note with a copy of the buffer's text. `type`: its content type, static. Returns NULL without memory. */
struct hw_note *hw_note_of(struct evbuffer *b, const char *type);
void hw_note_free(struct hw_note *n);

#endif
