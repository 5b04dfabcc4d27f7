/* SPDX-License-Identifier: MIT */
/* The arguments of the calls of scripts. scripts/places has names for their positions. */
#include "tasks/queue/calls.h"

#include <stdio.h>
#include <string.h>

#include "tasks/queue/places.h"

static void put_key(struct hw_eval *e, const char *prefix, const char *name)
{
	char key[512];
	int len = snprintf(key, sizeof(key), "%s%s", prefix, name);
	if (len < 0 || (size_t)len >= sizeof(key))
		e->failed = true;
	else
		hw_eval_key(e, key, (size_t)len);
}

void hw_tasks_begin(struct hw_eval *e, const struct hw_task_rules *rules, int64_t latest_ms)
{
	hw_eval_begin(e);
	put_key(e, rules->prefix, "due");
	put_key(e, rules->prefix, "events");
	put_key(e, rules->prefix, "at");
	hw_eval_put_text(e, HW_AT_CALL_PREFIX, rules->prefix);
	hw_eval_put_text(e, HW_AT_CALL_DEVICE, rules->device_prefix);
	hw_eval_put_text(e, HW_AT_CALL_NODE, rules->node);
	hw_eval_put_int(e, HW_AT_CALL_LATEST, latest_ms);
	hw_eval_put_int(e, HW_AT_CALL_WINDOW, rules->window);
	hw_eval_put_int(e, HW_AT_CALL_ACK_WAIT, rules->ack_wait_ms);
	hw_eval_put_int(e, HW_AT_CALL_RETRY_MAX, rules->retry_max_ms);
	hw_eval_put_int(e, HW_AT_CALL_EXP, rules->exp_ms);
	hw_eval_put_int(e, HW_AT_CALL_RUN, rules->run_ms);
	hw_eval_put_int(e, HW_AT_CALL_KEEP, rules->keep_ms);
	hw_eval_put_int(e, HW_AT_CALL_MAX, rules->max);
	hw_eval_put_int(e, HW_AT_CALL_MAX_PER_RECEIVER, rules->max_per_receiver);
	hw_eval_put_int(e, HW_AT_CALL_EVENTS_MAX, rules->events_max);
}

static void put_span(struct hw_eval *e, unsigned place, struct hw_text t)
{
	hw_eval_put(e, place, t.len ? t.at : "", t.len);
}

static void put_task(struct hw_eval *e, unsigned place, const struct hw_task_id *task)
{
	char text[HW_TASK_TEXT + 1];
	hw_task_id_text(task, text);
	hw_eval_put(e, place, text, HW_TASK_TEXT);
}

/* Puts an optional number. A negative number means that there is none; then puts ''. */
static void put_given(struct hw_eval *e, unsigned place, int64_t ms)
{
	if (ms < 0)
		hw_eval_put(e, place, "", 0);
	else
		hw_eval_put_int(e, place, ms);
}

void hw_tasks_put_submission(struct hw_eval *e, const struct hw_task_submission *s)
{
	hw_eval_item(e);
	put_task(e, HW_AT_SUBMISSION_TASK, &s->task);
	put_span(e, HW_AT_SUBMISSION_SENDER, s->sender);
	put_span(e, HW_AT_SUBMISSION_MSG_ID, s->msg_id);
	put_span(e, HW_AT_SUBMISSION_RECEIVER, s->receiver);
	put_span(e, HW_AT_SUBMISSION_ACTION, s->action);
	put_span(e, HW_AT_SUBMISSION_TOPIC, s->topic);
	hw_eval_put_int(e, HW_AT_SUBMISSION_QOS, s->qos);
	hw_eval_put_int(e, HW_AT_SUBMISSION_RETAIN, s->retain);
	put_span(e, HW_AT_SUBMISSION_BODY, s->body);
	hw_eval_put_int(e, HW_AT_SUBMISSION_TIME, s->time_ms);
	put_given(e, HW_AT_SUBMISSION_AT, s->at_ms);
	put_given(e, HW_AT_SUBMISSION_AFTER, s->after_ms);
	put_given(e, HW_AT_SUBMISSION_EXP, s->exp_ms);
	put_given(e, HW_AT_SUBMISSION_RUN, s->run_ms);
	hw_eval_put_int(e, HW_AT_SUBMISSION_HOLD, !s->no_hold);
}

void hw_tasks_put_claim(struct hw_eval *e, const struct hw_task_id *task)
{
	hw_eval_item(e);
	put_task(e, HW_AT_CLAIM_TASK, task);
}

static const char *const answer_names[HW_ANSWER_KINDS] = {
	[HW_ANSWER_ACK] = "acked",     [HW_ANSWER_COMPLETE] = "complete", [HW_ANSWER_FAILED] = "failed",
	[HW_ANSWER_NOBODY] = "nobody", [HW_ANSWER_REFUSED] = "refused",   [HW_ANSWER_PUBLISHED] = "published",
	[HW_ANSWER_LOST] = "lost"};

