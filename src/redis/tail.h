/* SPDX-License-Identifier: MIT */
/*
 * Follows the event stream, on a connection of its own, from a place that is given: what any node writes there is told
 * in its order, without a gap; or that there is one, and from where it goes on. What stands before that place is then
 * to be had in another way, from the hashes: ask for those after on_gap(), and nothing is missed.
 *
 * Each page is asked for with the entry that it goes on from, in one command, so that a stream that was trimmed past
 * us, deleted or put back in an older form is noticed whatever was written since. XREAD only wakes us: by itself it
 * says nothing of a stream that begins anew with lower places. It waits for a second at most, and then the place is
 * looked at as well.
 *
 * Another server than before (a failover, a restart) is a gap: it need not have what its predecessor told us.
 *
 * Nothing here logs or blocks. Cost: two commands for each page of what comes; while nothing comes, two a second.
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
	HW_TAIL_LOST,  /* the place to go on from is not in the stream any more: it was trimmed, deleted, put back */
	HW_TAIL_SERVER /* this is another server, or it was started anew */
};

struct hw_tail_ops {
	/* It follows, or does not (any more): `why` says what and what to do. */
	void (*on_link)(void *arg, bool up, const char *why);
	/* What is behind the last place; also with no event, once the end is reached: !page->more. */
	void (*on_page)(void *arg, const struct hw_event_page *page);
	/* Nothing is known of what stands up to `from`, and it goes on behind that. `why` is a sentence. */
	void (*on_gap)(void *arg, enum hw_tail_gap gap, struct hw_event_id from, const char *why);
	/* Redis refuses something: at most one a kind in 10 s; and that the stream may not be read once, when it
	 * begins.
	 */
	void (*on_trouble)(void *arg, const char *what);
};

struct hw_tail_stats {
	uint64_t entries, pages, gaps, connects;
};

/* Starts connecting. `conf` is copied, `ops` borrowed. NULL without memory. */
struct hw_tail *hw_tail_new(struct event_base *base, const struct hw_tail_conf *conf, const struct hw_tail_ops *ops,
                            void *arg);
/* Not from one of the callbacks. */
void hw_tail_free(struct hw_tail *t);

/* What is behind this place is told from now on; {0, 0}: from the stream's start. Before, nothing is. */
void hw_tail_from(struct hw_tail *t, struct hw_event_id place);
/* Up to where it has been told. */
struct hw_event_id hw_tail_place(const struct hw_tail *t);
/* The run id of the Redis that it is of; "" before that is known, or told as a gap; "?" if it does not tell. */
const char *hw_tail_server(const struct hw_tail *t);
/* Whether that was the end when it was looked at last. */
bool hw_tail_at_end(const struct hw_tail *t);
bool hw_tail_up(const struct hw_tail *t);
/* Whether Redis' ACL did not let us read the stream when that was tried last. */
bool hw_tail_is_denied(const struct hw_tail *t);
/* Each second: what found no memory is tried again. */
void hw_tail_tick(struct hw_tail *t);
const struct hw_tail_stats *hw_tail_stats(const struct hw_tail *t);

#endif
