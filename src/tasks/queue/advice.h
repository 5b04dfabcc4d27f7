/* SPDX-License-Identifier: MIT */
/* Checks Redis' setup for tasks: Redis should persist its data, and evict no keys that have no TTL. */
#ifndef HW_TASKS_ADVICE_H
#define HW_TASKS_ADVICE_H

struct hw_tasks_advice;
struct hw_tasks_app;

/* NULL without memory. */
struct hw_tasks_advice *hw_tasks_advice_new(struct hw_tasks_app *app);
/* Call it after the store is freed. */
void hw_tasks_advice_free(struct hw_tasks_advice *v);
/* Each second. On each new connection, and each hour, it queries Redis and logs a warning for each unsuitable setting,
 * because operators do not read a log from its beginning. If Redis denies a query, that setting is not judged. */
void hw_tasks_advice_tick(struct hw_tasks_advice *v);
/* The connection is lost. */
void hw_tasks_advice_down(struct hw_tasks_advice *v);

#endif
