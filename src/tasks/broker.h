/* SPDX-License-Identifier: MIT */
/*
 * The broker, as heartwheel-tasks sees it: two connections in threads of their own (mqtt/mqtt.h), one that reads and
 * one that publishes. With `instances = one` the reading one keeps its session for an hour; with several its
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

#define HW_BROKER_WAITING_MAX 8192       /* messages that wait for room on the way to the broker */
#define HW_BROKER_BYTES_MAX   (32 << 20) /* and their bytes */

struct hw_tasks_broker *hw_tasks_broker_new(struct hw_tasks_app *app);
/* Connects. 0 or -errno. */
int hw_tasks_broker_start(struct hw_tasks_broker *b, const char *password);
/* Waits up to `timeout_ms` for acknowledgements; what has none then is told HW_PUT_LOST. */
void hw_tasks_broker_free(struct hw_tasks_broker *b, int64_t timeout_ms);
void hw_tasks_broker_tick(struct hw_tasks_broker *b);

/* Whether messages can be published, and whether all subscriptions are there. */
bool hw_tasks_broker_publishes(const struct hw_tasks_broker *b);
bool hw_tasks_broker_reads(const struct hw_tasks_broker *b);
/* Why one of them is not, in words; "" while nobody knows. */
const char *hw_tasks_broker_why(const struct hw_tasks_broker *b);
/* Whether claims may bring more to be sent: half of those bytes are left. */
bool hw_tasks_broker_has_room(const struct hw_tasks_broker *b);
/* Messages handed over to it that have no answer yet. */
size_t hw_tasks_broker_waiting(const struct hw_tasks_broker *b);

/* --- publishing --------------------------------------------------------------------------------------------------- */

enum hw_put {
	HW_PUT_TAKEN,   /* the broker has it */
	HW_PUT_NOBODY,  /* it has it, and said that nobody subscribes to its topic (MQTT 5) */
	HW_PUT_REFUSED, /* it does not take it: a reason code >= 0x80, or the library would not send it */
	HW_PUT_LOST     /* the connection was lost first, or it was not tried: nobody knows */
};
/* What became of a message, exactly once, from the loop; `text`: why it was refused. */
typedef void hw_put_fn(void *arg, enum hw_put what, const char *text);

struct hw_tasks_put {
	struct hw_text topic, payload;
	unsigned qos; /* 0 or 1 */
	bool retain;
	uint32_t expiry_s; /* 0: none */
	/* Instead: of hw_tasks_now(): it is not handed over any more (LOST), and expires at the broker. 0: none. */
	int64_t until_ns;
	/* The same whenever this message is published again: finds out the one that the broker minds. 0: unknown. */
	uint64_t subject;
};
/* A subject of two texts that name the message. */
uint64_t hw_tasks_subject(struct hw_text a, struct hw_text b);
/* Hands a message over; copies it. 0; or -ENOTCONN, -EBUSY (too many wait), -ENOMEM, and `fn` is not called. `fn` may
 * be NULL. */
int hw_tasks_broker_publish(struct hw_tasks_broker *b, const struct hw_tasks_put *m, hw_put_fn *fn, void *arg);

/* --- subscribing -------------------------------------------------------------------------------------------------- */

struct hw_tasks_got {
	struct hw_text topic, payload;
	bool retained;
	bool truncated; /* the payload was longer than HW_TASK_BYTES_MAX: only its beginning is here */
};
/* A message; valid for the call. */
typedef void hw_got_fn(void *arg, const struct hw_tasks_got *m);
/*
 * From now on messages of the filter come to `fn`, those of several filters to each. `own`: also with several instances
 * this one gets all of them; otherwise only its share. 0 or -ENOMEM. The filter is copied.
 */
int hw_tasks_broker_listen(struct hw_tasks_broker *b, const char *filter, bool own, hw_got_fn *fn, void *arg);

/* For the wiring: while it is closed no message is taken; they wait at the broker. */
void hw_tasks_broker_open(struct hw_tasks_broker *b, bool open);
/* At the end: nothing more is read from the broker; what was read already, and acknowledged with that, still comes. */
void hw_tasks_broker_end(struct hw_tasks_broker *b);
/* Whether it has, all of it. */
bool hw_tasks_broker_has_ended(struct hw_tasks_broker *b);
/* Lets go what was handed over, once a turn. */
void hw_tasks_broker_flush(struct hw_tasks_broker *b);

#endif
