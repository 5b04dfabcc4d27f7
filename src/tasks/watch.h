/* SPDX-License-Identifier: MIT */
/*
 * [tasks] watch: tasks that nodes send one another on ROOT/{receiver}/pending, and what comes back on
 * ROOT/{sender}/ack|complete|failed, are followed from `sent` to their end. Nothing is sent to anybody.
 */
#ifndef HW_TASKS_WATCH_H
#define HW_TASKS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct hw_tasks_app;
struct hw_tasks_watch;

/* Subscribes, if the configuration says so. NULL without memory. */
struct hw_tasks_watch *hw_tasks_watch_new(struct hw_tasks_app *app);
/* Behind store and desk, which have answered then. */
void hw_tasks_watch_free(struct hw_tasks_watch *w);
/* Each second. */
void hw_tasks_watch_tick(struct hw_tasks_watch *w);

/* Whether what was said while it could not hear has been heard: until then time ends none of these tasks. */
bool hw_tasks_watch_is_settled(const struct hw_tasks_watch *w);
/* Whether tasks of others are followed. */
bool hw_tasks_watch_is_on(const struct hw_tasks_watch *w);
/* How many are known, as Redis said last; false: it has not yet. */
bool hw_tasks_watch_count(const struct hw_tasks_watch *w, uint64_t *n);

#endif
