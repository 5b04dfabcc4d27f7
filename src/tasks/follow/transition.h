/* SPDX-License-Identifier: MIT */
/* The entries of task:events and device:events. Every reader of these streams in heartwheel-tasks uses these functions.
 */
#ifndef HW_TASKS_TRANSITION_H
#define HW_TASKS_TRANSITION_H

#include <hiredis/hiredis.h>

#include "stream/id.h"
#include "tasks/task.h"

/* A transition of a task. */
struct hw_task_transition {
	struct hw_stream_id id; /* of the entry */
	struct hw_task_id task;
	struct hw_text receiver, sender, msg_id, why, node;
	struct hw_text action;    /* of a watched task at its end; else empty */
	enum hw_task_state state; /* the state that a late answer reported; only valid if why is "late" */
	bool late;
	bool watched; /* the entry has the field `watched`: other clients have sent the task to one another, so no
	               * notice is published for it */
	int64_t time_ms;
	int64_t waited_ms; /* with `action`: how long the task had waited at its end */
};

/* A transition of a device. */
struct hw_device_transition {
	struct hw_stream_id id; /* of the entry */
	struct hw_text device;  /* with its prefix */
	struct hw_text state;   /* online, offline, forgotten */
	struct hw_text reason, group, node, seq;
	int64_t time_ms, last_seen_ms;
};

/*
 * Reads the fields of an entry into a transition. Returns false if heartwheel cannot have written the entry. An invalid
 * time, or one more than a day after now_ms, is replaced by the time in the entry's id or by now_ms. The transition
 * borrows from the reply.
 */
bool hw_task_transition_read(const redisReply *entry, int64_t now_ms, struct hw_task_transition *out);
bool hw_device_transition_read(const redisReply *entry, int64_t now_ms, struct hw_device_transition *out);

#endif
