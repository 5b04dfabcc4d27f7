/* SPDX-License-Identifier: MIT */
/*
 * The calls of the scripts: builds their arguments and reads their answers. A call has up to HW_TASK_CALL_ITEMS items
 * (a page has none). A call is atomic, and may be repeated if its answer was lost. README describes the order of calls.
 *
 * - hw_tasks_begin(&eval, &rules, hw_schedule_latest_ms(schedule, now));
 * - hw_tasks_put_submission(&eval, &submission); for each item
 * - hw_scripts_call(&scripts, HW_TASKS_SUBMIT, &eval, fn, arg);
 * - in fn: hw_tasks_reply(reply, &answer);
 * - hw_tasks_submitted(&answer, i, &submitted); for each item
 * - hw_tasks_wake(&answer, k, &wake);
 */
#ifndef HW_TASKS_CALLS_H
#define HW_TASKS_CALLS_H

#include <hiredis/hiredis.h>

#include "link/eval.h"
#include "tasks/queue/script.h"
#include "tasks/schedule/schedule.h"
#include "tasks/task.h"

/* --- building ----------------------------------------------------------------------------------------------------- */

/* Begins a call. If Redis' clock shows `latest_ms` or later, the script does not believe it: it then claims no task,
 * and ends none because of its time. See hw_schedule_latest_ms(). */
void hw_tasks_begin(struct hw_eval *e, const struct hw_task_rules *rules, int64_t latest_ms);

void hw_tasks_put_submission(struct hw_eval *e, const struct hw_task_submission *s);
void hw_tasks_put_claim(struct hw_eval *e, const struct hw_task_id *task);
void hw_tasks_put_answer(struct hw_eval *e, const struct hw_task_answer *a);
void hw_tasks_put_cancel(struct hw_eval *e, const struct hw_task_cancel *c);
void hw_tasks_put_seen(struct hw_eval *e, const struct hw_task_seen *s);
/* Called once, before the items. `offset` is the offset in device:events after the events of these receivers, which
 * the script stores in task:at; empty: none. */
void hw_tasks_put_offset(struct hw_eval *e, struct hw_text offset);
void hw_tasks_put_online(struct hw_eval *e, struct hw_text receiver);
/* Puts all arguments of the call that reads the page of the order. */
void hw_tasks_put_page(struct hw_eval *e, const struct hw_schedule_order *o);
/* Puts all arguments of the call that lists a page of waiting or watched tasks. */
void hw_tasks_put_listing(struct hw_eval *e, const struct hw_task_listing *l);
/* Puts all arguments of the call that counts at most `limit` waiting tasks after `behind`. */
void hw_tasks_put_count(struct hw_eval *e, const struct hw_task_place *behind, unsigned limit);
void hw_tasks_put_show(struct hw_eval *e, const struct hw_task_id *task);

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The answer to a call. It borrows the reply. */
struct hw_tasks_reply {
	int64_t now_ms; /* Redis' clock */
	size_t n_items, n_wakes;
	const redisReply *items, *wakes;
	const redisReply *behind; /* list, count: the next page begins after this task; NULL: this is the last page */
	uint64_t unusable;        /* values in Redis that the script could not use */
};

/* Returns 0, -EPROTO if the reply does not have the form of the scripts' answers, or -EIO if it is an error of Redis
 * (reply->str). */
int hw_tasks_reply(const redisReply *reply, struct hw_tasks_reply *out);

/* Reads item `i`, which is less than n_items. A malformed item has the verdict HW_TASK_ERROR. */
void hw_tasks_submitted(const struct hw_tasks_reply *r, size_t i, struct hw_task_submitted *out);
void hw_tasks_claimed(const struct hw_tasks_reply *r, size_t i, struct hw_task_claimed *out);
void hw_tasks_answered(const struct hw_tasks_reply *r, size_t i, struct hw_task_answered *out);
void hw_tasks_cancelled(const struct hw_tasks_reply *r, size_t i, struct hw_task_cancelled *out);
void hw_tasks_followed(const struct hw_tasks_reply *r, size_t i, struct hw_task_followed *out);
/* Reads the answer to a sweep. Returns whether there may be more tasks to end or remove. *n: the number of watched
 * tasks. */
bool hw_tasks_swept(const struct hw_tasks_reply *r, uint64_t *n);
/* Reads item `i` of a page. Returns false if it names no task; the caller then skips it. A wake is read by
 * hw_tasks_wake(). */
bool hw_tasks_found(const struct hw_tasks_reply *r, size_t i, struct hw_task_wake *out);
/* hw_tasks_listed(): reads an item of a list. hw_tasks_shown(): reads an item of a show, whose task the caller
 * knows. */
void hw_tasks_listed(const struct hw_tasks_reply *r, size_t i, struct hw_task_record *out);
void hw_tasks_shown(const struct hw_tasks_reply *r, size_t i, struct hw_task_record *out);
/* Adds the result of a count to `n`, the numbers of waiting tasks in each state. */
void hw_tasks_counted(const struct hw_tasks_reply *r, uint64_t n[HW_TASK_COMPLETE]);
/* Reads where the next page of a list or count begins. Returns false after the last page. */
bool hw_tasks_next_place(const struct hw_tasks_reply *r, struct hw_task_place *out);
bool hw_tasks_wake(const struct hw_tasks_reply *r, size_t k, struct hw_task_wake *out);

#endif
