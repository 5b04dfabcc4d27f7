/* SPDX-License-Identifier: MIT */
/*
 * A naive implementation of the scripts of tasks: an array of tasks, searched from end to end.
 * tests/system/test_tasks_twin.c compares it with the scripts on a real Redis. In the simulation of tasks it replaces
 * Redis.
 */
#ifndef HW_TWIN_TASKS_H
#define HW_TWIN_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tasks/schedule/schedule.h"
#include "tasks/task.h"

#define TWIN_TASKS     256
#define TWIN_TEXT      64
#define TWIN_RECEIVERS 8
#define TWIN_WAKES     256
#define TWIN_EVENTS    4096

/* Lies: rules that the twin breaks on purpose. A test must notice each of them. */
enum twin_lie {
	TWIN_HONEST,
	TWIN_LIE_EARLY,    /* a claim does not check whether the task is due */
	TWIN_LIE_EXP,      /* nor whether it has expired */
	TWIN_LIE_ENDED,    /* nor whether it has ended */
	TWIN_LIE_OFFLINE,  /* nor whether its receiver is offline */
	TWIN_LIE_WINDOW,   /* nor whether it is in the window */
	TWIN_LIE_LEASE,    /* a claimed task is never due again */
	TWIN_LIE_BACKOFF,  /* the wait does not double */
	TWIN_LIE_REPEAT,   /* a repeated submission makes the task again */
	TWIN_LIE_LATE,     /* a late answer counts */
	TWIN_LIE_FOREIGN,  /* so does a foreign one */
	TWIN_LIE_CANCEL,   /* a cancelled one stays due */
	TWIN_LIE_ONLINE,   /* online events make nothing due */
	TWIN_LIE_WINDOWED, /* nor does a window that has room again */
	TWIN_LIE_RUN,      /* an acknowledged task may run for ever */
	TWIN_LIE_FORGET,   /* an ended task's record goes at once */
	TWIN_LIE_CLOCK,    /* any time is believed */
	TWIN_LIES
};
const char *twin_lie_name(enum twin_lie lie);

struct twin_text {
	char at[TWIN_TEXT];
	size_t len;
};

struct twin_task {
	struct hw_task_id task;
	enum hw_task_state state;
	struct twin_text sender, msg_id, receiver, action, topic, body, value;
	unsigned qos;
	bool retain, hold, has_body, has_value;
	int64_t at, exp, run, created, sent, acked, ended, late_at;
	unsigned tries;
	const char *why, *late; /* NULL: no such field */
	int64_t due;            /* -1: not in `due` */
	bool in_set;            /* its receiver's */
	int64_t forgotten;      /* when its keys go; INT64_MAX: not yet */
};

struct twin_event {
	struct hw_task_id task;
	const char *state, *why;
	int64_t time_ms;
};

struct twin_wake {
	struct hw_task_id task;
	struct twin_text receiver;
	int64_t due_ms;
};

struct twin {
	struct hw_task_rules rules;
	enum twin_lie lie;
	struct twin_task tasks[TWIN_TASKS];
	size_t n;
	struct twin_text offline[TWIN_RECEIVERS];
	size_t n_offline;
	/* of the present call */
	int64_t now, latest;
	struct twin_wake wakes[TWIN_WAKES];
	size_t n_wakes;
	struct twin_event events[TWIN_EVENTS]; /* the last ones */
	uint64_t n_events;                     /* ever */
};

void twin_init(struct twin *t, const struct hw_task_rules *rules);
/* A receiver is known offline, or is not. */
void twin_set_offline(struct twin *t, struct hw_text receiver, bool offline);
bool twin_is_offline(const struct twin *t, struct hw_text receiver);
/* All is gone. */
void twin_flush(struct twin *t);
/* NULL: there is no such task. */
struct twin_task *twin_find(struct twin *t, const struct hw_task_id *task);
/* The records whose time is over go. */
void twin_forget(struct twin *t, int64_t now);
size_t twin_waiting(const struct twin *t);

/* A call: it begins, has its items, and leaves the devices to wake. */
void twin_begin(struct twin *t, int64_t now, int64_t latest);
void twin_submit(struct twin *t, const struct hw_task_submission *s, struct hw_task_submitted *out);
void twin_claim(struct twin *t, const struct hw_task_id *task, struct hw_task_claimed *out);
void twin_answer(struct twin *t, const struct hw_task_answer *a, struct hw_task_answered *out);
void twin_cancel(struct twin *t, const struct hw_task_cancel *c, struct hw_task_cancelled *out);
unsigned twin_online(struct twin *t, struct hw_text receiver);
/* Returns how many. */
size_t twin_page(struct twin *t, const struct hw_schedule_order *o, struct twin_wake *out);

struct hw_text twin_span(const struct twin_text *t);
bool twin_same(struct hw_text a, struct hw_text b);

#endif
