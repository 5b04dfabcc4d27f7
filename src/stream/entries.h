/* SPDX-License-Identifier: MIT */
/*
 * Entries of a stream in Redis' answers to XRANGE, XREVRANGE, XREAD and XREADGROUP. Every answer is checked, because
 * another program may have written the entries. All results borrow the reply.
 */
#ifndef HW_STREAM_ENTRIES_H
#define HW_STREAM_ENTRIES_H

#include <hiredis/hiredis.h>
#include <stdbool.h>

#include "stream/id.h"

/* Reads an entry's id. Returns false if `entry` is malformed. A deleted entry has an id but no fields. */
bool hw_stream_entry_id(const redisReply *entry, struct hw_stream_id *id);
/* Returns the names and values of an entry, alternating. NULL: a deleted entry. */
const redisReply *hw_stream_entry_fields(const redisReply *entry);
/* Returns the id of the newest entry, if `reply` answers XREVRANGE key + - COUNT 1. {0, 0}: the stream has no entry. */
struct hw_stream_id hw_stream_newest(const redisReply *reply);
/* The entries after an offset. */
struct hw_stream_page {
	redisReply *const *entries; /* `n` of them */
	size_t n;
	struct hw_stream_id last; /* the offset after these entries */
	bool gone; /* The entry at the offset is missing. So entries between the offset and the page may be missing
	            * too. Never set after {0, 0} */
	bool more; /* more entries follow */
};
/* Reads the answer to hw_stream_range() with the same `after` and `count`. Returns false if the answer is malformed. */
bool hw_stream_page_read(const redisReply *reply, struct hw_stream_id after, size_t count, struct hw_stream_page *page);
/* Returns the entries of the stream `key`, if `reply` answers XREAD or XREADGROUP. NULL: there are none. */
const redisReply *hw_stream_entries(const redisReply *reply, const char *key);

#endif
