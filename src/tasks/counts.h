/* SPDX-License-Identifier: MIT */
/* What heartwheel-tasks counts, for /metrics. One struct in struct hw_tasks_app; whoever knows of an event adds it. */
#ifndef HW_TASKS_COUNTS_H
#define HW_TASKS_COUNTS_H

#include "http/metrics.h"
#include "tasks/task.h"

/* Messages to us that were refused: task_refused_total{kind}. */
enum hw_tasks_refusal {
	HW_REFUSED_RETAINED,  /* retained messages are history */
	HW_REFUSED_TOO_LARGE, /* more than HW_TASK_BYTES_MAX */
	HW_REFUSED_MALFORMED,
	HW_REFUSED_SENDER,  /* no sender that could be believed */
	HW_REFUSED_ALLOW,   /* `allow` or `publish` does not have it */
	HW_REFUSED_CONTENT, /* the same msg_id with other content */
	HW_REFUSED_TIME,    /* too old, too far ahead, exp */
	HW_REFUSED_FULL,
	HW_REFUSED_UNKNOWN, /* an answer to no task of ours */
	HW_REFUSED_KINDS
};
const char *hw_tasks_refusal_name(enum hw_tasks_refusal k);

/* Values in Redis that cannot be used, since another program wrote them: task_unusable_total{kind}. Bounds: see
 * heartwheel/bounds.h; the times of a task: scripts/common.lua. */
enum hw_tasks_unusable {
	HW_UNUSABLE_OFFSET,   /* no place of its stream: replaced */
	HW_UNUSABLE_EVENT,    /* an entry of a stream: skipped */
	HW_UNUSABLE_RECORD,   /* a field of a task, its payload or answer: a number counts as missing, a text ends the
	                         task */
	HW_UNUSABLE_DUE,      /* a member of task:due: removed */
	HW_UNUSABLE_NODE,     /* a member of task:nodes: removed */
	HW_UNUSABLE_FOLLOWER, /* a member of task:follow, or its filter: removed */
	HW_UNUSABLE_KINDS
};
const char *hw_tasks_unusable_name(enum hw_tasks_unusable k);

struct hw_tasks_counts {
	uint64_t watched[HW_TASK_STATES]; /* the same of tasks that others sent one another */
	uint64_t ended[HW_TASK_STATES]; /* transitions into each state, of those that this instance told of: tasks_total
	                                 */
	uint64_t retries;               /* sendings but the first of each task */
	uint64_t refused[HW_REFUSED_KINDS];
	uint64_t unusable[HW_UNUSABLE_KINDS];
	uint64_t late, foreign;     /* answers */
	uint64_t told;              /* messages to submitters */
	uint64_t followers_expired; /* sessions that acknowledged nothing */
	struct hw_histogram lateness, ack;
};

void hw_tasks_counts_init(struct hw_tasks_counts *c);

#endif
