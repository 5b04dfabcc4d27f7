/* SPDX-License-Identifier: MIT */
/*
 * Tasks of others that came to nothing, gathered for the notifier (notify/notify.h): a command that nobody took, or
 * nobody finished, is told like a device that fell silent. A storm of them is one message.
 *
 * Cost: an end is a line of text until HW_NOTIFIER_LIST are named, then an addition.
 */
#ifndef HW_TASKS_ENDS_H
#define HW_TASKS_ENDS_H

#include "notify/notify.h"
#include "tasks/stream_reader.h"

struct hw_tasks_ends;
struct hw_tasks_watch;

extern const struct hw_notifier_source hw_tasks_ends_source;

/* The source's `of`. NULL without memory. `*watch` says how many are known, when a message is made; borrowed. */
struct hw_tasks_ends *hw_tasks_ends_new(struct hw_tasks_watch *const *watch);

/* Whether a transition is told: it is of a task of others, which has expired or failed, and no late answer. */
bool hw_tasks_ends_tell(const struct hw_task_transition *t);
void hw_tasks_ends_add(struct hw_tasks_ends *e, const struct hw_task_transition *t);

#endif
