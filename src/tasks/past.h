/* SPDX-License-Identifier: MIT */
/*
 * What Redis has trimmed of device:events, as heartwheel-history has it: a page of transitions in the order of the
 * stream, and what is missing between them, through its socket. Nothing here waits. What is asked is bounded
 * (HW_FETCH_MAX, http/fetch.h); nothing is kept of an answer.
 */
#ifndef HW_TASKS_PAST_H
#define HW_TASKS_PAST_H

#include "heartwheel/topic.h"
#include "tasks/place.h"
#include "tasks/stream_reader.h"

#define HW_PAST_PAGE 500 /* transitions that are asked for at once */

struct event_base;
struct hw_past; /* opaque */

/* An answer. */
struct hw_past_page {
	struct hw_place read; /* how far history has read the stream */
	bool more;            /* there are more transitions behind the last of these */
	/* hw_past_next()'s own. */
	const char *events, *gaps;
	size_t events_len, gaps_len, at;
	struct hw_place begin, after;
	struct hw_past_hole {
		struct hw_place after, before;
		int64_t lost;
	} ahead;          /* the first that ends behind `after` */
	bool looked, any; /* for it; there is one */
};

/* A transition; or a hole, of which nobody has anything. */
struct hw_past_item {
	bool hole;
	struct hw_place id;                 /* of the transition; of a hole the last one that may have been in it */
	struct hw_device_transition device; /* borrows from `text` */
	struct hw_place after;              /* of a hole: the place before it */
	int64_t lost;                       /* how many entries; -1: nobody knows */
	char text[5][HW_ID_MAX * 6 + 3];
};

/* `page`, valid until this returns, NULL: history does not answer, or has nothing. Called from the loop, never from
 * hw_past_ask(); may ask. */
typedef void hw_past_done(void *arg, struct hw_past_page *page);

/* The text is copied. NULL without memory. */
struct hw_past *hw_past_new(struct event_base *base, const char *socket);
/* Gives up what is under way; done() is not called. NULL may be given. */
void hw_past_free(struct hw_past *p);

/* What lies behind `after`. 0, or -errno and done() is not called: -EBUSY, -ENOMEM. */
int hw_past_ask(struct hw_past *p, struct hw_place after, hw_past_done *done, void *arg);
/* The next transition or hole, in order; a hole stands before what follows on it. False: that was all. */
bool hw_past_next(struct hw_past_page *page, struct hw_past_item *out);

/* An answer's body, as it came, to the question behind `after`; false: it makes no sense, or nothing is kept. */
bool hw_past_read(struct hw_past_page *page, struct hw_place after, const char *body, size_t len);

#endif
