/* SPDX-License-Identifier: MIT */
/*
 * The broker: two connections in threads of their own (mqtt/mqtt.h). The reader subscribes, the publisher publishes.
 * With `instances = one` the broker keeps the reader's session for an hour. With `several` the subscriptions are
 * shared, and the session is clean.
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
/* Waits up to `timeout_ms` for acknowledgements. A message that has none by then gets HW_PUT_LOST. */
void hw_tasks_broker_free(struct hw_tasks_broker *b, int64_t timeout_ms);
void hw_tasks_broker_tick(struct hw_tasks_broker *b);

/* Whether messages can be published; whether all subscriptions are in force. */
bool hw_tasks_broker_publishes(const struct hw_tasks_broker *b);
bool hw_tasks_broker_reads(const struct hw_tasks_broker *b);
/* Why a connection is down, as a sentence; "" if the reason is not known yet. */
const char *hw_tasks_broker_why(const struct hw_tasks_broker *b);
/* Whether claims may add messages: less than half of HW_BROKER_BYTES_MAX is in use. */
bool hw_tasks_broker_has_room(const struct hw_tasks_broker *b);
/* The number of messages that have no result yet. */
size_t hw_tasks_broker_waiting(const struct hw_tasks_broker *b);

/* --- publishing --------------------------------------------------------------------------------------------------- */

enum hw_put {
	HW_PUT_TAKEN,   /* the broker has it */
	HW_PUT_NOBODY,  /* the broker has it, but no client subscribes to its topic (MQTT 5) */
	HW_PUT_REFUSED, /* the broker refused it (reason code >= 0x80), or the library did not send it */
	HW_PUT_LOST     /* the connection was lost before the result, or the message was not sent */
};
/* Called exactly once per message, from the loop, with its result. `text`: why it was refused. */
typedef void hw_put_fn(void *arg, enum hw_put what, const char *text);

struct hw_tasks_put {
	struct hw_text topic, payload;
	unsigned qos; /* 0 or 1 */
	bool retain;
	uint32_t expiry_s; /* 0: none */
	/* Instead of expiry_s, a time of hw_tasks_now(): a message that still waits then is LOST, and the broker drops
	 * it. 0: none. */
	int64_t until_ns;
	/* Equal each time this message is published. So the publisher can find a message on which the broker always
	 * closes the connection. 0: unknown. */
	uint64_t subject;
};
/* Makes a subject of two texts that name the message. */
uint64_t hw_tasks_subject(struct hw_text a, struct hw_text b);
/* Queues a copy of a message. Returns 0; or -ENOTCONN, -EBUSY (too many wait) or -ENOMEM, and then does not call `fn`.
 * `fn` may be NULL. */
int hw_tasks_broker_publish(struct hw_tasks_broker *b, const struct hw_tasks_put *m, hw_put_fn *fn, void *arg);

/* --- subscribing -------------------------------------------------------------------------------------------------- */

struct hw_tasks_got {
	struct hw_text topic, payload;
	bool retained;
	bool truncated; /* the payload was longer than HW_TASK_BYTES_MAX: only its beginning is here */
};
/* Called with a message, which is valid during the call. */
typedef void hw_got_fn(void *arg, const struct hw_tasks_got *m);
/*
 * From now on `fn` is called with each message that the filter matches. If several filters match, each filter's
 * function is called. `own`: with several instances this instance receives every message, not only its share. Returns 0
 * or -ENOMEM. The filter is copied.
 */
int hw_tasks_broker_listen(struct hw_tasks_broker *b, const char *filter, bool own, hw_got_fn *fn, void *arg);

/* Called by the turn. While the broker is closed, no message is taken, and messages wait in the broker. */
void hw_tasks_broker_open(struct hw_tasks_broker *b, bool open);
/* Stops reading from the broker, at the end. Messages that were read and acknowledged before are still delivered. */
void hw_tasks_broker_end(struct hw_tasks_broker *b);
/* Whether every message that was read has been delivered. */
bool hw_tasks_broker_has_ended(struct hw_tasks_broker *b);
/* Passes waiting messages to the publisher. The turn calls it once. */
void hw_tasks_broker_flush(struct hw_tasks_broker *b);

#endif
