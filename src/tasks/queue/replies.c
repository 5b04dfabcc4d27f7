/* SPDX-License-Identifier: MIT */
/* Reads the answers of the scripts. scripts/places has names for the positions, which are counted from 1. No answer
 * is trusted: a part of the wrong type counts as empty or 0, and a malformed item counts as an error. */
#include "tasks/queue/calls.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/queue/places.h"

#define SWEEP_PIECE 200 /* PIECE of scripts/sweep.lua */

/* Returns the element at a position; NULL: there is none. */
static const redisReply *part(const redisReply *r, unsigned place)
{
	return r && r->type == REDIS_REPLY_ARRAY && place <= r->elements ? r->element[place - 1] : NULL;
}

static int64_t number(const redisReply *r, unsigned place)
{
	const redisReply *p = part(r, place);
	return p && p->type == REDIS_REPLY_INTEGER ? p->integer : 0;
}

/* Returns when a task is due. A score may be any number, and Redis converts it to an integer, so the result may be
 * negative. */
static int64_t due(const redisReply *r, unsigned place)
{
	int64_t ms = number(r, place);
	return ms > 0 ? ms : 0;
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
	out->behind = part(reply, HW_AT_REPLY_BEHIND);
	int64_t unusable = number(reply, HW_AT_REPLY_UNUSABLE);
	out->unusable = unusable > 0 ? (uint64_t)unusable : 0;
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

/* Reads the verdict and the state, with which each item begins. If the item is an error, *item is NULL and *error is
 * its text. */
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
	out->due_ms = due(item, HW_AT_CLAIMED_DUE);
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

void hw_tasks_followed(const struct hw_tasks_reply *r, size_t i, struct hw_task_followed *out)
{
	const redisReply *item;
	*out = (struct hw_task_followed){0};
	out->verdict = read_item(r, i, &item, &out->state, &out->error);
}

bool hw_tasks_swept(const struct hw_tasks_reply *r, uint64_t *n)
{
	const redisReply *item = r->n_items == 1 ? r->items->element[0] : NULL;
	*n = (uint64_t)number(item, HW_AT_SWEPT_WATCHED);
	return number(item, HW_AT_SWEPT_ENDED) >= SWEEP_PIECE;
}

static bool read_wake(const redisReply *p, struct hw_task_wake *out)
{
	struct hw_text name = text(p, HW_AT_WAKE_TASK);
	*out = (struct hw_task_wake){.receiver = text(p, HW_AT_WAKE_RECEIVER), .due_ms = due(p, HW_AT_WAKE_DUE)};
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

/* --- records ------------------------------------------------------------------------------------------------------ */

/* Returns the number in a text, or -1 if there is none. Fields of a hash and scores of a set are texts. */
static int64_t number_in(struct hw_text t)
{
	char digits[32], *end;
	if (t.len == 0 || t.len >= sizeof(digits))
		return -1;
	memcpy(digits, t.at, t.len);
	digits[t.len] = '\0';
	double n = strtod(digits, &end); /* a score may be written as 1.79e+12 */
	return *end || !(n >= 0 && n < 9e15) ? -1 : (int64_t)n;
}

/* Where each field of a record is stored. */
static const struct field {
	const char *name;
	unsigned place; /* in an item of a list */
	bool is_text;
	size_t offset;
} fields[] = {{"sender", HW_AT_LISTED_SENDER, true, offsetof(struct hw_task_record, sender)},
              {"msg_id", HW_AT_LISTED_MSG_ID, true, offsetof(struct hw_task_record, msg_id)},
              {"receiver", HW_AT_LISTED_RECEIVER, true, offsetof(struct hw_task_record, receiver)},
              {"action", HW_AT_LISTED_ACTION, true, offsetof(struct hw_task_record, action)},
              {"topic", HW_AT_LISTED_TOPIC, true, offsetof(struct hw_task_record, topic)},
              {"why", HW_AT_LISTED_WHY, true, offsetof(struct hw_task_record, why)},
              {"late", HW_AT_LISTED_LATE, true, offsetof(struct hw_task_record, late)},
              {"at", HW_AT_LISTED_AT, false, offsetof(struct hw_task_record, at_ms)},
              {"exp", HW_AT_LISTED_EXP, false, offsetof(struct hw_task_record, exp_ms)},
              {"run", HW_AT_LISTED_RUN, false, offsetof(struct hw_task_record, run_ms)},
              {"created", HW_AT_LISTED_CREATED, false, offsetof(struct hw_task_record, created_ms)},
              {"tries", HW_AT_LISTED_TRIES, false, offsetof(struct hw_task_record, tries)},
              {"sent", HW_AT_LISTED_SENT, false, offsetof(struct hw_task_record, sent_ms)},
              {"acked", HW_AT_LISTED_ACKED, false, offsetof(struct hw_task_record, acked_ms)},
              {"ended", HW_AT_LISTED_ENDED, false, offsetof(struct hw_task_record, ended_ms)},
              {"late_at", HW_AT_LISTED_LATE_AT, false, offsetof(struct hw_task_record, late_ms)}};
#define N_FIELDS (sizeof(fields) / sizeof(*fields))

static void put_field(struct hw_task_record *out, const struct field *f, struct hw_text t)
{
	if (f->is_text)
		*(struct hw_text *)((char *)out + f->offset) = t;
	else
		*(int64_t *)((char *)out + f->offset) = number_in(t);
}

static void put_state(struct hw_task_record *out, struct hw_text state, struct hw_text hold)
{
	out->state = hw_task_state_of(state.at, state.len);
	out->no_hold = hold.len == 1 && hold.at[0] == '0';
}

static void no_record(struct hw_task_record *out)
{
	*out = (struct hw_task_record){.state = HW_TASK_STATES, .due_ms = -1};
	for (const struct field *f = fields; f < fields + N_FIELDS; f++)
		put_field(out, f, (struct hw_text){"", 0});
	out->task = out->body = out->value = (struct hw_text){"", 0};
}

void hw_tasks_listed(const struct hw_tasks_reply *r, size_t i, struct hw_task_record *out)
{
	const redisReply *item = i < r->n_items ? r->items->element[i] : NULL;
	no_record(out);
	out->task = text(item, HW_AT_LISTED_TASK);
	out->due_ms = number_in(text(item, HW_AT_LISTED_DUE));
	for (const struct field *f = fields; f < fields + N_FIELDS; f++)
		put_field(out, f, text(item, f->place));
	put_state(out, text(item, HW_AT_LISTED_STATE), text(item, HW_AT_LISTED_HOLD));
	out->watched = text(item, HW_AT_LISTED_WATCHED).len > 0;
}

void hw_tasks_shown(const struct hw_tasks_reply *r, size_t i, struct hw_task_record *out)
{
	const redisReply *item = i < r->n_items ? r->items->element[i] : NULL;
	const redisReply *hash = part(item, HW_AT_SHOWN_RECORD);
	struct hw_text state = {"", 0}, hold = {"", 0};
	no_record(out);
	for (unsigned k = 1; hash && hash->type == REDIS_REPLY_ARRAY && k + 1 <= hash->elements; k += 2) {
		struct hw_text name = text(hash, k), value = text(hash, k + 1);
		for (const struct field *f = fields; f < fields + N_FIELDS; f++)
			if (strlen(f->name) == name.len && memcmp(f->name, name.at, name.len) == 0)
				put_field(out, f, value);
		if (name.len == 5 && memcmp(name.at, "state", 5) == 0)
			state = value;
		else if (name.len == 4 && memcmp(name.at, "hold", 4) == 0)
			hold = value;
		else if (name.len == 7 && memcmp(name.at, "watched", 7) == 0)
			out->watched = true;
	}
	put_state(out, state, hold);
	out->body = text(item, HW_AT_SHOWN_BODY);
	out->value = text(item, HW_AT_SHOWN_VALUE);
	out->due_ms = number_in(text(item, HW_AT_SHOWN_DUE));
}

void hw_tasks_counted(const struct hw_tasks_reply *r, uint64_t n[HW_TASK_COMPLETE])
{
	const redisReply *item = r->n_items == 1 ? r->items->element[0] : NULL;
	n[HW_TASK_SCHEDULED] += (uint64_t)number(item, HW_AT_COUNTED_SCHEDULED);
	n[HW_TASK_HELD] += (uint64_t)number(item, HW_AT_COUNTED_HELD);
	n[HW_TASK_SENT] += (uint64_t)number(item, HW_AT_COUNTED_SENT);
	n[HW_TASK_ACKED] += (uint64_t)number(item, HW_AT_COUNTED_ACKED);
}

bool hw_tasks_next_place(const struct hw_tasks_reply *r, struct hw_task_place *out)
{
	*out = (struct hw_task_place){text(r->behind, HW_AT_BEHIND_SCORE), text(r->behind, HW_AT_BEHIND_TASK)};
	return out->task.len > 0;
}
