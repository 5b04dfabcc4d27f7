/* SPDX-License-Identifier: MIT */
/*
 * What a task is, and what is asked and answered about it: the words that messages, scripts, their twin and the daemon
 * have in common. Times in ms are wall-clock time as Redis has it. Texts are borrowed.
 */
#ifndef HW_TASKS_TASK_H
#define HW_TASKS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/schedule.h"

#define HW_TASK_MSG_ID_MAX 64
#define HW_TASK_BYTES_MAX  65536 /* of a message */
#define HW_TASK_AT_MAX_MS  (INT64_C(366) * 86400 * 1000)
#define HW_TASK_EXP_MAX_MS (INT64_C(30) * 86400 * 1000)
#define HW_TASK_LOOK_MS    (INT64_C(10) * 60 * 1000) /* held ones, and those behind the window */
#define HW_TASK_AHEAD_MS   (INT64_C(3600) * 1000)    /* a sender's clock may be ahead so far, at most `keep` */
#define HW_TASK_CALL_ITEMS 64

struct hw_text {
	const char *at;
	size_t len;
};

/* From HW_TASK_COMPLETE on it has ended. */
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
/* "unknown" of HW_TASK_STATES, which a record in Redis may be in. */
const char *hw_task_state_name(enum hw_task_state s);
/* HW_TASK_STATES if it is no state's name. */
enum hw_task_state hw_task_state_of(const char *name, size_t len);
static inline bool hw_task_has_ended(enum hw_task_state s)
{
	return s >= HW_TASK_COMPLETE && s < HW_TASK_STATES;
}

/* What a state's `why` may say, besides "". */
#define HW_TASK_WHY_DEVICE  "device"  /* failed: it said so */
#define HW_TASK_WHY_RUN     "run"     /* failed: no answer within `run` */
#define HW_TASK_WHY_OFFLINE "offline" /* failed: not to be held */
#define HW_TASK_WHY_REFUSED "refused" /* failed: by the broker */
#define HW_TASK_WHY_LOST    "lost"    /* failed: Redis has lost its payload, or what it has makes no message */
#define HW_TASK_WHY_EXP     "exp"     /* expired */
#define HW_TASK_WHY_NOBODY  "nobody"  /* sent: nobody subscribes to it */
#define HW_TASK_WHY_LATE    "late"    /* an event of one that has ended: this answer came later */

/* What holds for all tasks: the options of [tasks]. */
struct hw_task_rules {
	const char *prefix;        /* of the keys: "task:" */
	const char *device_prefix; /* "device:disconnected:" and id_prefix: before a receiver's name */
	const char *node;          /* this instance */
	int64_t ack_wait_ms, retry_max_ms, exp_ms, run_ms, keep_ms;
	unsigned window, max, max_per_receiver, events_max;
};

/* --- submit ------------------------------------------------------------------------------------------------------- */

struct hw_task_submission {
	struct hw_task_id task;
	struct hw_text sender, msg_id;
	struct hw_text receiver, action; /* or, both being empty: */
	struct hw_text topic;
	unsigned qos;
	bool retain;
	struct hw_text body; /* the payload's JSON text; of a topic: its bytes */
	int64_t time_ms;     /* the sender's clock; 0: none */
	int64_t at_ms;       /* -1: none given */
	int64_t after_ms;    /* from now; -1: none given */
	int64_t exp_ms;      /* -1: none given */
	int64_t run_ms;      /* -1: none given */
	bool no_hold;
};

