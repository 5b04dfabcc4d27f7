/* SPDX-License-Identifier: MIT */
/*
 * How far a stream was read, and which entries after that are missing. Pure.
 *
 * A reader requests a page that begins with the last entry that it has read. If the page contains this entry, no entry
 * is missing. Otherwise the reader queries the stream (XINFO STREAM, first entries). hw_stream_gap_find() then decides:
 * the stream was trimmed, or it is another stream, because Redis was emptied or an older copy was restored.
 */
#ifndef HW_STREAM_GAP_H
#define HW_STREAM_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include "stream/id.h"

/* The last entry that was read, and how many entries the stream had received up to it. added < 0: not known. */
struct hw_stream_cursor {
	struct hw_stream_id id;
	int64_t added;
};

/* The state of a stream at one moment. */
struct hw_stream_info {
	struct hw_stream_id first, last; /* first: id of the oldest entry, {0, 0}: there is none; last: the last id that
	                                  * the stream gave out */
	int64_t length, added; /* length: number of entries now; added: number of entries received so far, < 0:
	                        * unknown (Redis before 7) */
};

/* Entries that are missing between two offsets. */
struct hw_stream_gap {
	bool any;
	bool other; /* after the gap another stream begins */
	/* after: id of the last entry that was read; before: id of the first entry after the gap */
	struct hw_stream_id after, before;
	int64_t lost; /* number of missing entries; < 0: unknown */
};

/*
 * Called when the entry at `cursor` is not in the stream any more. Describes the missing entries in *gap, and moves
 * *cursor to the offset after which reading continues. If added < 0, moves the cursor to the stream's start, and
 * reports no gap.
 */
void hw_stream_gap_find(struct hw_stream_cursor *cursor, const struct hw_stream_info *info, struct hw_stream_gap *gap);

/* Whether entries after `read` may be missing in a stream whose oldest entry is `oldest`. If `read` is {0, 0}, the
 * start of the stream, none is missing. */
bool hw_stream_is_trimmed(struct hw_stream_id read, struct hw_stream_id oldest);

#endif
