/* SPDX-License-Identifier: MIT */
/*
 * What the other nodes have written: the event stream, followed on a connection of its own, and all of the store, read
 * at the start and again after a gap. The place to follow from is found first, so nothing is missed between the two.
 *
 * What the store does not have any more has been forgotten, unless the store was emptied, or is another one: then its
 * owners write it anew, and what it lacks is kept.
 */
#ifndef HW_CLUSTER_STREAM_H
#define HW_CLUSTER_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/event.h"
#include "heartwheel/time.h"

struct hw_app;
struct hw_tail;

enum hw_cluster_reading {
	HW_CLUSTER_UNREAD,  /* the stream's end has not been found yet */
	HW_CLUSTER_LOADS,   /* the first load */
	HW_CLUSTER_READ,    /* nothing is being read but the stream */
	HW_CLUSTER_FENCES,  /* to be read again: first it is asked whether the store was emptied */
	HW_CLUSTER_STARVES, /* there is no memory to tell what does not come: it is tried anew each second */
	HW_CLUSTER_REREADS, /* the hashes come */
	HW_CLUSTER_PROVES,  /* ... all came: it is asked again, before what did not is forgotten */
	HW_CLUSTER_ENDS     /* what did not come is being forgotten, or noted */
};

struct hw_cluster_stream {
	struct hw_tail *tail; /* owned */
	enum hw_cluster_reading reading;
	bool wanted;          /* to be read again, once it can be */
	bool keeps;           /* ... and nothing forgotten by it */
	bool keeping;         /* so it is with the reading under way */
	bool emptied;         /* the store was, since it was read last */
	bool followed;        /* to its end, since it began or began anew */
	bool server;          /* it is another Redis's; the hashes may have been read from the one before */
	struct hw_mono since; /* it is not at its end since then; 0: it is */
	uint64_t rereads;
};

/* 0 or -ENOMEM. */
int hw_app_cluster_stream_start(struct hw_app *a);
void hw_app_cluster_stream_free(struct hw_app *a);
void hw_app_cluster_stream_tick(struct hw_app *a);
/* Once a turn: what goes on by itself. */
void hw_app_cluster_read_on(struct hw_app *a, struct hw_now now);

/* All of the store is to be read again; `keeps`: and nothing forgotten by it. */
void hw_app_cluster_reread(struct hw_app *a, bool keeps);
/* The loader has come to its end. Whether it was not the first load. */
bool hw_app_cluster_reloaded(struct hw_app *a);
/* The hashes come over a connection, or over another one, from now on. The two do not change over together: if the
 * stream is another Redis's since, what was read over the old one may be of its predecessor, and is read again. */
void hw_app_cluster_linked(struct hw_app *a);
/* The store was found to be empty. */
void hw_app_cluster_emptied(struct hw_app *a);

/* Whether everything is known: the store was read, and the stream followed to its end. */
bool hw_app_cluster_is_read(const struct hw_app *a);
/* Whether Redis' ACL does not let us read the stream. */
bool hw_app_cluster_is_denied(const struct hw_app *a);
/* Whether its end was reached, and how many pages were read since the start. */
bool hw_app_cluster_at_end(const struct hw_app *a);
uint64_t hw_app_cluster_pages(const struct hw_app *a);
/* Up to where the stream was told. */
struct hw_event_id hw_app_cluster_place(const struct hw_app *a);
int64_t hw_app_cluster_lag_ms(const struct hw_app *a, struct hw_now now);

#endif
