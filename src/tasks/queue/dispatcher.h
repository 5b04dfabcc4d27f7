/* SPDX-License-Identifier: MIT */
/*
 * Gathers the requests of MQTT, the API and follow for tasks into calls of the scripts. Requests of one turn of the
 * loop share a call. Each request's callback is called exactly once, from the loop, never from the function that makes
 * the request.
 *
 * The texts of a request are copied at once. A call is sent when it has HW_TASK_CALL_ITEMS requests or
 * HW_DISPATCH_CALL_BYTES. It has at most one request per task, except for watched messages, which are processed in
 * order.
 */
#ifndef HW_TASKS_DISPATCHER_H
#define HW_TASKS_DISPATCHER_H

#include "tasks/task.h"

struct hw_tasks_app;
struct hw_dispatcher;

#define HW_DISPATCH_CALL_BYTES (512 * 1024)
#define HW_DISPATCH_ITEMS_MAX  8192 /* requests without an answer; beyond, submit, cancel and online return -EBUSY */
#define HW_DISPATCH_BYTES_MAX  (32 << 20) /* bytes on their way to Redis; beyond, the same */

enum hw_dispatch_kind {
	HW_DISPATCH_SUBMIT,
	HW_DISPATCH_ANSWER,
	HW_DISPATCH_CANCEL,
	HW_DISPATCH_ONLINE,
	HW_DISPATCH_WATCH,
	HW_DISPATCH_KINDS
};

/* The result of a request. Its texts are valid during the call. */
struct hw_dispatch_result {
	/* 0: see the union. -ENOTCONN: Redis was lost, and the request may or may not have been executed: repeat it.
	 * -EIO: Redis refused the request with `error`, and nothing was done. -ENOMEM. */
	int rc;
	const char *error;
	struct hw_task_id task;
	int64_t now_ms; /* Redis' clock */
	union {
		struct hw_task_submitted submitted;
		struct hw_task_answered answered;
		struct hw_task_cancelled cancelled;
		struct hw_task_followed followed;
	};
};
typedef void hw_dispatch_fn(void *arg, const struct hw_dispatch_result *result);

/* NULL without memory. */
struct hw_dispatcher *hw_dispatcher_new(struct hw_tasks_app *app);
/* Call it after the store is freed: no call is under way then. Waiting requests get -ENOTCONN. */
void hw_dispatcher_free(struct hw_dispatcher *d);

/* Whether requests are accepted now: Redis is up, few enough requests wait, and none is being repeated. */
bool hw_dispatcher_is_open(const struct hw_dispatcher *d);
/* Whether every request has its answer, kept requests included. */
bool hw_dispatcher_is_idle(const struct hw_dispatcher *d);

/*
 * Submits a task. The task's name is derived here from `sender` and `msg_id`, and written to *task at once (`task` may
 * be NULL). s->task is ignored. The caller checks the sender's rights. Returns 0; or -ENOTCONN (Redis is away), -EBUSY
 * or -ENOMEM, and then does not call `fn`.
 */
int hw_dispatcher_submit(struct hw_dispatcher *d, const struct hw_task_submission *s, struct hw_task_id *task,
                         hw_dispatch_fn *fn, void *arg);
/* Records a device's or the broker's answer about a task. If Redis is lost meanwhile, the answer is kept and repeated,
 * because it is received only once. `fn` may be NULL. */
int hw_dispatcher_answer(struct hw_dispatcher *d, const struct hw_task_answer *a, hw_dispatch_fn *fn, void *arg);
/* Records a message that nodes sent one another, in the order of these calls. It is kept and repeated like an
 * answer. */
int hw_dispatcher_watch(struct hw_dispatcher *d, const struct hw_task_seen *s, hw_dispatch_fn *fn, void *arg);
int hw_dispatcher_cancel(struct hw_dispatcher *d, const struct hw_task_cancel *c, hw_dispatch_fn *fn, void *arg);
/* Reports that a receiver came online. A `offset` begins a call: it is the offset in device:events after the events of
 * all receivers up to the next `offset`, at most HW_TASK_CALL_ITEMS. For the other receivers `offset` is empty. */
int hw_dispatcher_online(struct hw_dispatcher *d, struct hw_text receiver, struct hw_text offset);

/* rc: 0; -ENOENT: no such task; -ENOTCONN, -EIO or -EPROTO: no answer. The record is valid during the call, if rc is
 * 0. */
typedef void hw_dispatched_record_fn(void *arg, const struct hw_task_id *task, int rc, const struct hw_task_record *r);
/* Reads a task's record. Returns 0; or -ENOTCONN or -ENOMEM, and then does not call `fn`. */
int hw_dispatcher_query(struct hw_dispatcher *d, const struct hw_task_id *task, hw_dispatched_record_fn *fn, void *arg);

/* Called by the wiring: flush() sends the gathered requests; up() repeats the kept ones, while Redis is up. */
void hw_dispatcher_flush(struct hw_dispatcher *d);
void hw_dispatcher_up(struct hw_dispatcher *d);
/* Returns true once after online receivers were lost on their way to Redis, when Redis is up again. The caller then
 * reads device:events again from task:at. Until then hw_dispatcher_online() returns -EAGAIN. */
bool hw_dispatcher_missed(struct hw_dispatcher *d);

#endif
