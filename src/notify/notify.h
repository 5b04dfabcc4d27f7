/* SPDX-License-Identifier: MIT */
/*
 * The notifier: transitions and blindness, gathered over an interval into one message, which a program gets on its
 * standard input and a web server by POST. A mass outage is one message, whatever its size.
 *
 * Nothing here waits: the program is a child of its own, watched through SIGCHLD, and libcurl's multi interface runs on
 * the loop, with names resolved in a thread of libcurl's. Each target takes one message at a time, in order; the queue
 * in front of it holds HW_NOTIFIER_QUEUE, and the oldest that waits makes room.
 */
#ifndef HW_NOTIFY_H
#define HW_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"

#define HW_NOTIFIER_QUEUE 16   /* messages that wait for a target */
#define HW_NOTIFIER_LIST  1000 /* transitions that a message names one by one */
#define HW_NOTIFIER_BLIND 100  /* the same of blindness */

struct event_base;
struct hw_notifier;

enum hw_notifier_kind { HW_NOTIFIER_EXEC, HW_NOTIFIER_WEBHOOK, HW_NOTIFIER_KINDS };

/* "exec", "webhook". */
const char *hw_notifier_kind_name(enum hw_notifier_kind k);

struct hw_notifier_conf {
	const char *node_id;
	const char *exec;    /* absolute path; "": none */
	const char *webhook; /* http:// or https:// URL; "": none */
	int64_t interval_ms; /* from the first thing gathered to the message */
	int64_t timeout_ms;  /* of the program, and of each try of the webhook */
	int64_t retry_ms;    /* before the second try; four times that before the next */
};

struct hw_notifier_stats {
	uint64_t sent[HW_NOTIFIER_KINDS];    /* messages: the program ended with 0, the server answered with 2xx */
	uint64_t failed[HW_NOTIFIER_KINDS];  /* messages that were given up */
	uint64_t retried[HW_NOTIFIER_KINDS]; /* tries after the first */
	uint64_t dropped;                    /* messages that a full queue, or a target that went, made room of */
	unsigned waiting[HW_NOTIFIER_KINDS];
};

/* What an operator should read: a message was given up, or dropped, and why. May call nothing of the notifier's. */
typedef void hw_notifier_trouble(void *arg, enum hw_notifier_kind kind, const char *text);

/* Does nothing until it is configured. All borrowed. NULL without memory. */
struct hw_notifier *hw_notifier_new(struct event_base *base, const struct hw_monitor *m, hw_notifier_trouble *trouble,
                                    void *arg);
/* Kills a program that still runs. */
void hw_notifier_free(struct hw_notifier *n);

/* At any time; copies. What is gathered stays; what waits for a target that is gone is dropped. 0, or -errno with
 * everything as it was. */
int hw_notifier_configure(struct hw_notifier *n, const struct hw_notifier_conf *conf);

void hw_notifier_transition(struct hw_notifier *n, struct hw_now now, const struct hw_transition *t);
/* `out` is a HW_OUT_BLIND. */
void hw_notifier_blind(struct hw_notifier *n, struct hw_now now, const struct hw_out *out);

/* Each second: what a timer that found no memory has left undone. */
void hw_notifier_tick(struct hw_notifier *n);

/* Sends what is gathered now rather than later. */
void hw_notifier_flush(struct hw_notifier *n);
/* Nothing is gathered, waiting or on its way. */
bool hw_notifier_idle(const struct hw_notifier *n);

const struct hw_notifier_stats *hw_notifier_stats(const struct hw_notifier *n);

#endif
