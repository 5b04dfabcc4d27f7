/* SPDX-License-Identifier: MIT */
#include "tasks/counts.h"

#include <string.h>

const char *hw_tasks_refusal_name(enum hw_tasks_refusal k)
{
	static const char *const names[HW_REFUSED_KINDS] = {
		[HW_REFUSED_RETAINED] = "retained",   [HW_REFUSED_TOO_LARGE] = "too_large",
		[HW_REFUSED_MALFORMED] = "malformed", [HW_REFUSED_SENDER] = "sender",
		[HW_REFUSED_ALLOW] = "allow",         [HW_REFUSED_CONTENT] = "content",
		[HW_REFUSED_TIME] = "time",           [HW_REFUSED_FULL] = "full",
		[HW_REFUSED_UNKNOWN] = "unknown"};
	return names[k];
}

const char *hw_tasks_unusable_name(enum hw_tasks_unusable k)
{
	static const char *const names[HW_UNUSABLE_KINDS] = {
		[HW_UNUSABLE_OFFSET] = "offset", [HW_UNUSABLE_EVENT] = "event", [HW_UNUSABLE_RECORD] = "record",
		[HW_UNUSABLE_DUE] = "due",       [HW_UNUSABLE_NODE] = "node",   [HW_UNUSABLE_FOLLOWER] = "follower"};
	return names[k];
}

void hw_tasks_counts_init(struct hw_tasks_counts *c)
{
	static const double bounds[] = {.005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300, 3600};
	memset(c, 0, sizeof(*c));
	c->lateness.bounds = c->ack.bounds = bounds;
	c->lateness.n = c->ack.n = sizeof(bounds) / sizeof(*bounds);
}
