/* SPDX-License-Identifier: MIT */
/*
 * Reads tasks in Redis for the API, with scripts that only read. It has its own connection, so that reads for the API
 * and claims do not delay each other. While Redis cannot be reached, a request fails at once.
 */
#ifndef HW_TASKS_READS_H
#define HW_TASKS_READS_H

#include <stddef.h>
#include <stdint.h>

#include "link/link.h"
#include "tasks/queue/calls.h"

struct hw_reads;

#define HW_READS_MAX 256 /* requests under way; one more is refused */

struct hw_reads_ops {
	void (*on_up)(void *arg, bool up);
};

/* Creates the reader of tasks. `conf`, its texts and `rules` are borrowed. Returns NULL if there is no memory. */
struct hw_reads *hw_reads_new(struct event_base *base, const struct hw_redis_link_conf *conf,
                              const struct hw_task_rules *rules, const struct hw_reads_ops *ops, void *arg);
/* Each request under way gets `reply` NULL. */
void hw_reads_free(struct hw_reads *r);
void hw_reads_tick(struct hw_reads *r);
bool hw_reads_are_up(const struct hw_reads *r);
/* Returns why the connection is down; "" until the first attempt has failed. */
const char *hw_reads_why(const struct hw_reads *r);
struct hw_redis_link *hw_reads_link(struct hw_reads *r);

/* Called with the reply to a request. `reply` NULL: there is no answer, and `why` is a sentence with the reason.
 * `reply` and `why` are valid during the call. Never called from the functions below. */
typedef void hw_reads_done(void *arg, const struct hw_tasks_reply *reply, const char *why);

/* Returns 0, or -ENOTCONN, -EBUSY or -ENOMEM, and done() is then not called. */
int hw_reads_list(struct hw_reads *r, const struct hw_task_listing *l, hw_reads_done *done, void *arg);
/* Shows 1 to HW_TASK_CALL_ITEMS tasks. The reply has one item for each task. */
int hw_reads_show(struct hw_reads *r, const struct hw_task_id *tasks, size_t n, hw_reads_done *done, void *arg);

int hw_reads_count(struct hw_reads *r, const struct hw_task_place *behind, unsigned limit, hw_reads_done *done,
                   void *arg);

/* Returns a sentence for an error code of these functions. */
const char *hw_reads_error(const struct hw_reads *r, int rc);

#endif
