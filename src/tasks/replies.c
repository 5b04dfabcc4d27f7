/* SPDX-License-Identifier: MIT */
/* What the scripts answer, each part by the name of its place (scripts/places, counted from 1). Nothing is believed:
 * what has another type than it should is empty or 0, and an item that makes no sense is an error. */
#include "tasks/calls.h"

#include <errno.h>
#include <string.h>

#include "tasks/places.h"

/* The element at a place; NULL if there is none. */
static const redisReply *part(const redisReply *r, unsigned place)
{
	return r && r->type == REDIS_REPLY_ARRAY && place <= r->elements ? r->element[place - 1] : NULL;
}

static int64_t number(const redisReply *r, unsigned place)
{
	const redisReply *p = part(r, place);
	return p && p->type == REDIS_REPLY_INTEGER ? p->integer : 0;
}

static struct hw_text text(const redisReply *r, unsigned place)
{
	const redisReply *p = part(r, place);
	return p && p->type == REDIS_REPLY_STRING ? (struct hw_text){p->str, p->len} : (struct hw_text){"", 0};
}

int hw_tasks_reply(const redisReply *reply, struct hw_tasks_reply *out)
{
	*out = (struct hw_tasks_reply){0};
	if (reply && reply->type == REDIS_REPLY_ERROR)
		return -EIO;
	const redisReply *items = part(reply, HW_AT_REPLY_ITEMS), *wakes = part(reply, HW_AT_REPLY_WAKES);
	out->now_ms = number(reply, HW_AT_REPLY_NOW);
	if (out->now_ms <= 0 || !items || items->type != REDIS_REPLY_ARRAY || !wakes ||
	    wakes->type != REDIS_REPLY_ARRAY)
		return -EPROTO;
	out->items = items;
	out->n_items = items->elements;
	out->wakes = wakes;
	out->n_wakes = wakes->elements;
	return 0;
}

static const char *const verdict_names[HW_TASK_VERDICTS] = {
	[HW_TASK_ERROR] = "ERROR",     [HW_TASK_NEW] = "NEW",     [HW_TASK_KNOWN] = "KNOWN",
	[HW_TASK_CONTENT] = "CONTENT", [HW_TASK_OLD] = "OLD",     [HW_TASK_AHEAD] = "AHEAD",
	[HW_TASK_AT] = "AT",           [HW_TASK_EXP] = "EXP",     [HW_TASK_FULL] = "FULL",
	[HW_TASK_SEND] = "SEND",       [HW_TASK_EARLY] = "EARLY", [HW_TASK_HOLD] = "HOLD",
	[HW_TASK_WAIT] = "WAIT",       [HW_TASK_OVER] = "OVER",   [HW_TASK_GONE] = "GONE",
	[HW_TASK_DONE] = "DONE",       [HW_TASK_LATE] = "LATE",   [HW_TASK_FOREIGN] = "FOREIGN",
	[HW_TASK_RUNNING] = "RUNNING"};

/* Verdict and state of item `i`, which all items begin with; `*item` is NULL, and `*error` says why, if it has none. */
static enum hw_task_verdict read_item(const struct hw_tasks_reply *r, size_t i, const redisReply **item,
                                      enum hw_task_state *state, struct hw_text *error)
{
	const redisReply *p = i < r->n_items ? r->items->element[i] : NULL;
	enum hw_task_verdict v = HW_TASK_ERROR;
	struct hw_text word = text(p, HW_AT_OUTCOME_VERDICT), name = text(p, HW_AT_OUTCOME_STATE);
	*item = NULL;
	*state = hw_task_state_of(name.at, name.len);
	*error = (struct hw_text){"", 0};
	for (enum hw_task_verdict k = HW_TASK_NEW; word.len && k < HW_TASK_VERDICTS; k++)
		if (strlen(verdict_names[k]) == word.len && memcmp(verdict_names[k], word.at, word.len) == 0)
			v = k;
	if (v != HW_TASK_ERROR)
		*item = p;
	else if (p && p->type == REDIS_REPLY_STRING)
		*error = (struct hw_text){p->str, p->len};
	return v;
}

void hw_tasks_submitted(const struct hw_tasks_reply *r, size_t i, struct hw_task_submitted *out)
{
	const redisReply *item;
	*out = (struct hw_task_submitted){0};
	out->verdict = read_item(r, i, &item, &out->state, &out->error);
	out->at_ms = number(item, HW_AT_SUBMITTED_AT);
	out->exp_ms = number(item, HW_AT_SUBMITTED_EXP);
}

void hw_tasks_claimed(const struct hw_tasks_reply *r, size_t i, struct hw_task_claimed *out)
{
	const redisReply *item;
	*out = (struct hw_task_claimed){0};
	out->verdict = read_item(r, i, &item, &out->state, &out->error);
	out->due_ms = number(item, HW_AT_CLAIMED_DUE);
	if (out->verdict != HW_TASK_SEND)
		return;
	out->tries = (unsigned)number(item, HW_AT_CLAIMED_TRIES);
	out->sender = text(item, HW_AT_CLAIMED_SENDER);
	out->msg_id = text(item, HW_AT_CLAIMED_MSG_ID);
	out->receiver = text(item, HW_AT_CLAIMED_RECEIVER);
	out->action = text(item, HW_AT_CLAIMED_ACTION);
	out->topic = text(item, HW_AT_CLAIMED_TOPIC);
	out->qos = (unsigned)number(item, HW_AT_CLAIMED_QOS);
	out->retain = number(item, HW_AT_CLAIMED_RETAIN) != 0;
	out->body = text(item, HW_AT_CLAIMED_BODY);
	out->created_ms = number(item, HW_AT_CLAIMED_CREATED);
	out->at_ms = number(item, HW_AT_CLAIMED_AT);
	out->exp_ms = number(item, HW_AT_CLAIMED_EXP);
}

void hw_tasks_answered(const struct hw_tasks_reply *r, size_t i, struct hw_task_answered *out)
{
	const redisReply *item;
	*out = (struct hw_task_answered){0};
	out->verdict = read_item(r, i, &item, &out->state, &out->error);
}

void hw_tasks_cancelled(const struct hw_tasks_reply *r, size_t i, struct hw_task_cancelled *out)
{
	const redisReply *item;
	*out = (struct hw_task_cancelled){0};
	out->verdict = read_item(r, i, &item, &out->was, &out->error);
	out->tries = (unsigned)number(item, HW_AT_OUTCOME_TRIES);
}

static bool read_wake(const redisReply *p, struct hw_task_wake *out)
{
	struct hw_text name = text(p, HW_AT_WAKE_TASK);
	*out = (struct hw_task_wake){.receiver = text(p, HW_AT_WAKE_RECEIVER), .due_ms = number(p, HW_AT_WAKE_DUE)};
	return hw_task_id_parse(&out->task, name.at, name.len);
}

bool hw_tasks_found(const struct hw_tasks_reply *r, size_t i, struct hw_task_wake *out)
{
	return i < r->n_items && read_wake(r->items->element[i], out);
}

bool hw_tasks_wake(const struct hw_tasks_reply *r, size_t k, struct hw_task_wake *out)
{
	return k < r->n_wakes && read_wake(r->wakes->element[k], out);
}
