/* SPDX-License-Identifier: MIT */
/* heartwheelctl task: how what heartwheel-tasks says is shown to people. */
#ifndef HW_CTL_TASK_H
#define HW_CTL_TASK_H

#include "ctl/ctl.h"

/* What a task's `why` means, in words; "" if nobody knows. */
const char *hw_task_why_means(const char *why);
/* A task with all that is known of it; one in a line of a list; one transition. */
void hw_show_task(const struct hw_ctl *ctl, const cJSON *task);
void hw_show_task_line(const struct hw_ctl *ctl, const cJSON *task, bool head);
void hw_show_task_event(const struct hw_ctl *ctl, const cJSON *event);
#define HW_COUNTED_LATELY_S 3 /* what was counted then is told as what is */
void hw_show_tasks_status(const struct hw_ctl *ctl, const cJSON *status);

#endif
