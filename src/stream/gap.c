/* SPDX-License-Identifier: MIT */
/* See gap.h. */
#include "stream/gap.h"

/*
 * Whether the stream was replaced by another stream since it was read. True in each of these cases: its last id is
 * before the cursor; it has an entry at or before the cursor, although the entry at the cursor is missing; it has
 * received, or has removed, fewer entries than were read.
 */
static bool is_other(const struct hw_stream_cursor *c, const struct hw_stream_info *s)
{
	bool behind = hw_stream_id_compare(s->last, c->id) < 0;
	bool older = s->length > 0 && hw_stream_id_compare(s->first, c->id) <= 0;
	bool fewer = s->added >= 0 && (s->added < c->added || (s->length > 0 && s->added - s->length < c->added));
	return behind || older || fewer;
}

/* Counts the missing entries. None is missing if the stream is a restored copy whose first entry is at or before the
 * cursor: then only entries that were already read are lost. */
static int64_t lost_of_other(const struct hw_stream_cursor *c, const struct hw_stream_info *s)
{
	if (s->added < 0)
		return -1;
	bool restored = s->length > 0 && hw_stream_id_compare(s->first, c->id) <= 0;
	return restored ? 0 : s->added - s->length;
}

/* Moves the cursor to the start of the stream: before the first entry, or to the last id if the stream is empty. */
static void start_over(struct hw_stream_cursor *c, const struct hw_stream_info *s)
{
	c->added = s->added >= 0 ? s->added - s->length : 0;
	c->id = s->length > 0 ? (struct hw_stream_id){0, 0} : s->last;
}

static void skip_trimmed(struct hw_stream_cursor *c, const struct hw_stream_info *s, struct hw_stream_gap *gap)
{
	int64_t lost = s->added < 0 ? -1 : s->added - s->length - c->added;
	if (hw_stream_id_compare(s->last, c->id) == 0) /* the last entry was deleted, and no entry came since */
		return;
	if (lost != 0)
		*gap = (struct hw_stream_gap){true, false, c->id, s->length > 0 ? s->first : s->last, lost};
	if (lost > 0)
		c->added += lost;
	if (s->length == 0)
		c->id = s->last;
}

void hw_stream_gap_find(struct hw_stream_cursor *cursor, const struct hw_stream_info *info, struct hw_stream_gap *gap)
{
	*gap = (struct hw_stream_gap){.any = false};
	if (cursor->added < 0) {
		start_over(cursor, info);
	} else if (is_other(cursor, info)) {
		*gap = (struct hw_stream_gap){true, true, cursor->id, info->first, lost_of_other(cursor, info)};
		start_over(cursor, info);
	} else {
		skip_trimmed(cursor, info, gap);
	}
}

bool hw_stream_is_trimmed(struct hw_stream_id read, struct hw_stream_id oldest)
{
	bool from_start = read.ms == 0 && read.seq == 0;
	return !from_start && hw_stream_id_compare(hw_stream_id_next(read), oldest) < 0;
}
