/* SPDX-License-Identifier: MIT */
/*
 * Gathers the requests of MQTT, the API and followers about tasks into calls of the scripts. The requests of one turn
 * of the loop share a call. The callback of each request is called exactly once, from the loop, and never from the
 * function that makes the request.
 *
 * The texts of a request are copied at once. A call is sent when it has HW_TASK_CALL_ITEMS requests or
 * HW_DISPATCH_CALL_BYTES. A call has at most one request about each task. Exception: a call may contain several
 * messages about one watched task (watch.h), because the script processes them in their order.
 */
#ifndef HW_TASKS_DISPATCHER_H
#define HW_TASKS_DISPATCHER_H

#include "tasks/task.h"

struct hw_tasks_app;
struct hw_dispatcher;

#define HW_DISPATCH_CALL_BYTES (512 * 1024)
/* while this many requests have no answer, submit, cancel and online return -EBUSY */
#define HW_DISPATCH_ITEMS_MAX 8192
#define HW_DISPATCH_BYTES_MAX                                                                                          \
	(32 << 20) /* bytes on their way to Redis; beyond them, the same functions return                              \
	            * -EBUSY */

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
	/* 0: see the union. -ENOTCONN: the connection to Redis was lost, and it is unknown whether the request was
	 *    carried out; repeat it. -EIO: Redis has refused the request with `error`, and has done nothing.
	 *    -ENOMEM. */
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

/* Returns NULL if there is no memory. */
struct hw_dispatcher *hw_dispatcher_new(struct hw_tasks_app *app);
/* Frees the object. Called after the store is freed. No call is open then, because waiting requests have got -ENOTCONN.
 */
void hw_dispatcher_free(struct hw_dispatcher *d);

/* Whether requests are accepted now: Redis is up, few enough requests wait, and none is being repeated. */
bool hw_dispatcher_is_open(const struct hw_dispatcher *d);
/* Whether every request has its answer. Counts also the requests that are kept until Redis is up. */
bool hw_dispatcher_is_idle(const struct hw_dispatcher *d);

/*
 * Submits a task. Its name is derived from `sender` and `msg_id`, and is written to *task at once (`task` may be NULL).
 * s->task is ignored. The caller checks the rights of the sender. Returns 0, or -ENOTCONN (Redis cannot be reached),
 * -EBUSY or -ENOMEM, and `fn` is then not called.
 */
int hw_dispatcher_submit(struct hw_dispatcher *d, const struct hw_task_submission *s, struct hw_task_id *task,
                         hw_dispatch_fn *fn, void *arg);
/* Reports the answer of a device or of the broker about a task. If the connection to Redis is lost meanwhile, the
 * answer is kept and repeated, because it is received only once. `fn` may be NULL. */
int hw_dispatcher_answer(struct hw_dispatcher *d, const struct hw_task_answer *a, hw_dispatch_fn *fn, void *arg);
/* Reports a message about a watched task (watch.h): a task that another client sent, or an answer of its receiver.
 * Redis processes the reports in the order of these calls. If the connection to Redis is lost, the report is kept
 * and sent again, as in hw_dispatcher_answer(). */
int hw_dispatcher_watch(struct hw_dispatcher *d, const struct hw_task_seen *s, hw_dispatch_fn *fn, void *arg);
int hw_dispatcher_cancel(struct hw_dispatcher *d, const struct hw_task_cancel *c, hw_dispatch_fn *fn, void *arg);
/* Reports that a receiver is online. With an `offset`, a new call of the script begins with this report, and the script
 * stores `offset` in task:at. This offset is in device:events, after the transitions of this receiver and of all
 * receivers that are reported before the next `offset`. The receivers between two offsets are at most
 * HW_TASK_CALL_ITEMS. `offset` empty: the report goes into the open call. */
int hw_dispatcher_online(struct hw_dispatcher *d, struct hw_text receiver, struct hw_text offset);

/* Called with a task's record. rc: 0; -ENOENT: there is no such task; -ENOTCONN, -EIO or -EPROTO: there is no
 * answer. If rc is 0, the record is valid during the call. */
typedef void hw_dispatched_record_fn(void *arg, const struct hw_task_id *task, int rc, const struct hw_task_record *r);
/* Reads a task's record. Returns 0, or -ENOTCONN or -ENOMEM, and `fn` is then not called. */
int hw_dispatcher_query(struct hw_dispatcher *d, const struct hw_task_id *task, hw_dispatched_record_fn *fn, void *arg);

/* hw_dispatcher_flush(): sends the gathered requests. hw_dispatcher_up(): called when Redis is up; repeats the kept
 * requests. */
void hw_dispatcher_flush(struct hw_dispatcher *d);
void hw_dispatcher_up(struct hw_dispatcher *d);
/* Returns true once, when Redis is up again, if reports about online receivers were lost on the way to Redis. The
 * caller then reads device:events again from task:at. Until then hw_dispatcher_online() returns -EAGAIN. */
bool hw_dispatcher_missed(struct hw_dispatcher *d);

#endif
