/* SPDX-License-Identifier: MIT */
/* For tests of the tasks' scripts. They run on a real Redis, at the time that the test sets, and are called one at a
 * time. */
#ifndef HW_TASKS_REDIS_H
#define HW_TASKS_REDIS_H

#include "redis_rig.h"
#include "tasks/queue/calls.h"

struct tasks_redis {
	struct rig *rig;
	struct hw_eval eval;
	char sha[HW_TASKS_SCRIPTS][HW_SHA_LEN + 1];
	int64_t now_ms;
	redisReply *reply; /* of the last call; freed by the next */
};

/* Loads the scripts, as they are but for the clock if `virtual` says so: then TIME is what tasks_redis_time() set. */
void tasks_redis_init(struct tasks_redis *t, struct rig *rig, bool in_virtual_time);
void tasks_redis_fini(struct tasks_redis *t);
void tasks_redis_time(struct tasks_redis *t, int64_t now_ms);
/* Calls with what t->eval holds. Returns what hw_tasks_reply() does. */
int tasks_redis_call(struct tasks_redis *t, enum hw_tasks_script script, struct hw_tasks_reply *out);

#endif
