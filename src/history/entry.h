/* SPDX-License-Identifier: MIT */
/* The streams that heartwheel-history reads, and a copy of one entry, which stays valid after the Redis reply is freed.
 */
#ifndef HW_HISTORY_ENTRY_H
#define HW_HISTORY_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/gap.h"

enum hw_stream { HW_STREAM_SIGHT, HW_STREAM_EVENTS, HW_STREAM_TASKS, HW_STREAM_INCIDENTS, HW_STREAMS };

#define HW_ENTRY_WORD 40
#define HW_ENTRY_NAME 256

#define HW_EARLIEST_MS INT64_C(946684800000)  /* 2000-01-01: a transition before this time is wrong */
#define HW_LATEST_MS   INT64_C(4102444800000) /* 2100-01-01: the time in an entry's id is not trusted if it is later */
#define HW_ENTRIES_MAX (INT64_C(1) << 53)     /* only XSETID makes a stream report more entries */

struct hw_entry {
	struct hw_stream_id at;
	char id[HW_ENTRY_NAME];        /* device; in task:events the receiver */
	char node[HW_ENTRY_NAME];      /* monitor; in task:events the sender; in device:incident_events `by` */
	char group[HW_ENTRY_NAME];     /* group; in task:events the task's name */
	char state[HW_ENTRY_WORD];     /* as in the stream; in device:incident_events `what` */
	char why[HW_ENTRY_NAME];       /* `reason`, `cause`, `why`, `kind` or `silence` of the entry */
	char incident[HW_ENTRY_WORD];  /* in device:incident_events: `id` */
	char receiver[HW_ENTRY_NAME];  /* there: the receiver of a message; "": no message */
	int64_t time_ms, last_seen_ms; /* in device:sight and of "planned": `from_ms` and `to_ms` */
	int64_t seq;
	int64_t clock_ms; /* clock that the times were compared with; 0: none */
};

static inline const char *hw_entry_stream_name(enum hw_stream stream)
{
	static const char *const names[HW_STREAMS] = {[HW_STREAM_SIGHT] = "device:sight",
	                                              [HW_STREAM_EVENTS] = "device:events",
	                                              [HW_STREAM_TASKS] = "task:events",
	                                              [HW_STREAM_INCIDENTS] = "device:incident_events"};
	return names[stream];
}

/* Returns a stream id as one number with the same order: 42 bits of ms, 21 bits of sequence. */
static inline int64_t hw_entry_number(struct hw_stream_id at)
{
	uint64_t n = at.seq < (1U << 21) ? at.seq : (1U << 21) - 1;
	return (int64_t)(((at.ms & ((UINT64_C(1) << 42) - 1)) << 21) | n);
}

static inline struct hw_stream_id hw_entry_id(int64_t number)
{
	return (struct hw_stream_id){(uint64_t)number >> 21, (uint64_t)number & ((1U << 21) - 1)};
}

#endif
