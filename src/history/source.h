/* SPDX-License-Identifier: MIT */
/*
 * Access to Redis for the importer's thread. It blocks: each call sends a command and waits for the answer. It uses
 * link/link.h on its own event loop, which runs only during a wait. hw_source_wake() ends every wait, from any thread.
 *
 * A page is requested together with the entry after which it continues. If that entry is missing, the data about the
 * stream show the reason:
 *
 * - The stream was trimmed past our offset. The number of lost entries is then entries-added, less the length, less the
 *   entries that were read (Redis 7).
 * - It is another stream, because Redis was emptied or restored. It is read from its start.
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
	unsigned page; /* entries per request, which Redis answers in one go */
};

/* What is wrong with an entry or a hash. Such an entry is skipped. Only a wrong text, and a transition's time before
 * the year 2000, are corrected. */
enum hw_source_odd {
	HW_ODD_FIELDS,
	HW_ODD_TIME,
	HW_ODD_SEQ,
	HW_ODD_TEXT,
	HW_ODD_EARLY,
	HW_ODD_ROW, /* a row of SQL, not from Redis: hw_ledger_odd() */
	HW_ODD_KINDS
};

/* The entries after an offset. */
struct hw_source_page {
	struct hw_entry *entries; /* owned by the source, valid until the next page */
	size_t n;
	uint64_t odd[HW_ODD_KINDS];   /* number per kind; heartwheel/bounds.h has the bounds */
	struct hw_stream_id odd_at;   /* id of one of them */
	struct hw_stream_cursor from; /* offset that was requested */
	struct hw_stream_cursor to;   /* offset after the page */
	int64_t asked_ms;             /* our wall clock when the request was sent */
	struct hw_stream_gap gap;     /* gap before the page */
	bool more;                    /* the page is full */
};

/* Does not connect yet. `conf` is copied. Returns NULL if there is no memory. */
struct hw_source *hw_source_new(const struct hw_source_conf *conf);
void hw_source_free(struct hw_source *s);
/* Ends every wait, now and later. Called once, from any thread. */
void hw_source_wake(struct hw_source *s);
bool hw_source_is_woken(const struct hw_source *s);

/* Waits at most `ms` for the connection. Returns whether Redis is connected. */
bool hw_source_ready(struct hw_source *s, int ms);
/* Why Redis is away, or its last refusal. */
const char *hw_source_why(const struct hw_source *s);
/* Returns our clock or Redis' clock, as of the last answer, whichever is earlier. So a clock that is ahead does not
 * make rows look old. */
int64_t hw_source_earlier_ms(const struct hw_source *s);
/* Waits for `ms`. */
void hw_source_pause(struct hw_source *s, int ms);

/* Reads a page of a stream after an offset. Returns 0, -ENOTCONN if the connection was lost, or -EACCES if Redis
 * refuses: see hw_source_why(). */
int hw_source_read(struct hw_source *s, enum hw_stream stream, const struct hw_stream_cursor *from,
                   struct hw_source_page *out);
/* Waits for up to a second for an entry after one of the offsets, except in the streams of `but`. Returns as
 * hw_source_read(). */
int hw_source_wait(struct hw_source *s, const struct hw_stream_cursor at[HW_STREAMS], const bool but[HW_STREAMS]);
/* Counts the entries after an offset; -1: unknown (before Redis 7). Returns as hw_source_read(). */
int hw_source_lag(struct hw_source *s, enum hw_stream stream, const struct hw_stream_cursor *at, int64_t *out);

/* Reads the hashes of all devices in parts, as entries with the devices' last transitions. *cursor begins as "0", and
 * is "0" again after the last part. A key of another type is skipped. The page's offsets are not set. Returns as
 * hw_source_read(). */
int hw_source_scan(struct hw_source *s, char cursor[32], struct hw_source_page *out);
/* Checks for each device whether its hash exists; n is at most a page. Returns as hw_source_read(). */
int hw_source_has(struct hw_source *s, const struct hw_entry *devices, bool *has, size_t n);

#endif
