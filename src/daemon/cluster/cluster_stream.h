/* SPDX-License-Identifier: MIT */
/*
 * The writes of the other nodes: the event stream, followed on a connection of its own, and the whole store. The store
 * is read at the start, and again after a gap. The stream's offset is determined before the store is read, so no entry
 * between the two is missed.
 *
 * A device that the store does not contain was forgotten. But if the store was emptied or is another one, missing
 * devices are kept, because their owners write them again.
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
	HW_CLUSTER_READ,    /* only the stream is being read */
	HW_CLUSTER_FENCES,  /* before the next reading, Redis is asked whether the store was emptied */
	HW_CLUSTER_STARVES, /* memory is missing to note which devices are read; tried again each second */
	HW_CLUSTER_REREADS, /* the hashes are being read */
	HW_CLUSTER_PROVES,  /* after the reading, Redis is asked again; then missing devices may be forgotten */
	HW_CLUSTER_ENDS     /* the devices that were not read are being forgotten, or marked as missing */
};

struct hw_cluster_stream {
	struct hw_tail *tail; /* owned */
	enum hw_cluster_reading reading;
	bool wanted;   /* the store is to be read again when possible */
	bool keeps;    /* ... and no missing device is forgotten then */
	bool keeping;  /* `keeps` of the reading under way */
	bool emptied;  /* the store was found empty since the last check */
	bool followed; /* the end of the stream was reached since the last connect or gap */
	bool server;   /* the stream is that of another Redis now, but hashes of the previous one may have been read */
	struct hw_mono since; /* since when the reader is behind the end of the stream; 0: it is at the end */
	uint64_t rereads;
};

/* Returns 0 or -ENOMEM. */
int hw_app_cluster_stream_start(struct hw_app *a);
void hw_app_cluster_stream_free(struct hw_app *a);
void hw_app_cluster_stream_tick(struct hw_app *a);
/* Called once a turn: continues the reading. */
void hw_app_cluster_read_on(struct hw_app *a, struct hw_now now);

/* Whether the store was read completely and the stream was followed to its end. */
bool hw_app_cluster_is_read(const struct hw_app *a);
/* Whether Redis denies this node the right to read the stream. */
bool hw_app_cluster_is_denied(const struct hw_app *a);
/* hw_app_cluster_at_end(): whether the reader is at the end of the stream. hw_app_cluster_pages(): how many pages
 * were read since the start. */
bool hw_app_cluster_at_end(const struct hw_app *a);
uint64_t hw_app_cluster_pages(const struct hw_app *a);
/* The offset up to which entries were processed. */
struct hw_stream_id hw_app_cluster_offset(const struct hw_app *a);
int64_t hw_app_cluster_lag_ms(const struct hw_app *a, struct hw_now now);

#endif
