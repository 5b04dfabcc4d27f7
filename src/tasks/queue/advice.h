/* SPDX-License-Identifier: MIT */
/* Checks whether Redis' setup suits tasks: Redis should save its data on disk, and evict no keys that have no TTL. */
#ifndef HW_TASKS_ADVICE_H
#define HW_TASKS_ADVICE_H

struct hw_tasks_advice;
struct hw_tasks_app;

/* Returns NULL if there is no memory. */
struct hw_tasks_advice *hw_tasks_advice_new(struct hw_tasks_app *app);
/* Called after the store is freed. */
void hw_tasks_advice_free(struct hw_tasks_advice *v);
/* Called each second. On each new connection and each hour, queries Redis and logs a warning about each unsuitable
 * setting. The warning is repeated, because operators do not read a log from its beginning. If Redis refuses a
 * query, there is no warning about that setting. */
void hw_tasks_advice_tick(struct hw_tasks_advice *v);
/* Called when the connection is lost. */
void hw_tasks_advice_down(struct hw_tasks_advice *v);

#endif
