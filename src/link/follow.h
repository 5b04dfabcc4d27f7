/* SPDX-License-Identifier: MIT */
/*
 * Where the master is, as Sentinels tell. One is asked after the other, HW_FOLLOW_ASK_MS each, until one names a
 * master; that one is then listened to (+switch-master). Every HW_FOLLOW_AGAIN_MS another one is asked and listened to
 * instead, so that one that was cut off or stands still is not believed for long.
 *
 * Cost: one connection, and one more while one is asked.
 */
#ifndef HW_LINK_FOLLOW_H
#define HW_LINK_FOLLOW_H

#include "conf/hosts.h"

#define HW_FOLLOW_ASK_MS   500
#define HW_FOLLOW_SOON_MS  500
#define HW_FOLLOW_AGAIN_MS 10000

struct event_base;
struct hw_follow;

/* None is called from within a function below. */
struct hw_follow_ops {
	/* The master: what hw_follow_ask() wanted, or another than it was. `by`: the Sentinel that says so. */
	void (*on_master)(void *arg, const struct hw_host *master, const struct hw_host *by);
	/* hw_follow_ask() wanted one and nobody named one; `why` is of the last that was asked. */
	void (*on_none)(void *arg, const char *why);
	/* Something is wrong with one Sentinel, and what to do; not again until it has answered well or something else
	 * is wrong with it. */
	void (*on_trouble)(void *arg, const char *why);
};

/* `sentinels`: a list that hw_hosts_parse() takes; `master`: its name there, borrowed; so is `ops`. Asks nobody yet.
 * NULL without memory. */
struct hw_follow *hw_follow_new(struct event_base *base, const char *sentinels, const char *master,
                                const struct hw_follow_ops *ops, void *arg);
/* Not from one of the callbacks. */
void hw_follow_free(struct hw_follow *f);

/* A master is wanted: on_master() or on_none() answers once, unless on_master() comes before for another reason. The
 * first to be asked is the next of the list after the one that was asked last. */
void hw_follow_ask(struct hw_follow *f);
/* Each second: what a timer that found no memory has left undone. */
void hw_follow_tick(struct hw_follow *f);

#endif
