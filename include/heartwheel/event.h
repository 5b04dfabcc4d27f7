/* SPDX-License-Identifier: MIT */
/*
 * A transition as the event stream has it: with its place there, and by its device's id, since it outlives the device.
 * Whoever keeps the stream numbers it; a place is of use only to the one that gave it.
 */
#ifndef HEARTWHEEL_EVENT_H
#define HEARTWHEEL_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/transition.h"

/* A place in the stream; as a text "MS-N". {0, 0} is before the first. */
struct hw_event_id {
	uint64_t ms, n;
};

#define HW_EVENT_ID_TEXT 42 /* the longest text, with its NUL */

struct hw_event {
	struct hw_event_id at;
	const char *id; /* borrowed, not NUL-terminated; so is group */
	size_t id_len;
	const char *group;
	size_t group_len;
	const char *node; /* whose transition it is; borrowed as well */
	size_t node_len;
	enum hw_state state;
	enum hw_reason reason;
	int64_t time_ms, last_seen_ms; /* wall clock */
	uint64_t seq;
	uint64_t epoch; /* of several nodes: of whose token it was made with; else 0 */
	uint64_t form;  /* ... the form that its group has at that node; 0: not known. The stream does not say it */
};

/* A part of the stream, oldest first. What is in it but is of no use (another monitor's, or unreadable) is left out. */
struct hw_event_page {
	const struct hw_event *events; /* borrowed */
	size_t n;
	struct hw_event_id last; /* the place of the last entry read, also of one that was left out */
	bool ok;                 /* false: it could not be read, and nothing else is said */
	bool gone;               /* the place to go on from is not in the stream any more */
	bool more;               /* there is more behind it; before it, if the end of the stream was asked for */
};

/* 0 and *out, or -EINVAL if it is no such text. */
int hw_event_id_parse(const char *text, size_t len, struct hw_event_id *out);
/* Writes the text, with a NUL, and returns its length. */
int hw_event_id_text(struct hw_event_id at, char buf[HW_EVENT_ID_TEXT]);
/* Below 0, 0 or above 0: `a` stands before, at or behind `b`. */
int hw_event_id_compare(struct hw_event_id a, struct hw_event_id b);

#endif
