/* SPDX-License-Identifier: MIT */
/*
 * An entry of a stream as history keeps it, whole: what is read from Redis outlives its reply. The streams that are
 * read, and a place in one.
 */
#ifndef HW_HISTORY_ENTRY_H
#define HW_HISTORY_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/event.h"

enum hw_stream { HW_STREAM_SIGHT, HW_STREAM_EVENTS, HW_STREAM_TASKS, HW_STREAMS };

#define HW_ENTRY_WORD 40
#define HW_ENTRY_NAME 256

#define HW_EARLIEST_MS INT64_C(946684800000)  /* 2000-01-01: no device went online or offline before */
#define HW_LATEST_MS   INT64_C(4102444800000) /* 2100-01-01: without a clock no time after it is believed */
#define HW_ENTRIES_MAX (INT64_C(1) << 53)     /* a stream with more entries was written to by XSETID */

struct hw_entry {
	struct hw_event_id at;
	char id[HW_ENTRY_NAME];        /* of a device; of a task: its receiver */
	char node[HW_ENTRY_NAME];      /* of a task: its sender */
	char group[HW_ENTRY_NAME];     /* of a task: its name */
	char state[HW_ENTRY_WORD];     /* as the stream words it */
	char why[HW_ENTRY_NAME];       /* reason, cause, why */
	int64_t time_ms, last_seen_ms; /* of a sighting: from and to */
	int64_t seq;
	int64_t clock_ms; /* the clock that its times were compared with; 0: none */
};

/* How far a stream has been read: the last entry, and how many there have been up to it; n < 0: not known yet. */
struct hw_place {
	struct hw_event_id at;
	int64_t n;
};

/* What was lost between two places. */
struct hw_gap {
	bool any;
	struct hw_event_id after, before; /* the place that was read last, and the first entry that is there */
	int64_t lost;                     /* entries; < 0: nobody knows how many */
	bool another;                     /* what begins behind it is another stream: emptied, or put back */
};

/* An id of the stream as one number that sorts as ids do: 42 bits of ms, 21 of n. */
static inline int64_t hw_entry_number(struct hw_event_id at)
{
	uint64_t n = at.n < (1U << 21) ? at.n : (1U << 21) - 1;
	return (int64_t)(((at.ms & ((UINT64_C(1) << 42) - 1)) << 21) | n);
}

static inline struct hw_event_id hw_entry_id(int64_t number)
{
	return (struct hw_event_id){(uint64_t)number >> 21, (uint64_t)number & ((1U << 21) - 1)};
}

#endif
