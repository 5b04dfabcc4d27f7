/* SPDX-License-Identifier: MIT */
/* Parses a part of the event stream into events. */
#ifndef HW_REDIS_PAGE_H
#define HW_REDIS_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "heartwheel/event.h"
#include "stream/entries.h"

#define HW_EVENTS_PAGE 200 /* entries at most */

struct hw_page_asked {
	struct hw_stream_id after; /* the entries after this one; {0, 0}: from the start */
	bool last;                 /* true: the newest entries are requested; Redis returns them in reverse order */
	int64_t now_ms;            /* wall clock; 0: times are not checked */
	const char *node;          /* only entries of this node count; NULL: those of all nodes; borrowed */
};

/* Parses n entries. Fills *page. The events are in `events` and borrow from the reply. The caller fills the other
 * members of `page`. */
void hw_page_parse(const struct hw_page_asked *asked, redisReply *const *entries, size_t n,
                   struct hw_event events[HW_EVENTS_PAGE], struct hw_event_page *page);

/* Parses the answer to hw_stream_range() with HW_EVENTS_PAGE, or to XREVRANGE with asked->last. */
void hw_page_read(const struct hw_page_asked *asked, const redisReply *reply, struct hw_event events[HW_EVENTS_PAGE],
                  struct hw_event_page *page);

#endif
