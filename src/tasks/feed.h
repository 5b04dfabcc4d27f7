/* SPDX-License-Identifier: MIT */
/*
 * The stream task:events as it grows, for those who want to know: clients of GET /v1/tasks/events, and who waits for a
 * task's end. It is read only while there is somebody, every HW_FEED_MS; a client that wants what was before, or does
 * not keep up, reads pages of its own.
 */
#ifndef HW_TASKS_FEED_H
#define HW_TASKS_FEED_H

#include "heartwheel/schedule.h"
#include "tasks/reads.h"

#define HW_FEED_MS      40
#define HW_FEED_CLIENTS 64

struct evhttp_request;
struct hw_feed; /* opaque */

/* `reads` is borrowed. `key`: of the stream; copied. NULL without memory. */
struct hw_feed *hw_feed_new(struct event_base *base, struct hw_reads *reads, const char *key);
/* Once all connections are closed. */
void hw_feed_free(struct hw_feed *f);
/* Redis is there, or is not: hw_reads_ops. */
void hw_feed_store(struct hw_feed *f, bool up);
/* Each second. */
void hw_feed_tick(struct hw_feed *f);

/* Answers GET /v1/tasks/events. */
void hw_feed_serve(struct hw_feed *f, struct evhttp_request *req);

/* Who waits for a task's end; in the caller's storage. */
struct hw_feed_wait {
	struct hw_feed_wait *next, **prev; /* prev NULL: it does not wait */
	struct hw_feed *feed;
	struct hw_task_id task;    /* these three are the caller's */
	void (*on_end)(void *arg); /* it has ended, perhaps: something that could not be read was missed. May stop it */
	void *arg;
};
/* From the next thing on that Redis is asked: who asks then whether it has ended already, misses nothing. */
void hw_feed_wait(struct hw_feed *f, struct hw_feed_wait *w);
/* Zeroed storage may be given. */
void hw_feed_wait_stop(struct hw_feed_wait *w);

struct hw_feed_stats {
	unsigned clients, lagging;
	uint64_t refused, resets;
};
void hw_feed_stats(const struct hw_feed *f, struct hw_feed_stats *out);

#endif
