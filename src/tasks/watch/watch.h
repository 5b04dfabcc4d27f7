/* SPDX-License-Identifier: MIT */
/*
 * [tasks] watch: follows watched tasks. A watched task is a task that other clients send to one another on
 * ROOT/{receiver}/pending, with answers on ROOT/{sender}/ack|complete|failed. It is followed until it has ended.
 * heartwheel-tasks publishes nothing for it.
 */
#ifndef HW_TASKS_WATCH_H
#define HW_TASKS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct hw_tasks_app;
struct hw_tasks_watch;

/* Creates the watch. Subscribes, if the configuration says so. Returns NULL if there is no memory. */
struct hw_tasks_watch *hw_tasks_watch_new(struct hw_tasks_app *app);
/* Frees the object. Called after the store and the dispatcher are freed, because until then they answer requests of
 * this part. */
void hw_tasks_watch_free(struct hw_tasks_watch *w);
/* Called each second. */
void hw_tasks_watch_tick(struct hw_tasks_watch *w);

/* Whether this instance has caught up: for SETTLE_MS (watch.c) it has been subscribed, Redis has been up, and the
 * loop has not been held up. Before that, an answer that was given in time may still arrive late, so no watched task
 * ends because of its time. */
bool hw_tasks_watch_is_settled(const struct hw_tasks_watch *w);
/* Whether watching is enabled. */
bool hw_tasks_watch_is_on(const struct hw_tasks_watch *w);
/* Sets *n to the number of watched tasks in Redis' last answer. Returns false if there was no answer yet. */
bool hw_tasks_watch_count(const struct hw_tasks_watch *w, uint64_t *n);

#endif
