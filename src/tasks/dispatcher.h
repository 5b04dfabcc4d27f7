/* SPDX-License-Identifier: MIT */
/*
 * The one place through which everybody asks the scripts for tasks: MQTT, the API, follow. What is asked for within a
 * turn of the loop shares a call. Each request's callback is called exactly once, from the loop, never from within the
 * function that asks.
 *
 * Texts of a request are copied at once. A call carries at most HW_TASK_CALL_ITEMS requests, HW_DISPATCH_CALL_BYTES,
 * and no two of one task.
 */
#ifndef HW_TASKS_DISPATCHER_H
#define HW_TASKS_DISPATCHER_H

#include "tasks/task.h"

struct hw_tasks_app;
struct hw_dispatcher;

#define HW_DISPATCH_CALL_BYTES (512 * 1024)
#define HW_DISPATCH_ITEMS_MAX  8192       /* requests without an answer, of all kinds: more are refused with -EBUSY */
#define HW_DISPATCH_BYTES_MAX  (32 << 20) /* and what they say, on its way to Redis */

enum hw_dispatch_kind {
	HW_DISPATCH_SUBMIT,
	HW_DISPATCH_ANSWER,
	HW_DISPATCH_CANCEL,
	HW_DISPATCH_ONLINE,
	HW_DISPATCH_WATCH,
	HW_DISPATCH_KINDS
};

/* What became of a request; its texts are valid for the call. */
struct hw_dispatch_result {
	/* 0: see below. -ENOTCONN: Redis was lost, and nobody knows whether it was done: ask again. -EIO: Redis said
	 * no, in `error`, and nothing was done. -ENOMEM. */
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
/* After the store: nothing is under way any more. What waits is called with -ENOTCONN. */
void hw_dispatcher_free(struct hw_dispatcher *d);

/* Whether requests are taken now: Redis is there, and not too many wait. */
bool hw_dispatcher_is_open(const struct hw_dispatcher *d);
/* Whether nothing that was asked for or kept is without an answer. */
bool hw_dispatcher_is_idle(const struct hw_dispatcher *d);

/*
 * Submits a task. Its name is made here, of `sender` and `msg_id`, and written to *task (which may be NULL) at once;
 * s->task is ignored. Whether the sender may is the caller's to know. 0; or -ENOTCONN (Redis is away), -EBUSY, -ENOMEM,
 * and `fn` is not called.
 */
int hw_dispatcher_submit(struct hw_dispatcher *d, const struct hw_task_submission *s, struct hw_task_id *task,
                         hw_dispatch_fn *fn, void *arg);
/* What a device or the broker says of a task. Kept and asked again when Redis is lost meanwhile: it is not said twice.
 * `fn` may be NULL. */
int hw_dispatcher_answer(struct hw_dispatcher *d, const struct hw_task_answer *a, hw_dispatch_fn *fn, void *arg);
/* What others say to one another, in the order in which it is said here; as hw_dispatcher_answer(). */
int hw_dispatcher_watch(struct hw_dispatcher *d, const struct hw_task_seen *s, hw_dispatch_fn *fn, void *arg);
int hw_dispatcher_cancel(struct hw_dispatcher *d, const struct hw_task_cancel *c, hw_dispatch_fn *fn, void *arg);
/* A receiver came online. `place` begins a call: it is the place in device:events behind the events of all receivers up
 * to the next one that has a place, HW_TASK_CALL_ITEMS at most; empty otherwise. */
int hw_dispatcher_online(struct hw_dispatcher *d, struct hw_text receiver, struct hw_text place);

/* A task's record as it stands in Redis. The texts are valid for the call. */
struct hw_dispatched_record {
	int rc; /* 0; -ENOENT: no such task; -ENOTCONN; -EIO */
	enum hw_task_state state;
	struct hw_text sender, msg_id, receiver, action, topic, why, late;
	struct hw_text body, value;                                                              /* empty: none */
	int64_t created_ms, at_ms, exp_ms, run_ms, sent_ms, acked_ms, ended_ms, late_ms, due_ms; /* 0: not */
	unsigned tries;
	bool hold;
};
typedef void hw_dispatched_record_fn(void *arg, const struct hw_task_id *task, const struct hw_dispatched_record *r);
/* Reads it. 0, -ENOTCONN or -ENOMEM, and `fn` is not called. */
int hw_dispatcher_query(struct hw_dispatcher *d, const struct hw_task_id *task, hw_dispatched_record_fn *fn, void *arg);

/* For the wiring: sends what was gathered; asks again for what was kept, while Redis is there. */
void hw_dispatcher_flush(struct hw_dispatcher *d);
void hw_dispatcher_up(struct hw_dispatcher *d);
/* Whether receivers that came online were lost on the way, while Redis is there: they are read again from task:at, and
 * said anew from now on; until then hw_dispatcher_online() says -EAGAIN. */
bool hw_dispatcher_missed(struct hw_dispatcher *d);

#endif