enum hw_task_verdict {
	HW_TASK_ERROR, /* `error` says what Redis said; nothing is known of the rest */
	/* submit */
	HW_TASK_NEW,
	HW_TASK_KNOWN,   /* a repetition: answered from the record. answer: one that was heard before */
	HW_TASK_CONTENT, /* refused: the same msg_id with other content */
	HW_TASK_OLD,     /* refused: `time` is older than keep */
	HW_TASK_AHEAD,   /* refused: `time` is ahead */
	HW_TASK_AT,      /* refused: more than 366 days ahead */
	HW_TASK_EXP,     /* refused: exp is not behind `at`, or more than 30 days behind it */
	HW_TASK_FULL,    /* refused: `max`, or `max_per_receiver` */
	/* claim */
	HW_TASK_SEND,
	HW_TASK_EARLY, /* not due: another has claimed it, or it was moved */
	HW_TASK_HOLD,  /* its receiver is known offline */
	HW_TASK_WAIT,  /* behind the receiver's window */
	HW_TASK_OVER,  /* it has ended, now or before */
	HW_TASK_GONE,  /* there is no such task */
	/* answer, cancel; GONE too */
	HW_TASK_DONE,
	HW_TASK_LATE,    /* noted, and changes nothing */
	HW_TASK_FOREIGN, /* refused: of another sender or receiver */
	HW_TASK_RUNNING, /* not cancelled: acknowledged, and not by force */
	HW_TASK_VERDICTS
};

struct hw_task_submitted {
	enum hw_task_verdict verdict;
	enum hw_task_state state;
	int64_t at_ms, exp_ms; /* of one that is new or known; `at` is when it is to be looked at first */
	struct hw_text error;
};

/* --- claim -------------------------------------------------------------------------------------------------------- */

struct hw_task_claimed {
	enum hw_task_verdict verdict;
	enum hw_task_state state;
	int64_t due_ms; /* when to look at it again; 0: never */
	/* SEND: what to send */
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
	HW_ANSWER_PUBLISHED, /* of a topic: the broker has it */
	HW_ANSWER_LOST,      /* what Redis has of it makes no message */
	HW_ANSWER_KINDS
};

struct hw_task_answer {
	struct hw_task_id task;
	enum hw_task_answer_kind kind;
	struct hw_text from;  /* the receiver that a topic is bound to; empty: not bound */
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
	struct hw_text sender; /* who asks; empty: an operator, who may cancel any */
	bool force;
};

struct hw_task_cancelled {
	enum hw_task_verdict verdict; /* DONE OVER RUNNING FOREIGN GONE ERROR */
	enum hw_task_state was;       /* the state it was in */
	unsigned tries;               /* if any: it may have been done */
	struct hw_text error;
};

/* --- tasks that others send one another -----------------------------------------------------------------------------
 */

struct hw_task_seen {
	struct hw_task_id task;  /* ours: nobody else knows it */
	enum hw_task_state says; /* SENT; ACKED, COMPLETE, FAILED: the receiver's answer */
	struct hw_text sender, msg_id;
	struct hw_text receiver; /* of an answer: as the topic binds it; empty: it does not */
	struct hw_text action;
	int64_t exp_ms; /* -1: none given */
};

struct hw_task_followed {
	enum hw_task_verdict verdict; /* NEW DONE KNOWN LATE FOREIGN FULL GONE ERROR */
	enum hw_task_state state;     /* after it */
	struct hw_text error;
};

/* --- list, show --------------------------------------------------------------------------------------------------- */

/* Where a page begins: behind this task. Both empty: at the first. */
struct hw_task_place {
	struct hw_text score, task;
};

struct hw_task_listing {
	struct hw_text receiver, state; /* empty: any */
	struct hw_task_place behind;
	unsigned limit;
	bool watched; /* those that others sent one another, instead of ours */
};

/* A record. Empty texts and -1 are what it does not have. */
struct hw_task_record {
	struct hw_text task, sender, msg_id, receiver, action, topic, why, late;
	enum hw_task_state state; /* HW_TASK_STATES: there is no such task */
	int64_t due_ms, at_ms, exp_ms, run_ms, created_ms, tries, sent_ms, acked_ms, ended_ms, late_ms;
	bool no_hold;
	bool watched; /* others sent it one another */
	/* of a show */
	struct hw_text body, value;
};

/* --- what every call's answer may say besides --------------------------------------------------------------------- */

/* A task that is to be looked at because of the call: for hw_schedule_put(). */
struct hw_task_wake {
	struct hw_task_id task;
	struct hw_text receiver;
	int64_t due_ms;
};

#endif
