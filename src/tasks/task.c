/* SPDX-License-Identifier: MIT */
/* The words of tasks. */
#include "tasks/task.h"

#include <string.h>

static const char *const state_names[HW_TASK_STATES] = {
	[HW_TASK_SCHEDULED] = "scheduled", [HW_TASK_HELD] = "held",          [HW_TASK_SENT] = "sent",
	[HW_TASK_ACKED] = "acked",         [HW_TASK_COMPLETE] = "complete",  [HW_TASK_FAILED] = "failed",
	[HW_TASK_EXPIRED] = "expired",     [HW_TASK_CANCELLED] = "cancelled"};

const char *hw_task_state_name(enum hw_task_state s)
{
	return s < HW_TASK_STATES ? state_names[s] : "unknown";
}

enum hw_task_state hw_task_state_of(const char *name, size_t len)
{
	enum hw_task_state s = HW_TASK_SCHEDULED;
	while (s < HW_TASK_STATES && (strlen(state_names[s]) != len || memcmp(name, state_names[s], len) != 0))
		s++;
	return s;
}
