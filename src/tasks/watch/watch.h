/* SPDX-License-Identifier: MIT */
/*
 * [tasks] watch: follows the tasks that nodes send to each other on ROOT/{receiver}/pending, and their answers on
 * ROOT/{sender}/ack|complete|failed, from `sent` until they end. It publishes nothing.
 */
#ifndef HW_TASKS_WATCH_H
#define HW_TASKS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct hw_tasks_app;
struct hw_tasks_watch;

/* Subscribes, if the configuration says so. Returns NULL without memory. */
struct hw_tasks_watch *hw_tasks_watch_new(struct hw_tasks_app *app);
/* Called after the store and the dispatcher are freed, because until then they answer requests of this part. */
void hw_tasks_watch_free(struct hw_tasks_watch *w);
/* Each second. */
void hw_tasks_watch_tick(struct hw_tasks_watch *w);

/* Whether this instance has caught up with the messages that it could not receive at once. Until then no watched task
 * ends by time. */
bool hw_tasks_watch_is_settled(const struct hw_tasks_watch *w);
/* Whether watching is enabled. */
bool hw_tasks_watch_is_on(const struct hw_tasks_watch *w);
/* The number of watched tasks in Redis' last answer. Returns false before the first answer. */
bool hw_tasks_watch_count(const struct hw_tasks_watch *w, uint64_t *n);

#endif
