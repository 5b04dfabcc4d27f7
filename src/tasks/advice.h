/* SPDX-License-Identifier: MIT */
/* What is wrong with how Redis is set up, for tasks: it persists nothing, or may evict keys that have no TTL. */
#ifndef HW_TASKS_ADVICE_H
#define HW_TASKS_ADVICE_H

struct hw_tasks_app;

/* Asks Redis, and says in the log what is wrong. What it may not be asked is not concluded. */
void hw_tasks_advise(struct hw_tasks_app *a);

#endif
