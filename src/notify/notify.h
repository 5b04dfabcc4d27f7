/* SPDX-License-Identifier: MIT */
/*
 * The notifier: what happens, gathered over an interval into one message, which a program gets on its standard input
 * and a web server by POST, as JSON or as text for people. A mass outage is one message, whatever its size. What it is
 * that happens, and how it reads, is its source's: transitions of devices (devices.h), or tasks that came to nothing.
 *
 * Nothing here waits: the program is a child of its own, watched through SIGCHLD, and libcurl's multi interface runs on
 * the loop, with names resolved in a thread of libcurl's. Each target takes one message at a time, in order; the queue
 * in front of it holds HW_NOTIFIER_QUEUE, and the oldest that waits makes room. What became of the last
 * HW_NOTIFIER_PAST is remembered, in memory alone.
 */
#ifndef HW_NOTIFY_H
#define HW_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/template.h"

#define HW_NOTIFIER_QUEUE 16   /* messages that wait for a target */
#define HW_NOTIFIER_LIST  1000 /* transitions that a message names one by one */
#define HW_NOTIFIER_BLIND 100  /* the same of blindness */
#define HW_NOTIFIER_PAST  100  /* messages whose fate is remembered */

struct event_base;
struct hw_notifier;
struct hw_telling;

/* Where messages come from. `of` is what hw_notifier_new() was given. */
struct hw_notifier_source {
	/* Something was gathered. */
	bool (*any)(const void *of);
	/* Makes the message and begins anew. 0; or -ENOMEM with nothing in `out`: what was gathered is lost then. */
	int (*seal)(void *of, const char *node_id, struct hw_telling *out);
	/* One that an operator has asked for; what is gathered stays. Likewise. NULL: there is none. */
	int (*test)(void *of, const char *node_id, int64_t now_ms, struct hw_telling *out);
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
	const char *title, *text;        /* good formats: see hw_notify_judge() */
	const char *mail_from, *mail_to; /* addresses, where one is told by HW_NOTIFY_MAIL */
	int64_t interval_ms;             /* from the first thing gathered to the message */
	int64_t blind_after_ms;          /* blindness that is shorter brings no message */
	int64_t timeout_ms;              /* of the program, and of each try of the webhook */
	int64_t retry_ms;                /* before the second try; four times that before the next */
};

struct hw_notifier_stats {
	uint64_t sent[HW_NOTIFIER_KINDS];    /* messages: the program ended with 0, the server answered with 2xx */
	uint64_t failed[HW_NOTIFIER_KINDS];  /* messages that were given up */
	uint64_t retried[HW_NOTIFIER_KINDS]; /* tries after the first */
	uint64_t dropped;                    /* messages that a full queue, or a target that went, made room of */
	unsigned waiting[HW_NOTIFIER_KINDS];
};

enum hw_notifier_result { HW_NOTIFIER_WAITS, HW_NOTIFIER_SENT, HW_NOTIFIER_FAILED, HW_NOTIFIER_DROPPED };
/* "waiting", "sent", "failed", "dropped". */
const char *hw_notifier_result_name(enum hw_notifier_result r);

/* What became of a message to one target. */
struct hw_notifier_entry {
	uint64_t number; /* from 1 in this run, of both targets' together */
	enum hw_notifier_kind kind;
	enum hw_notifier_result result;
	bool test;        /* somebody has asked for it */
	unsigned tries;   /* that are over */
	int code;         /* of the last: exit status or HTTP status; -1: there was none */
	int64_t at_ms;    /* wall clock, when it was made */
	int64_t ended_ms; /* ... when it was known whether it arrived; 0: not yet */
	char about[512];  /* what it says, in a sentence */
	char why[160];    /* what was wrong with the last try, or why it was dropped; "": nothing */
};

/* What an operator should read: a message was given up, or dropped, and why. May call nothing of the notifier's. */
typedef void hw_notifier_trouble(void *arg, enum hw_notifier_kind kind, const char *text);

/* Does nothing until it is configured. `of` is owned, and freed also if that fails; all else is borrowed. NULL without
 * memory, or `of`. */
struct hw_notifier *hw_notifier_new(struct event_base *base, const struct hw_notifier_source *source, void *of,
                                    hw_notifier_trouble *trouble, void *arg);
/* Kills a program that still runs. */
void hw_notifier_free(struct hw_notifier *n);

/* At any time; copies. What is gathered stays; what waits for a target that is gone is dropped. 0, or -errno with
 * everything as it was. */
int hw_notifier_configure(struct hw_notifier *n, const struct hw_notifier_conf *conf);

/* What to gather in; NULL: nobody is to be told. */
void *hw_notifier_gathers(struct hw_notifier *n);
/* Of the configuration. */
int64_t hw_notifier_blind_after_ms(const struct hw_notifier *n);
/* Something was: the message goes out an interval after the first thing in it. */
void hw_notifier_gathered(struct hw_notifier *n);

/* Sends one message that says that it is a test, before those that wait; it is tried once. 0 and its number, or
 * -ENOENT: no such target is configured, or the
 * source has no tests; -EBUSY: the queue is full; -ENOMEM. */
int hw_notifier_test(struct hw_notifier *n, enum hw_notifier_kind kind, uint64_t *number);

/* The number of the last message; 0: there was none. */
uint64_t hw_notifier_last(const struct hw_notifier *n);
/* What became of one; NULL: that is no longer known. Valid until the next turn. */
const struct hw_notifier_entry *hw_notifier_entry(const struct hw_notifier *n, uint64_t number);

/* Each second: what a timer that found no memory has left undone. */
void hw_notifier_tick(struct hw_notifier *n);

/* Sends what is gathered now rather than later. */
void hw_notifier_flush(struct hw_notifier *n);
/* Nothing is gathered, waiting or on its way. */
bool hw_notifier_idle(const struct hw_notifier *n);

const struct hw_notifier_stats *hw_notifier_stats(const struct hw_notifier *n);

#endif
