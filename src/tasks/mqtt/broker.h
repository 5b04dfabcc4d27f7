/* SPDX-License-Identifier: MIT */
/*
 * The broker: two connections, each with a thread (mqtt/mqtt.h). The reader subscribes, and the publisher publishes.
 * With `instances = one` the broker keeps the reader's session for an hour after a lost connection. With `several` the
 * subscriptions are shared, and the session is clean.
 */
#ifndef HW_TASKS_BROKER_H
#define HW_TASKS_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tasks/task.h"

struct hw_tasks_app;
struct hw_tasks_broker;

#define HW_BROKER_WAITING_MAX 8192       /* limit of the messages without a result */
#define HW_BROKER_BYTES_MAX   (32 << 20) /* limit of their topic and payload bytes */

struct hw_tasks_broker *hw_tasks_broker_new(struct hw_tasks_app *app);
/* Connects. Returns 0 or -errno. */
int hw_tasks_broker_start(struct hw_tasks_broker *b, const char *password);
/* Waits up to `timeout_ms` for acknowledgements. A message without one gets the result HW_PUT_LOST. */
void hw_tasks_broker_free(struct hw_tasks_broker *b, int64_t timeout_ms);
void hw_tasks_broker_tick(struct hw_tasks_broker *b);

/* hw_tasks_broker_publishes(): whether messages can be published. hw_tasks_broker_reads(): whether all subscriptions
 * are granted. */
bool hw_tasks_broker_publishes(const struct hw_tasks_broker *b);
bool hw_tasks_broker_reads(const struct hw_tasks_broker *b);
/* Returns why a connection is down, as a sentence; "" if the reason is not known yet. */
const char *hw_tasks_broker_why(const struct hw_tasks_broker *b);
/* Whether there is room for the messages of more tasks, so that tasks may be claimed: less than half of
 * HW_BROKER_BYTES_MAX is in use. */
bool hw_tasks_broker_has_room(const struct hw_tasks_broker *b);
/* Returns the number of messages that have no result yet. */
size_t hw_tasks_broker_waiting(const struct hw_tasks_broker *b);

/* --- publishing --------------------------------------------------------------------------------------------------- */

enum hw_put {
	HW_PUT_TAKEN,   /* the broker has it */
	HW_PUT_NOBODY,  /* the broker has the message, but no client subscribes to its topic (MQTT 5) */
	HW_PUT_REFUSED, /* the broker refused it (reason code >= 0x80), or the library did not send it */
	HW_PUT_LOST     /* the connection was lost before there was a result, or the message was not sent */
};
/* Called with the result of a message, exactly once, from the loop. `text`: why the broker refused the message. */
typedef void hw_put_fn(void *arg, enum hw_put what, const char *text);

struct hw_tasks_put {
	struct hw_text topic, payload;
	unsigned qos; /* 0 or 1 */
	bool retain;
	uint32_t expiry_s; /* 0: none */
	/* If not 0, this replaces expiry_s. At this time of hw_tasks_now(), the message expires: if it still waits
	 * here, its result is LOST; if it waits at the broker, the broker discards it. */
	int64_t until_ns;
	/* The same number each time that this message is published. If the broker closes the connection on a message
	 * again and again, the publisher recognises the message by this number. 0: unknown. */
	uint64_t subject;
};
/* Makes a subject of two texts that name the message. */
uint64_t hw_tasks_subject(struct hw_text a, struct hw_text b);
/* Queues a copy of a message. Returns 0, or -ENOTCONN, -EBUSY (too many messages wait) or -ENOMEM, and `fn` is then not
 * called. `fn` may be NULL. */
int hw_tasks_broker_publish(struct hw_tasks_broker *b, const struct hw_tasks_put *m, hw_put_fn *fn, void *arg);

/* --- subscribing -------------------------------------------------------------------------------------------------- */

struct hw_tasks_got {
	struct hw_text topic, payload;
	bool retained;
	bool truncated; /* the payload is cut at HW_TASK_BYTES_MAX bytes */
};
/* Called with a message, which is valid during the call. */
typedef void hw_got_fn(void *arg, const struct hw_tasks_got *m);
/*
 * Calls `fn` from now on with each message that matches the filter. If several filters match a message, the function of
 * each is called. `own`: with several instances, this instance receives every message, and not only its share. Returns
 * 0 or -ENOMEM. The filter is copied.
 */
int hw_tasks_broker_listen(struct hw_tasks_broker *b, const char *filter, bool own, hw_got_fn *fn, void *arg);

/* Called by the turn. Sets whether messages are read. While they are not, they wait at the MQTT broker. */
void hw_tasks_broker_open(struct hw_tasks_broker *b, bool open);
/* Stops reading from the broker for good. Messages that were already read and acknowledged are still passed on. */
void hw_tasks_broker_end(struct hw_tasks_broker *b);
/* Whether every message that was read was passed on. */
bool hw_tasks_broker_has_ended(struct hw_tasks_broker *b);
/* Hands waiting messages to the publisher. Called once in each turn. */
void hw_tasks_broker_flush(struct hw_tasks_broker *b);

#endif
