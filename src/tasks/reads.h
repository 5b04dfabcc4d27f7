/* SPDX-License-Identifier: MIT */
/*
 * What the API reads in Redis: a connection of its own, so that nobody who looks delays a claim, nor a claim him; and
 * the scripts that only read. Nothing is kept for a Redis that is away: what is asked then fails at once.
 */
#ifndef HW_TASKS_READS_H
#define HW_TASKS_READS_H

#include <stddef.h>
#include <stdint.h>

#include "link/link.h"
#include "tasks/calls.h"

struct hw_reads; /* opaque */

#define HW_READS_MAX 256 /* questions under way; one more is refused */

struct hw_reads_ops {
	void (*on_up)(void *arg, bool up);
};

/* `conf`, its texts, and `rules` are borrowed. NULL without memory. */
struct hw_reads *hw_reads_new(struct event_base *base, const struct hw_redis_link_conf *conf,
                              const struct hw_task_rules *rules, const struct hw_reads_ops *ops, void *arg);
/* What waits for an answer is told that there is none. */
void hw_reads_free(struct hw_reads *r);
void hw_reads_tick(struct hw_reads *r);
bool hw_reads_are_up(const struct hw_reads *r);
/* Why not; "" before the first attempt has failed. */
const char *hw_reads_why(const struct hw_reads *r);
struct hw_redis_link *hw_reads_link(struct hw_reads *r);

/* `reply` NULL: there is no answer, and `why` is a sentence about that. Both are valid for the call. Never called from
 * the functions below. */
typedef void hw_reads_done(void *arg, const struct hw_tasks_reply *reply, const char *why);

/* 0, or -errno, and done() is not called: -ENOTCONN, -EBUSY, -ENOMEM. */
int hw_reads_list(struct hw_reads *r, const struct hw_task_listing *l, hw_reads_done *done, void *arg);
/* 1 to HW_TASK_CALL_ITEMS of them. The reply has as many items. */
int hw_reads_show(struct hw_reads *r, const struct hw_task_id *tasks, size_t n, hw_reads_done *done, void *arg);

int hw_reads_count(struct hw_reads *r, const struct hw_task_place *behind, unsigned limit, hw_reads_done *done,
                   void *arg);

/* A sentence about what these functions returned. */
const char *hw_reads_error(const struct hw_reads *r, int rc);

#endif
