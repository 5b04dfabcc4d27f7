/* SPDX-License-Identifier: MIT */
/* heartwheelctl task: readable output of the answers of heartwheel-tasks. */
#ifndef HW_CTL_TASK_H
#define HW_CTL_TASK_H

#include "ctl/ctl.h"

/* The meaning of a task's `why`; "" if unknown. */
const char *hw_task_why_means(const char *why);
/* Print a task with all details; a task as a line of a list; one transition. */
void hw_show_task(const struct hw_ctl *ctl, const cJSON *task);
void hw_show_task_line(const struct hw_ctl *ctl, const cJSON *task, bool head);
void hw_show_task_event(const struct hw_ctl *ctl, const cJSON *event);
#define HW_COUNTED_LATELY_S 3 /* younger counts are shown as current */
void hw_show_tasks_status(const struct hw_ctl *ctl, const cJSON *status);

#endif
