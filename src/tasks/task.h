/* SPDX-License-Identifier: MIT */
/*
 * Tasks: types that messages, scripts, the scripts' naive twin and the daemon share. Times in ms are wall-clock times
 * of Redis. Texts are borrowed.
 */
#ifndef HW_TASKS_TASK_H
#define HW_TASKS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tasks/task_id.h"

#define HW_TASK_MSG_ID_MAX 64
#define HW_TASK_BYTES_MAX  65536 /* maximum size of a message */
#define HW_TASK_AT_MAX_MS  (INT64_C(366) * 86400 * 1000)
#define HW_TASK_EXP_MAX_MS (INT64_C(30) * 86400 * 1000)
/* How often a task that is held, or outside of its window, is checked. */
#define HW_TASK_CHECK_MS   (INT64_C(10) * 60 * 1000)
#define HW_TASK_AHEAD_MS   (INT64_C(3600) * 1000) /* how far a sender's clock may be ahead; `keep`, if less */
#define HW_TASK_CALL_ITEMS 64

struct hw_text {
	const char *at;
	size_t len;
};

/* From HW_TASK_COMPLETE on, a task has ended. */
enum hw_task_state {
	HW_TASK_SCHEDULED,
	HW_TASK_HELD,
	HW_TASK_SENT,
	HW_TASK_ACKED,
	HW_TASK_COMPLETE,
	HW_TASK_FAILED,
	HW_TASK_EXPIRED,
	HW_TASK_CANCELLED,
	HW_TASK_STATES
};
/* Returns the name of a state; "unknown" for HW_TASK_STATES, which a record in Redis may contain. */
const char *hw_task_state_name(enum hw_task_state s);
/* Returns the state of this name; HW_TASK_STATES: there is none. */
enum hw_task_state hw_task_state_of(const char *name, size_t len);
static inline bool hw_task_has_ended(enum hw_task_state s)
{
	return s >= HW_TASK_COMPLETE && s < HW_TASK_STATES;
}

/* The values of a transition's `why`, besides "". */
#define HW_TASK_WHY_DEVICE  "device"  /* failed: the device reported a failure */
#define HW_TASK_WHY_RUN     "run"     /* failed: no answer within `run` */
#define HW_TASK_WHY_OFFLINE "offline" /* failed: the receiver is offline, and hold is false */
#define HW_TASK_WHY_REFUSED "refused" /* failed: by the broker */
/* Failed: Redis has lost the payload, or no valid message can be made of the record. */
#define HW_TASK_WHY_LOST   "lost"
#define HW_TASK_WHY_EXP    "exp"    /* expired */
#define HW_TASK_WHY_NOBODY "nobody" /* sent: no client subscribes to the topic */
#define HW_TASK_WHY_LATE   "late"   /* an event after the end: an answer came late */

/* Rules for all tasks: the options of [tasks]. */
struct hw_task_rules {
	const char *prefix;        /* of the keys: "task:" */
	const char *device_prefix; /* "device:disconnected:" and the id_prefix, without the receiver's name */
	const char *node;          /* this instance */
	int64_t ack_wait_ms, retry_max_ms, exp_ms, run_ms, keep_ms;
	unsigned window, max, max_per_receiver, events_max;
};

/* --- submit ------------------------------------------------------------------------------------------------------- */

struct hw_task_submission {
	struct hw_task_id task;
	struct hw_text sender, msg_id;
	struct hw_text receiver, action; /* if both are empty: `topic` */
	struct hw_text topic;
	unsigned qos;
	bool retain;
	struct hw_text body; /* the payload: JSON text; with `topic`: bytes */
	int64_t time_ms;     /* the sender's clock; 0: none */
	int64_t at_ms;       /* -1: none given */
	int64_t after_ms;    /* from now; -1: none given */
	int64_t exp_ms;      /* -1: none given */
	int64_t run_ms;      /* -1: none given */
	bool no_hold;
};

enum hw_task_verdict {
	HW_TASK_ERROR, /* Redis has refused with `error`; the other members are not valid */
	/* submit */
	HW_TASK_NEW,
	HW_TASK_KNOWN,   /* submit: the task was submitted before, and the answer is from its record; answer: the
	                  * same answer was received before */
	HW_TASK_CONTENT, /* refused: the same msg_id with other content */
	HW_TASK_OLD,     /* refused: `time` is older than keep */
	HW_TASK_AHEAD,   /* refused: `time` is too far ahead */
	HW_TASK_AT,      /* refused: `at` is more than 366 days ahead */
	HW_TASK_EXP,     /* refused: exp is not after `at`, or more than 30 days after it */
	HW_TASK_FULL,    /* refused: `max` or `max_per_receiver` is reached */
	/* claim */
	HW_TASK_SEND,
	HW_TASK_EARLY, /* EARLY, not due: another instance has claimed the task, or its due time has changed */
	HW_TASK_HOLD,  /* its receiver is known to be offline */
	HW_TASK_WAIT,  /* outside the receiver's window */
	HW_TASK_OVER,  /* it has ended */
	HW_TASK_GONE,  /* there is no such task */
	/* answer, cancel; also GONE */
	HW_TASK_DONE,
	HW_TASK_LATE,    /* recorded; changes no state */
	HW_TASK_FOREIGN, /* refused: not from the task's sender or receiver */
	HW_TASK_RUNNING, /* not cancelled: acknowledged, and force is not set */
	HW_TASK_VERDICTS
};

