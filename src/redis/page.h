/* SPDX-License-Identifier: MIT */
/* A part of the event stream as Redis answers it (XRANGE, XREVRANGE), read into events. */
#ifndef HW_REDIS_PAGE_H
#define HW_REDIS_PAGE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#include "heartwheel/event.h"

#define HW_EVENTS_PAGE 200 /* entries at most */

struct hw_page_asked {
	struct hw_event_id after; /* the place to go on from, which the range begins with; {0, 0}: from the start */
	bool last;                /* the newest entries: in reverse */
	unsigned count;           /* how many were asked for */
	int64_t now_ms;           /* wall clock; 0: times are not checked */
	const char *node;         /* whose entries count; NULL: everybody's. Borrowed */
};

/*
 * `reply` is an array. Fills *page, whose events stand in `events` and borrow from the reply. A page begins with the
 * entry that it goes on from: if that is not there, neither are perhaps those behind it, and it is `gone`.
 */
void hw_page_read(const struct hw_page_asked *asked, const redisReply *reply, struct hw_event events[HW_EVENTS_PAGE],
                  struct hw_event_page *page);

#endif
