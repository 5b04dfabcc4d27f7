/* SPDX-License-Identifier: MIT */
/*
 * Watched tasks that expired or failed, gathered for the notifier (notify/notify.h). People are notified of a command
 * that its receiver did not acknowledge or finish, as of a device that becomes offline. Many ends become one message.
 *
 * Cost: an end is a line of text until HW_NOTIFIER_LIST ends are listed. Further ends are only counted.
 */
#ifndef HW_TASKS_ENDS_H
#define HW_TASKS_ENDS_H

#include "notify/notify.h"
#include "tasks/follow/transition.h"

struct hw_tasks_ends;
struct hw_tasks_watch;

extern const struct hw_notifier_source hw_tasks_ends_source;

/* The `of` of the notifier's source. Returns NULL without memory. `watch` is borrowed; a message contains its number of
 * watched tasks. */
struct hw_tasks_ends *hw_tasks_ends_new(struct hw_tasks_watch *const *watch);

/* Whether people are notified of a transition: a watched task has expired or failed, and this is no late answer. */
bool hw_tasks_ends_notifies(const struct hw_task_transition *t);
void hw_tasks_ends_add(struct hw_tasks_ends *e, const struct hw_task_transition *t);

#endif
