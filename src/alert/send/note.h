/* SPDX-License-Identifier: MIT */
/* A note: a message in the form that one receiver requires; and the functions that make notes from the fields.
 * Internal to src/alert/send. */
#ifndef HW_ALERT_SEND_NOTE_H
#define HW_ALERT_SEND_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alert/send/template.h"

struct evbuffer;

/* The values of a message's fields, by enum hw_notify_field; owned. */
struct hw_fields {
	char *of[HW_NOTIFY_FIELDS];
	bool bad; /* urgent: an incident has begun or continues */
};

/* Returns 0, or -ENOMEM if a field is missing. */
int hw_fields_are_whole(const struct hw_fields *f);
void hw_fields_fini(struct hw_fields *f);

struct hw_note {
	char *headers;    /* HTTP headers with line ends; owned; NULL: none */
	const char *type; /* content type */
	size_t len;
	char text[]; /* followed by a NUL */
};

/* The form that a receiver requires. Borrowed. */
struct hw_style {
	enum hw_notify_template as;
	const char *title, *text; /* valid formats */
	const char *from, *to;    /* mail addresses */
	const char *id;           /* left part of the mail's Message-ID */
};

/* Makes a note from fields. `json`: the content of HW_NOTIFY_JSON, not modified. Returns NULL if there is no memory. */
struct hw_note *hw_note_new(const struct hw_style *style, const struct hw_fields *f, struct evbuffer *json,
                            int64_t now_ms);
/* Returns a note with a copy of the buffer's text. `type`: its content type, static. Returns NULL if there is no
 * memory. */
struct hw_note *hw_note_of(struct evbuffer *b, const char *type);
void hw_note_free(struct hw_note *n);

#endif