struct hw_task_submitted {
	enum hw_task_verdict verdict;
	enum hw_task_state state;
	int64_t at_ms, exp_ms; /* NEW, KNOWN: `at` is the time of the first check */
	struct hw_text error;
};

/* --- claim -------------------------------------------------------------------------------------------------------- */

struct hw_task_claimed {
	enum hw_task_verdict verdict;
	enum hw_task_state state;
	int64_t due_ms; /* next check; 0: none */
	/* SEND: the message */
	unsigned tries; /* this one included */
	struct hw_text sender, msg_id, receiver, action, topic, body;
	unsigned qos;
	bool retain;
	int64_t created_ms, at_ms, exp_ms;
	struct hw_text error;
};

/* --- answer ------------------------------------------------------------------------------------------------------- */

enum hw_task_answer_kind {
	HW_ANSWER_ACK,
	HW_ANSWER_COMPLETE,
	HW_ANSWER_FAILED,
	HW_ANSWER_NOBODY,    /* PUBACK 0x10 */
	HW_ANSWER_REFUSED,   /* PUBACK >= 0x80 */
	HW_ANSWER_PUBLISHED, /* of a task for a topic: the broker has the message */
	HW_ANSWER_LOST,      /* no valid message can be made of the task's record in Redis */
	HW_ANSWER_KINDS
};

struct hw_task_answer {
	struct hw_task_id task;
	enum hw_task_answer_kind kind;
	struct hw_text from;  /* the last level of a bound topic; empty: not bound */
	struct hw_text value; /* JSON text; empty: none */
};

struct hw_task_answered {
	enum hw_task_verdict verdict; /* DONE KNOWN LATE FOREIGN GONE ERROR */
	enum hw_task_state state;     /* after it */
	struct hw_text error;
};

/* --- cancel ------------------------------------------------------------------------------------------------------- */

struct hw_task_cancel {
	struct hw_task_id task;
	struct hw_text sender; /* the sender that cancels the task; empty: an operator, who may cancel any task */
	bool force;
};

struct hw_task_cancelled {
	enum hw_task_verdict verdict; /* DONE OVER RUNNING FOREIGN GONE ERROR */
	enum hw_task_state was;       /* the state before */
	unsigned tries;               /* not 0: the device may have executed the task */
	struct hw_text error;
};

/* --- watched tasks ------------------------------------------------------------------------------------------------ */

struct hw_task_seen {
	struct hw_task_id task;   /* derived by heartwheel-tasks; no other client knows it */
	enum hw_task_state state; /* SENT: a task was seen; ACKED, COMPLETE, FAILED: an answer of its receiver */
	struct hw_text sender, msg_id;
	struct hw_text receiver; /* of an answer: the last level of the topic, if the broker's ACL binds it to the
	                          * client; otherwise empty */
	struct hw_text action;
	int64_t exp_ms; /* -1: none given */
};

struct hw_task_followed {
	enum hw_task_verdict verdict; /* NEW DONE KNOWN LATE FOREIGN FULL GONE ERROR */
	enum hw_task_state state;     /* after it */
	struct hw_text error;
};

/* --- list, show --------------------------------------------------------------------------------------------------- */

/* A page begins after this task; both members empty: at the first task. */
struct hw_task_place {
	struct hw_text score, task;
};

struct hw_task_listing {
	struct hw_text receiver, state; /* empty: any */
	struct hw_task_place behind;
	unsigned limit;
	bool watched; /* watched tasks, instead of ours */
};

/* A record. A missing field is an empty text or -1. */
struct hw_task_record {
	struct hw_text task, sender, msg_id, receiver, action, topic, why, late;
	enum hw_task_state state; /* HW_TASK_STATES: there is no such task */
	int64_t due_ms, at_ms, exp_ms, run_ms, created_ms, tries, sent_ms, acked_ms, ended_ms, late_ms;
	bool no_hold;
	bool watched; /* a watched task (watch.h), and not one of ours */
	/* only of a show */
	struct hw_text body, value;
};

/* --- part of every answer ----------------------------------------------------------------------------------------- */

/* A task whose due time a call may have changed. The caller passes the task to hw_schedule_put(). */
struct hw_task_wake {
	struct hw_task_id task;
	struct hw_text receiver;
	int64_t due_ms;
};

/*
 * The name of a task: a UUID (version 8, RFC 9562) made of HMAC-SHA256(task:secret, sender, msg_id). So a repeated
 * submission has the same name on every instance, and no client can guess the name of another's task.
 */
#define HW_TASKS_SECRET_LEN 32

/* Makes the name of the task that `sender` submits as `msg_id`. Returns 0, or -ENOMEM, also if libcrypto fails. */
int hw_task_name(struct hw_task_id *id, const unsigned char secret[HW_TASKS_SECRET_LEN], struct hw_text sender,
                 struct hw_text msg_id);

#endif