void hw_tasks_put_answer(struct hw_eval *e, const struct hw_task_answer *a)
{
	hw_eval_item(e);
	put_task(e, HW_AT_ANSWERED_TASK, &a->task);
	hw_eval_put_text(e, HW_AT_ANSWERED_KIND, answer_names[a->kind]);
	put_span(e, HW_AT_ANSWERED_FROM, a->from);
	put_span(e, HW_AT_ANSWERED_VALUE, a->value);
}

void hw_tasks_put_cancel(struct hw_eval *e, const struct hw_task_cancel *c)
{
	hw_eval_item(e);
	put_task(e, HW_AT_CANCEL_TASK, &c->task);
	put_span(e, HW_AT_CANCEL_SENDER, c->sender);
	hw_eval_put_int(e, HW_AT_CANCEL_FORCE, c->force);
}

void hw_tasks_put_seen(struct hw_eval *e, const struct hw_task_seen *s)
{
	hw_eval_item(e);
	put_task(e, HW_AT_SEEN_TASK, &s->task);
	hw_eval_put_text(e, HW_AT_SEEN_SAYS, hw_task_state_name(s->state));
	put_span(e, HW_AT_SEEN_SENDER, s->sender);
	put_span(e, HW_AT_SEEN_MSG_ID, s->msg_id);
	put_span(e, HW_AT_SEEN_RECEIVER, s->receiver);
	put_span(e, HW_AT_SEEN_ACTION, s->action);
	put_given(e, HW_AT_SEEN_EXP, s->exp_ms);
}

void hw_tasks_put_offset(struct hw_eval *e, struct hw_text offset)
{
	hw_eval_item(e);
	put_span(e, HW_AT_ONLINE_OFFSET, offset);
}

void hw_tasks_put_online(struct hw_eval *e, struct hw_text receiver)
{
	hw_eval_item(e);
	put_span(e, HW_AT_RECEIVER_RECEIVER, receiver);
}

void hw_tasks_put_page(struct hw_eval *e, const struct hw_schedule_order *o)
{
	hw_eval_item(e);
	hw_eval_put_int(e, HW_AT_PAGE_FROM, o->from_ms);
	put_given(e, HW_AT_PAGE_UNTIL, o->until_ms == INT64_MAX ? -1 : o->until_ms);
	hw_eval_put_int(e, HW_AT_PAGE_SKIP, (int64_t)o->skip);
	hw_eval_put_int(e, HW_AT_PAGE_COUNT, (int64_t)o->count);
}

void hw_tasks_put_listing(struct hw_eval *e, const struct hw_task_listing *l)
{
	hw_eval_item(e);
	put_span(e, HW_AT_LIST_RECEIVER, l->receiver);
	put_span(e, HW_AT_LIST_STATE, l->state);
	put_span(e, HW_AT_LIST_SCORE, l->behind.score);
	put_span(e, HW_AT_LIST_TASK, l->behind.task);
	hw_eval_put_int(e, HW_AT_LIST_LIMIT, l->limit);
	hw_eval_put_int(e, HW_AT_LIST_WATCHED, l->watched);
}

void hw_tasks_put_count(struct hw_eval *e, const struct hw_task_place *behind, unsigned limit)
{
	hw_eval_item(e);
	put_span(e, HW_AT_COUNT_SCORE, behind->score);
	put_span(e, HW_AT_COUNT_TASK, behind->task);
	hw_eval_put_int(e, HW_AT_COUNT_LIMIT, limit);
}

void hw_tasks_put_show(struct hw_eval *e, const struct hw_task_id *task)
{
	hw_eval_item(e);
	put_task(e, HW_AT_SHOW_TASK, task);
}

const char *const hw_tasks_script_texts[HW_TASKS_SCRIPTS] = {
	[HW_TASKS_SUBMIT] = hw_tasks_script_submit_text, [HW_TASKS_CLAIM] = hw_tasks_script_claim_text,
	[HW_TASKS_ANSWER] = hw_tasks_script_answer_text, [HW_TASKS_CANCEL] = hw_tasks_script_cancel_text,
	[HW_TASKS_ONLINE] = hw_tasks_script_online_text, [HW_TASKS_PAGE] = hw_tasks_script_page_text,
	[HW_TASKS_LIST] = hw_tasks_script_list_text,     [HW_TASKS_SHOW] = hw_tasks_script_show_text,
	[HW_TASKS_COUNT] = hw_tasks_script_count_text,   [HW_TASKS_WATCH] = hw_tasks_script_watch_text,
	[HW_TASKS_SWEEP] = hw_tasks_script_sweep_text,   [HW_TASKS_CALLBACK] = hw_tasks_script_callback_text};
