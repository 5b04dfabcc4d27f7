/* SPDX-License-Identifier: MIT */
/*
 * Calls of the scripts: builds their arguments and reads their answers. A call takes up to HW_TASK_CALL_ITEMS items (a
 * page takes none). It is atomic, and may be repeated if its answer was lost. README describes the order of calls.
 *
 *     hw_tasks_begin(&eval, &rules, hw_schedule_latest_ms(schedule, now));
 *     hw_tasks_put_submission(&eval, &submission);          once per item
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
#include "tasks/queue/script.h"
#include "tasks/task.h"

/* --- building ----------------------------------------------------------------------------------------------------- */

/* Begins a call. If Redis' clock shows `latest_ms` or more, it is not trusted: the call claims no task and ends none by
 * time. See hw_schedule_latest_ms(). */
void hw_tasks_begin(struct hw_eval *e, const struct hw_task_rules *rules, int64_t latest_ms);

void hw_tasks_put_submission(struct hw_eval *e, const struct hw_task_submission *s);
void hw_tasks_put_claim(struct hw_eval *e, const struct hw_task_id *task);
void hw_tasks_put_answer(struct hw_eval *e, const struct hw_task_answer *a);
void hw_tasks_put_cancel(struct hw_eval *e, const struct hw_task_cancel *c);
void hw_tasks_put_seen(struct hw_eval *e, const struct hw_task_seen *s);
/* Call it once, first: the offset in device:events after these receivers' events, which the script stores in task:at;
 * empty: none. */
void hw_tasks_put_offset(struct hw_eval *e, struct hw_text offset);
void hw_tasks_put_online(struct hw_eval *e, struct hw_text receiver);
/* The whole call: reads the page that the schedule has ordered. */
void hw_tasks_put_page(struct hw_eval *e, const struct hw_schedule_order *o);
/* The whole call: lists a page of waiting tasks, or of watched ones. */
void hw_tasks_put_listing(struct hw_eval *e, const struct hw_task_listing *l);
/* The whole call: counts at most `limit` waiting tasks after `behind`. */
void hw_tasks_put_count(struct hw_eval *e, const struct hw_task_place *behind, unsigned limit);
void hw_tasks_put_show(struct hw_eval *e, const struct hw_task_id *task);

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The answer to a call. It borrows the reply. */
struct hw_tasks_reply {
	int64_t now_ms; /* Redis' clock */
	size_t n_items, n_wakes;
	const redisReply *items, *wakes;
	const redisReply *behind; /* of a list or count: offset of the next page; NULL: none */
	uint64_t unusable;        /* values in Redis that the script could not use */
};

/* Returns 0; -EPROTO if the reply has not the form of the scripts' answers; -EIO if it is an error of Redis
 * (reply->str). */
int hw_tasks_reply(const redisReply *reply, struct hw_tasks_reply *out);

/* Reads item `i` < n_items. A malformed item has the verdict HW_TASK_ERROR. */
void hw_tasks_submitted(const struct hw_tasks_reply *r, size_t i, struct hw_task_submitted *out);
void hw_tasks_claimed(const struct hw_tasks_reply *r, size_t i, struct hw_task_claimed *out);
void hw_tasks_answered(const struct hw_tasks_reply *r, size_t i, struct hw_task_answered *out);
void hw_tasks_cancelled(const struct hw_tasks_reply *r, size_t i, struct hw_task_cancelled *out);
void hw_tasks_followed(const struct hw_tasks_reply *r, size_t i, struct hw_task_followed *out);
/* Reads the answer to a sweep. Returns whether there may be more to end or remove. *n: the number of watched tasks. */
bool hw_tasks_swept(const struct hw_tasks_reply *r, uint64_t *n);
/* Reads item `i` of a page; hw_tasks_wake() reads a wake. Returns false if it names no task: skip it. */
bool hw_tasks_found(const struct hw_tasks_reply *r, size_t i, struct hw_task_wake *out);
/* Reads an item of a list; of a show, whose task the caller knows. */
void hw_tasks_listed(const struct hw_tasks_reply *r, size_t i, struct hw_task_record *out);
void hw_tasks_shown(const struct hw_tasks_reply *r, size_t i, struct hw_task_record *out);
/* Adds the result of a count to `n`, the numbers of waiting tasks per state. */
void hw_tasks_counted(const struct hw_tasks_reply *r, uint64_t n[HW_TASK_COMPLETE]);
/* Reads where the next page of a list or count begins. Returns false after the last page. */
bool hw_tasks_next_place(const struct hw_tasks_reply *r, struct hw_task_place *out);
bool hw_tasks_wake(const struct hw_tasks_reply *r, size_t k, struct hw_task_wake *out);

#endif
