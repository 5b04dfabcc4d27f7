/* SPDX-License-Identifier: MIT */
/*
 * Follows the stream task:events for the clients of GET /v1/tasks/events, and for requests that wait until a task ends.
 * The stream is read every HW_FEED_MS, but only while there is such a client or request. A client that wants older
 * entries, or that reads too slowly, gets pages of its own.
 */
#ifndef HW_TASKS_FEED_H
#define HW_TASKS_FEED_H

#include "tasks/app.h"
#include "tasks/queue/reads.h"
#include "tasks/schedule/schedule.h"

#define HW_FEED_MS      40
#define HW_FEED_CLIENTS 64

struct evhttp_request;
struct hw_feed;

/* Creates a feed. `reads` is borrowed. `key`: name of the stream; copied. Returns NULL if there is no memory. */
struct hw_feed *hw_feed_new(struct hw_tasks_app *app, struct hw_reads *reads, const char *key);
/* Called when all HTTP connections are closed. */
void hw_feed_free(struct hw_feed *f);
/* Called from hw_reads_ops when Redis becomes up, or is away. */
void hw_feed_store(struct hw_feed *f, bool up);
/* Called each second. */
void hw_feed_tick(struct hw_feed *f);

/* Answers GET /v1/tasks/events. */
void hw_feed_serve(struct hw_feed *f, struct evhttp_request *req);

/* A request that waits until a task ends. The caller owns the storage. */
struct hw_feed_wait {
	struct hw_feed_wait *next, **prev; /* prev NULL: not waiting */
	struct hw_feed *feed;
	struct hw_task_id task;    /* the caller sets these three */
	void (*on_end)(void *arg); /* called from the loop when the task has ended */
	void *arg;
};
/* Begins to wait. From the next reading of the stream on, the end of the task calls on_end(). A caller that reads
 * the task's state from Redis after this call misses no end. */
void hw_feed_wait(struct hw_feed *f, struct hw_feed_wait *w);
/* Stops waiting. Zeroed storage is allowed. */
void hw_feed_wait_stop(struct hw_feed_wait *w);

struct hw_feed_stats {
	unsigned clients, lagging;
	uint64_t refused, resets;
};
void hw_feed_stats(const struct hw_feed *f, struct hw_feed_stats *out);

#endif
