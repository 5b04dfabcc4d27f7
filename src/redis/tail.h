/* SPDX-License-Identifier: MIT */
/*
 * Follows the event stream from a given offset, on a connection of its own. Reports the entries of all nodes in their
 * order and without a gap. If a gap cannot be avoided, reports the gap and the offset at which reading continues. The
 * caller then reads the hashes, after on_gap(), and so misses no transition.
 *
 * stream/reader.h describes how the stream is read, and what happens if it was trimmed, emptied or replaced.
 *
 * A server with another run id (after a failover or a restart) also counts as a gap, because it may lack entries that
 * its predecessor had.
 *
 * This code logs nothing and never blocks. Cost: two commands for each page; two in a second while nothing arrives.
 */
#ifndef HW_REDIS_TAIL_H
#define HW_REDIS_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/event.h"
#include "link/address.h"

struct event_base;
struct hw_tail; /* opaque */

struct hw_tail_conf {
	struct hw_redis_address at;
	const char *key_prefix;
	uint64_t seed;
};

enum hw_tail_gap {
	/* the entry at the offset is no longer in the stream: it was trimmed or deleted, or the stream was restored
	 * from an old copy */
	HW_TAIL_LOST,
	HW_TAIL_SERVER /* this is another server, or it was restarted */
};

struct hw_tail_ops {
	/* Called when following has begun, or has ended. `why` names the reason and the remedy. */
	void (*on_link)(void *arg, bool up, const char *why);
	/* Called with the entries after the last page. When the end is reached (!page->more), also called without
	 * entries. */
	void (*on_page)(void *arg, const struct hw_event_page *page);
	/* Called when entries are missing, the last of them at `from`; reading continues after it. `why` is a
	 * sentence. */
	void (*on_gap)(void *arg, enum hw_tail_gap gap, struct hw_stream_id from, const char *why);
	/* Called when Redis refuses a command, at most once in 10 s for each kind. A missing right to read the
	 * stream is reported once, when it begins. */
	void (*on_trouble)(void *arg, const char *what);
};

struct hw_tail_stats {
	uint64_t entries, pages, gaps, connects;
};

/* Starts connecting. `conf` is copied, `ops` borrowed. NULL if there is no memory. */
struct hw_tail *hw_tail_new(struct event_base *base, const struct hw_tail_conf *conf, const struct hw_tail_ops *ops,
                            void *arg);
/* Must not be called from a callback. */
void hw_tail_free(struct hw_tail *t);

/* Starts to report the entries after this offset; {0, 0}: from the start. Before the first call, nothing is reported.
 */
void hw_tail_from(struct hw_tail *t, struct hw_stream_id offset);
/* The offset up to which entries have been reported. */
struct hw_stream_id hw_tail_offset(const struct hw_tail *t);
/* Returns the run id of the Redis server to which the offset belongs. "": it is not known yet, or a gap is about to
 * be reported. "?": Redis does not report it. */
const char *hw_tail_server(const struct hw_tail *t);
/* Whether the offset was the end of the stream when it was last checked. */
bool hw_tail_at_end(const struct hw_tail *t);
bool hw_tail_up(const struct hw_tail *t);
/* Whether the right to read the stream was missing at the last attempt. */
bool hw_tail_is_denied(const struct hw_tail *t);
/* Each second: repeats what failed for lack of memory. */
void hw_tail_tick(struct hw_tail *t);
const struct hw_tail_stats *hw_tail_stats(const struct hw_tail *t);

#endif
