/* SPDX-License-Identifier: MIT */
/*
 * Redis as a thread of its own reads it: a question is asked and its answer waited for. It is the daemons' one
 * connection (link/link.h), on a loop that turns only while something is awaited; hw_source_wake() from any thread ends
 * each waiting.
 *
 * How a stream is read: a page is asked for with the entry that it goes on from. Where that is missing, what has
 * happened is made out of what the stream says of itself: trimmed past us, and by how much (entries-added less length,
 * less what had been read; Redis 7), or another stream (emptied, put back), which is then read from its start.
 */
#ifndef HW_HISTORY_SOURCE_H
#define HW_HISTORY_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "history/entry.h"
#include "link/address.h"

struct hw_source; /* opaque */

struct hw_source_conf {
	struct hw_redis_address at;
	const char *key_prefix; /* of devices */
	const char *task_prefix;
	uint64_t seed;
	unsigned page; /* entries that are asked for at once: Redis does nothing else meanwhile */
};

/* What is wrong with an entry or a hash: it is skipped, except that a text, and the time of a transition before the
 * year 2000, is corrected. */
enum hw_source_odd {
	HW_ODD_FIELDS,
	HW_ODD_TIME,
	HW_ODD_SEQ,
	HW_ODD_TEXT,
	HW_ODD_EARLY,
	HW_ODD_ROW, /* not of Redis: hw_ledger_odd() */
	HW_ODD_KINDS
};

/* What is behind a place. */
struct hw_source_page {
	struct hw_entry *entries; /* the source's, until the next page */
	size_t n;
	uint64_t odd[HW_ODD_KINDS]; /* how many of each; see heartwheel/bounds.h for the bounds */
	struct hw_event_id odd_at;  /* one of them */
	struct hw_place from;       /* the place that was asked for */
	struct hw_place to;         /* and the one behind the page */
	int64_t asked_ms;           /* our wall clock when Redis was asked */
	struct hw_gap gap;          /* before the page */
	bool more;                  /* the page is full */
};

/* Does not connect yet. `conf` is copied. NULL without memory. */
struct hw_source *hw_source_new(const struct hw_source_conf *conf);
void hw_source_free(struct hw_source *s);
/* From any thread, once: every waiting ends, now and later. */
void hw_source_wake(struct hw_source *s);
bool hw_source_is_woken(const struct hw_source *s);

/* Waits until Redis is there, or for `ms`. Whether it is. */
bool hw_source_ready(struct hw_source *s, int ms);
/* Why it is not, or what it refused last. */
const char *hw_source_why(const struct hw_source *s);
/* Does nothing but wait. */
void hw_source_pause(struct hw_source *s, int ms);

/* 0; -ENOTCONN if Redis went away; -EACCES if it refuses: hw_source_why(). */
int hw_source_read(struct hw_source *s, enum hw_stream stream, const struct hw_place *from, struct hw_source_page *out);
/* Waits for something behind one of the places, but those of `but`, for a second at most. 0 or as above. */
int hw_source_wait(struct hw_source *s, const struct hw_place at[HW_STREAMS], const bool but[HW_STREAMS]);
/* How many entries there are behind a place; -1: it does not tell (before Redis 7). 0 or as above. */
int hw_source_lag(struct hw_source *s, enum hw_stream stream, const struct hw_place *at, int64_t *out);

/* The hashes of all devices, a part at a time, as entries of their last transitions. *cursor begins as "0" and is "0"
 * again behind the last part. What holds something else than a hash is unusable. The page's places mean nothing. 0 or
 * as above. */
int hw_source_scan(struct hw_source *s, char cursor[32], struct hw_source_page *out);
/* Whether Redis has something under the key of each of these devices. At most as many as a page has. 0 or as above. */
int hw_source_has(struct hw_source *s, const struct hw_entry *devices, bool *has, size_t n);

#endif
