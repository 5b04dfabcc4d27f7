/* SPDX-License-Identifier: MIT */
/* The counters of heartwheel-tasks for /metrics: one struct in struct hw_tasks_app. Each part counts the events that
 * happen in it. */
#ifndef HW_TASKS_COUNTS_H
#define HW_TASKS_COUNTS_H

#include "http/metrics.h"
#include "tasks/task.h"

/* Messages to heartwheel-tasks that were refused: task_refused_total{kind}. */
enum hw_tasks_refusal {
	HW_REFUSED_RETAINED,  /* retained messages are history */
	HW_REFUSED_TOO_LARGE, /* more than HW_TASK_BYTES_MAX, or HW_READER_TOO_LONG */
	HW_REFUSED_MALFORMED,
	HW_REFUSED_SENDER,  /* without a sender that can be trusted */
	HW_REFUSED_ALLOW,   /* not allowed by [tasks] allow or publish */
	HW_REFUSED_CONTENT, /* the same msg_id with other content */
	HW_REFUSED_TIME,    /* `time`, `at` or `exp` is out of bounds */
	HW_REFUSED_FULL,
	HW_REFUSED_UNKNOWN, /* an answer to an unknown task */
	HW_REFUSED_KINDS
};
const char *hw_tasks_refusal_name(enum hw_tasks_refusal k);

/* Values in Redis that cannot be used, because another program wrote them: task_unusable_total{kind}.
 * heartwheel/bounds.h has the limits; scripts/common.lua has the limits of a task's times. */
enum hw_tasks_unusable {
	HW_UNUSABLE_OFFSET,   /* an offset that the stream cannot have: replaced */
	HW_UNUSABLE_EVENT,    /* an entry of a stream: skipped */
	HW_UNUSABLE_RECORD,   /* a field of a task or of an answer. A wrong number counts as missing; a wrong text
	                       * makes the task fail; a wrong field of an answer is left out */
	HW_UNUSABLE_DUE,      /* a member of task:due: removed */
	HW_UNUSABLE_NODE,     /* a member of task:nodes: removed */
	HW_UNUSABLE_FOLLOWER, /* a member of task:follow, or its filter: removed */
	HW_UNUSABLE_KINDS
};
const char *hw_tasks_unusable_name(enum hw_tasks_unusable k);

struct hw_tasks_counts {
	uint64_t watched[HW_TASK_STATES]; /* transitions of watched tasks into each state */
	uint64_t ended[HW_TASK_STATES];   /* transitions of our own tasks that this instance has read: tasks_total */
	uint64_t retries;                 /* sends after the first one of each task */
	uint64_t refused[HW_REFUSED_KINDS];
	uint64_t unusable[HW_UNUSABLE_KINDS];
	uint64_t late, foreign;     /* answers */
	uint64_t notified;          /* notices to submitters */
	uint64_t followers_expired; /* sessions that ended without any ack */
	struct hw_histogram lateness, ack;
};

void hw_tasks_counts_init(struct hw_tasks_counts *c);

#endif
