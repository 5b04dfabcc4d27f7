/* SPDX-License-Identifier: MIT */
/*
 * The id of an entry of a Redis stream, which is also an offset in the stream: ids only grow, and {0, 0} is before the
 * first entry. Pure. The text is `MS-SEQ`, as Redis writes it.
 */
#ifndef HW_STREAM_ID_H
#define HW_STREAM_ID_H

#include <stddef.h>
#include <stdint.h>

struct hw_stream_id {
	uint64_t ms, seq;
};

#define HW_STREAM_ID_TEXT 42 /* the longest text, with its NUL */

/* The greatest id. A stream that has given it out accepts no further entry. */
#define HW_STREAM_ID_GREATEST ((struct hw_stream_id){UINT64_MAX, UINT64_MAX})

/* Returns 0, or -EINVAL with *out unchanged. `text` needs no NUL. Only the form that hw_stream_id_print() writes is
 * accepted. */
int hw_stream_id_parse(const char *text, size_t len, struct hw_stream_id *out);
/* Like hw_stream_id_parse(), but also accepts ids as people write them: `MS` alone means MS-0, and leading zeros are
 * allowed. */
int hw_stream_id_parse_loose(const char *text, size_t len, struct hw_stream_id *out);
/* Writes the text with its NUL, and returns `text`. */
const char *hw_stream_id_print(struct hw_stream_id id, char text[HW_STREAM_ID_TEXT]);
/* -1, 0 or 1: `a` is before, at or after `b`. */
int hw_stream_id_compare(struct hw_stream_id a, struct hw_stream_id b);
/* Returns the least id after this one. For the greatest id returns the same id: 0-0 would mean the whole stream. */
struct hw_stream_id hw_stream_id_next(struct hw_stream_id id);
/* Returns the greatest id before this one. For {0, 0} returns {0, 0}. */
struct hw_stream_id hw_stream_id_previous(struct hw_stream_id id);

#endif
