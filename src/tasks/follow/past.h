/* SPDX-License-Identifier: MIT */
/*
 * Reads transitions that Redis has trimmed from device:events, from heartwheel-history through its socket. A page has
 * the transitions in the order of the stream, and the gaps between them. No call blocks. At most HW_FETCH_MAX requests
 * are open at a time (http/fetch.h). No answer is stored.
 */
#ifndef HW_TASKS_PAST_H
#define HW_TASKS_PAST_H

#include "heartwheel/topic.h"
#include "stream/id.h"
#include "tasks/follow/transition.h"

#define HW_PAST_PAGE 500 /* transitions per request */

struct event_base;
struct hw_past;

/* An answer: a page. */
struct hw_past_page {
	struct hw_stream_id read; /* the last entry of the stream that history has read */
	bool more;                /* more transitions follow the last one of this page */
	/* Private to hw_past_next(). */
	const char *events, *gaps;
	size_t events_len, gaps_len, at;
	struct hw_stream_id begin, after;
	struct hw_past_hole {
		struct hw_stream_id after, before;
		int64_t lost;
	} ahead;            /* the first gap that ends after `after` */
	bool searched, any; /* searched: `ahead` was; any: it was found */
};

/* A transition, or a gap: entries that neither Redis nor history has. */
struct hw_past_item {
	bool hole;
	struct hw_stream_id id;             /* of a transition: its id; of a gap: the last id that may be missing */
	struct hw_device_transition device; /* borrows from `text` */
	struct hw_stream_id after;          /* of a gap: the offset before it */
	int64_t lost;                       /* entries in the gap; -1: unknown */
	char text[5][HW_ID_MAX * 6 + 3];
};

/* Called with a page, which is valid during the call. NULL: history does not answer, or has no transitions. Called from
 * the loop, and never from hw_past_ask(). It may call hw_past_ask(). */
typedef void hw_past_done(void *arg, struct hw_past_page *page);

/* `socket` is copied. Returns NULL if there is no memory. */
struct hw_past *hw_past_new(struct event_base *base, const char *socket);
/* Cancels all requests without calling done(). NULL is allowed. */
void hw_past_free(struct hw_past *p);

/* Requests the transitions and gaps after `after`. Returns 0, or -EBUSY or -ENOMEM without calling done(). */
int hw_past_ask(struct hw_past *p, struct hw_stream_id after, hw_past_done *done, void *arg);
/* Returns the next transition or gap. A gap comes before the transition that follows it. Returns false at the end of
 * the page. */
bool hw_past_next(struct hw_past_page *page, struct hw_past_item *out);

/* Reads the body of an answer with the transitions and gaps after `after`. Returns false if the body is malformed,
 * or if history has no transitions. */
bool hw_past_read(struct hw_past_page *page, struct hw_stream_id after, const char *body, size_t len);

#endif
