/* SPDX-License-Identifier: MIT */
/* A transition in the event stream, with its offset. The device is named by its id, because the event may exist longer
 * than the device's record. Redis assigns the offsets; with store = memory, heartwheeld does. An offset is valid only
 * in the stream that assigned it. */
#ifndef HEARTWHEEL_EVENT_H
#define HEARTWHEEL_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/transition.h"
#include "stream/id.h"

struct hw_event {
	struct hw_stream_id at;
	const char *id; /* borrowed, not NUL-terminated; so is group */
	size_t id_len;
	const char *group;
	size_t group_len;
	const char *node; /* the node that made the transition; borrowed */
	size_t node_len;
	enum hw_state state;
	enum hw_reason reason;
	int64_t time_ms, last_seen_ms; /* wall clock */
	const char *parents;           /* ids of the device's known parents, separated by newlines; borrowed; may be
	                                * NULL */
	size_t parents_len;
	int64_t timeout_ms, wait_ms; /* with known parents: see struct hw_transition; otherwise -1 */
	uint64_t seq;
	uint64_t epoch; /* fencing epoch of the owner that made the transition; 0: a single node */
	bool has_form;  /* the entry has the field `form`, because the group has another form on that node */
	uint64_t form;  /* form of the group when the device was last heard; 0: unknown */
};

/* A part of the stream, with the oldest event first. Entries that cannot be read, and entries of another monitor,
 * are left out. */
struct hw_event_page {
	const struct hw_event *events; /* borrowed */
	size_t n;
	struct hw_stream_id last; /* offset of the last entry that was read, even if it was left out */
	bool ok;                  /* false: the read failed, and the other members mean nothing */
	bool gone;                /* the stream no longer has the offset to continue from */
	bool more; /* more entries follow; if the end of the stream was requested: more entries precede */
};

#endif
