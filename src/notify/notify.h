/* SPDX-License-Identifier: MIT */
/*
 * The notifier: gathers the events of an interval into one message, as JSON or readable text. It passes the message to
 * a program on standard input, or to a web server by POST. A mass outage is one message, whatever its size. A source
 * determines the events and their texts: transitions of devices (devices.h), or tasks that failed.
 *
 * The notifier never blocks: the program is a child process whose end SIGCHLD reports; libcurl's multi interface runs
 * on the loop, and libcurl resolves names in a thread. Each target gets one message at a time, in order. Its queue has
 * room for HW_NOTIFIER_QUEUE messages; if it is full, the oldest waiting message is dropped. The results of the last
 * HW_NOTIFIER_PAST messages are kept in memory.
 */
#ifndef HW_NOTIFY_H
#define HW_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/template.h"

#define HW_NOTIFIER_QUEUE 16   /* messages that wait for a target */
#define HW_NOTIFIER_LIST  1000 /* transitions that a message lists */
#define HW_NOTIFIER_BLIND 100  /* blindness events that a message lists */
#define HW_NOTIFIER_PAST  100  /* messages whose results are kept */

struct event_base;
struct hw_notifier;
struct hw_notification;

/* The source of messages. `of` is the argument that hw_notifier_new() got. */
struct hw_notifier_source {
	/* Whether anything was gathered. */
	bool (*any)(const void *of);
	/* Makes the message and starts empty again. Returns 0, or -ENOMEM with nothing in `out`; the gathered events
	 * are then lost. */
	int (*seal)(void *of, const char *node_id, struct hw_notification *out);
	/* Makes a test message; the gathered events stay. Returns as `seal`. NULL: there are no tests. */
	int (*test)(void *of, const char *node_id, int64_t now_ms, struct hw_notification *out);
	void (*free)(void *of);
};

enum hw_notifier_kind { HW_NOTIFIER_EXEC, HW_NOTIFIER_WEBHOOK, HW_NOTIFIER_KINDS };

/* "exec", "webhook". */
const char *hw_notifier_kind_name(enum hw_notifier_kind k);

struct hw_notifier_conf {
	const char *node_id;
	const char *exec;    /* absolute path; "": none */
	const char *webhook; /* http:// or https:// URL; "": none */
	enum hw_notify_template as[HW_NOTIFIER_KINDS];
	const char *title, *text;        /* valid formats: see hw_notify_judge() */
	const char *mail_from, *mail_to; /* addresses, for HW_NOTIFY_MAIL */
	int64_t interval_ms;             /* from the first gathered event to the message */
	int64_t blind_after_ms;          /* a shorter blindness is not reported */
	int64_t timeout_ms;              /* of the program, and of each try of the webhook */
	int64_t retry_ms; /* delay before the second try; the delay before the third is four times as long */
};

struct hw_notifier_stats {
	uint64_t sent[HW_NOTIFIER_KINDS];    /* messages: exit status 0, or an HTTP status 2xx */
	uint64_t failed[HW_NOTIFIER_KINDS];  /* messages given up */
	uint64_t retried[HW_NOTIFIER_KINDS]; /* tries after the first */
	uint64_t dropped;                    /* dropped because of a full queue or a removed target */
	unsigned waiting[HW_NOTIFIER_KINDS];
};

enum hw_notifier_result { HW_NOTIFIER_WAITS, HW_NOTIFIER_SENT, HW_NOTIFIER_FAILED, HW_NOTIFIER_DROPPED };
/* "waiting", "sent", "failed", "dropped". */
const char *hw_notifier_result_name(enum hw_notifier_result r);

/* The result of a message to one target. */
struct hw_notifier_entry {
	uint64_t number; /* from 1 in this run, counting both targets */
	enum hw_notifier_kind kind;
	enum hw_notifier_result result;
	bool test;        /* sent on request */
	unsigned tries;   /* finished tries */
	int code;         /* of the last try: exit status or HTTP status; -1: none */
	int64_t at_ms;    /* wall clock when it was made */
	int64_t ended_ms; /* wall clock when the result was known; 0: not yet */
	char about[512];  /* the summary sentence */
	char why[160];    /* error of the last try, or why it was dropped; "": none */
};

/* Called when a message is given up or dropped, with a text for the log. Must not call the notifier. */
typedef void hw_notifier_trouble(void *arg, enum hw_notifier_kind kind, const char *text);

/* Inactive until it is configured. `of` is owned, and is freed on failure too; the other arguments are borrowed.
 * Returns NULL without memory or if `of` is NULL. */
struct hw_notifier *hw_notifier_new(struct event_base *base, const struct hw_notifier_source *source, void *of,
                                    hw_notifier_trouble *trouble, void *arg);
/* Kills a running program. */
void hw_notifier_free(struct hw_notifier *n);

/* May be called at any time; copies `conf`. Gathered events stay. Messages for a removed target are dropped. Returns 0,
 * or -errno with everything unchanged. */
int hw_notifier_configure(struct hw_notifier *n, const struct hw_notifier_conf *conf);

/* Where to gather events; NULL: no target is configured. */
void *hw_notifier_gathers(struct hw_notifier *n);
/* The configured blind_after_ms. */
int64_t hw_notifier_blind_after_ms(const struct hw_notifier *n);
/* Called after an event was gathered. The message is sent one interval after its first event. */
void hw_notifier_gathered(struct hw_notifier *n);

/* Sends a test message before those that wait, with a single try. Returns 0 and its number; -ENOENT: there is no such
 * target, or the source has no tests; -EBUSY: the queue is full; or -ENOMEM. */
int hw_notifier_test(struct hw_notifier *n, enum hw_notifier_kind kind, uint64_t *number);

/* The number of the last message; 0: none. */
uint64_t hw_notifier_last(const struct hw_notifier *n);
/* The result of a message; NULL: it is not kept any more. Valid until the next turn. */
const struct hw_notifier_entry *hw_notifier_entry(const struct hw_notifier *n, uint64_t number);

/* Call once a second: repeats an event_add that failed. */
void hw_notifier_tick(struct hw_notifier *n);

/* Sends the gathered events now. */
void hw_notifier_flush(struct hw_notifier *n);
/* Whether nothing is gathered, waiting or in delivery. */
bool hw_notifier_idle(const struct hw_notifier *n);

const struct hw_notifier_stats *hw_notifier_stats(const struct hw_notifier *n);

#endif
