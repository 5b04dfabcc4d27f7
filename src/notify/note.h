/* SPDX-License-Identifier: MIT */
/*
 * A message as one target gets it, and how it is made of what is to be said. Internal to src/notify.
 */
#ifndef HW_NOTIFY_NOTE_H
#define HW_NOTIFY_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/template.h"

struct evbuffer;
struct hw_fields;

struct hw_note {
	uint64_t number;  /* its entry in the past */
	bool once;        /* it is not tried again */
	char *headers;    /* of HTTP, each with a line end; owned; NULL: none of its own */
	const char *type; /* of the content */
	size_t len;
	char text[]; /* with a NUL behind it */
};

/* How a target wants to be told. Borrowed. */
struct hw_style {
	enum hw_notify_template as;
	const char *title, *text; /* formats that are good */
	const char *from, *to;    /* of mails */
};

/* `json`: what HW_NOTIFY_JSON says, which is left as it is. NULL without memory. */
struct hw_note *hw_note_new(const struct hw_style *style, const struct hw_fields *f, struct evbuffer *json,
                            int64_t now_ms);
void hw_note_free(struct hw_note *n);

#endif
