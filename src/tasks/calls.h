/* SPDX-License-Identifier: MIT */
/*
 * The scripts' calls: building their arguments, reading their answers. Each takes up to HW_TASK_CALL_ITEMS items (a
 * page: none), is atomic, and may be repeated when nobody knows what became of it. See README for their order.
 *
 *     hw_tasks_begin(&eval, &rules, hw_schedule_latest_ms(schedule, now));
 *     hw_tasks_put_submission(&eval, &submission);          as often as there are items
 *     hw_scripts_call(&scripts, HW_TASKS_SUBMIT, &eval, fn, arg);
 *   and in fn
 *     hw_tasks_reply(reply, &answer);
 *     hw_tasks_submitted(&answer, i, &submitted);
 *     hw_tasks_wake(&answer, k, &wake);
 */
#ifndef HW_TASKS_CALLS_H
#define HW_TASKS_CALLS_H

#include <hiredis/hiredis.h>

#include "link/eval.h"
#include "tasks/script.h"
#include "tasks/task.h"

/* --- building ----------------------------------------------------------------------------------------------------- */

/* A Redis whose clock shows `latest_ms` or more is not believed: the call claims nothing, and ends nothing for the sake
 * of time. See hw_schedule_latest_ms(). */
void hw_tasks_begin(struct hw_eval *e, const struct hw_task_rules *rules, int64_t latest_ms);

void hw_tasks_put_submission(struct hw_eval *e, const struct hw_task_submission *s);
void hw_tasks_put_claim(struct hw_eval *e, const struct hw_task_id *task);
void hw_tasks_put_answer(struct hw_eval *e, const struct hw_task_answer *a);
void hw_tasks_put_cancel(struct hw_eval *e, const struct hw_task_cancel *c);
void hw_tasks_put_seen(struct hw_eval *e, const struct hw_task_seen *s);
/* The call's first, once: the place in device:events behind what these receivers' events are, which is kept in
 * task:at; empty: none. */
void hw_tasks_put_place(struct hw_eval *e, struct hw_text place);
void hw_tasks_put_online(struct hw_eval *e, struct hw_text receiver);
/* The whole call: a page, as an order of the schedule wants it. */
void hw_tasks_put_page(struct hw_eval *e, const struct hw_schedule_order *o);
/* The whole call: a page of what waits, for who asks. */
void hw_tasks_put_listing(struct hw_eval *e, const struct hw_task_listing *l);
/* The whole call: counts at most `limit` waiting tasks. */
void hw_tasks_put_count(struct hw_eval *e, const struct hw_task_place *behind, unsigned limit);
void hw_tasks_put_show(struct hw_eval *e, const struct hw_task_id *task);

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* An answer; it borrows the reply. */
struct hw_tasks_reply {
	int64_t now_ms; /* Redis' clock */
	size_t n_items, n_wakes;
	const redisReply *items, *wakes;
	const redisReply *behind; /* of a list; NULL: none */
	uint64_t unusable;        /* values in Redis that the script could not use */
};

/* 0; -EPROTO if it is no answer of ours; -EIO if it is an error of Redis (reply->str). */
int hw_tasks_reply(const redisReply *reply, struct hw_tasks_reply *out);

/* Item `i` < n_items. What is not as it should be is an HW_TASK_ERROR. */
void hw_tasks_submitted(const struct hw_tasks_reply *r, size_t i, struct hw_task_submitted *out);
void hw_tasks_claimed(const struct hw_tasks_reply *r, size_t i, struct hw_task_claimed *out);
void hw_tasks_answered(const struct hw_tasks_reply *r, size_t i, struct hw_task_answered *out);
void hw_tasks_cancelled(const struct hw_tasks_reply *r, size_t i, struct hw_task_cancelled *out);
void hw_tasks_followed(const struct hw_tasks_reply *r, size_t i, struct hw_task_followed *out);
/* Of a sweep, whose call has no items: whether there may be more to end; *n: how many there are. */
bool hw_tasks_swept(const struct hw_tasks_reply *r, uint64_t *n);
/* Of a page, and of wakes. False: it is none, pass over it. */
bool hw_tasks_found(const struct hw_tasks_reply *r, size_t i, struct hw_task_wake *out);
/* Of a list, and of a show, whose task the caller knows. */
void hw_tasks_listed(const struct hw_tasks_reply *r, size_t i, struct hw_task_record *out);
void hw_tasks_shown(const struct hw_tasks_reply *r, size_t i, struct hw_task_record *out);
/* Adds what a count found to the numbers of each state that is not an end. */
void hw_tasks_counted(const struct hw_tasks_reply *r, uint64_t n[HW_TASK_COMPLETE]);
/* Where the next page of a list or count begins; false behind the last. */
bool hw_tasks_behind(const struct hw_tasks_reply *r, struct hw_task_place *out);
bool hw_tasks_wake(const struct hw_tasks_reply *r, size_t k, struct hw_task_wake *out);

#endif
