/* SPDX-License-Identifier: MIT */
/*
 * See dispatcher.h. A request is appended at once to the open call of its kind, in the wire format, so its content is
 * copied once. Answers of devices, and watched messages, are also kept until Redis has them, because they are received
 * only once.
 */
#include "tasks/queue/dispatcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/trouble.h"
#include "tasks/app.h"
#include "tasks/queue/calls.h"
#include "tasks/queue/turn.h"
#include "tasks/watch/watch.h"

/* An answer or a watched message that Redis perhaps does not have yet. */
struct kept {
	struct kept *next;
	enum hw_dispatch_kind kind; /* ANSWER or WATCH */
	union {
		struct hw_task_answer answer;
		struct hw_task_seen seen;
	};
	hw_dispatch_fn *fn;
	void *arg;
	bool again;  /* it is being sent to Redis again */
	char text[]; /* holds its texts */
};

struct item {
	struct hw_task_id task;
	hw_dispatch_fn *fn;
	void *arg;
	struct kept *kept; /* owned; NULL: the request is not kept */
};

struct call {
	struct hw_dispatcher *dispatcher;
	struct call *next;
	enum hw_dispatch_kind kind;
	size_t n, bytes; /* bytes: those on the way to Redis */
	struct hw_eval eval;
	struct item items[HW_TASK_CALL_ITEMS];
};

struct hw_dispatcher {
	struct hw_tasks_app *app;
	struct call *open[HW_DISPATCH_KINDS];
	struct call *spare;                  /* a finished call, whose buffers are used again */
	struct kept *waiting, **waiting_end; /* kept requests to repeat */
	size_t n_items, n_bytes, n_again;    /* n_again: kept requests that are being repeated */
	bool missed;                         /* an online receiver was lost on the way to Redis */
	bool ends;                           /* the dispatcher is being freed: nothing is kept */
};

static const enum hw_tasks_script scripts[HW_DISPATCH_KINDS] = {[HW_DISPATCH_SUBMIT] = HW_TASKS_SUBMIT,
                                                                [HW_DISPATCH_ANSWER] = HW_TASKS_ANSWER,
                                                                [HW_DISPATCH_CANCEL] = HW_TASKS_CANCEL,
                                                                [HW_DISPATCH_ONLINE] = HW_TASKS_ONLINE,
                                                                [HW_DISPATCH_WATCH] = HW_TASKS_WATCH};

/* --- calls -------------------------------------------------------------------------------------------------------- */

static void call_free(struct call *c)
{
	if (c)
		hw_eval_fini(&c->eval);
	free(c);
}

static void call_done(struct hw_dispatcher *d, struct call *c)
{
	d->n_items -= c->n;
	d->n_bytes -= c->bytes;
	call_free(d->spare);
	d->spare = c;
}

/* Called when the request is no longer on its way to Redis. */
static void leave(struct hw_dispatcher *d, struct kept *k)
{
	d->n_again -= k->again;
	k->again = false;
}

static void keep(struct hw_dispatcher *d, struct kept *k)
{
	leave(d, k);
	k->next = NULL;
	*d->waiting_end = k;
	d->waiting_end = &k->next;
}

/* Keeps a failed request that must be repeated. Returns false if its callback must be called instead. */
static bool keeps(struct hw_dispatcher *d, struct item *it, int rc, const char *error)
{
	bool again = rc == -ENOTCONN || rc == -ENOMEM || (rc == -EIO && hw_trouble_is_global(hw_trouble_of(error)));
	if (!it->kept || !again || d->ends)
		return false;
	keep(d, it->kept);
	it->kept = NULL;
	return true;
}

static void report(struct hw_dispatcher *d, struct item *it, const struct hw_dispatch_result *result)
{
	if (keeps(d, it, result->rc, result->error))
		return;
	if (it->fn)
		it->fn(it->arg, result);
	if (it->kept)
		leave(d, it->kept);
	free(it->kept);
	it->kept = NULL;
}

static void report_all(struct hw_dispatcher *d, struct call *c, int rc, const char *error)
{
	d->missed |= c->kind == HW_DISPATCH_ONLINE;
	for (size_t i = 0; i < c->n; i++)
		report(d, &c->items[i],
		       &(struct hw_dispatch_result){.rc = rc, .error = error, .task = c->items[i].task});
}

static void read_item(const struct hw_tasks_reply *r, enum hw_dispatch_kind kind, size_t i,
                      struct hw_dispatch_result *result)
{
	struct hw_text error = {"", 0};
	enum hw_task_verdict verdict = HW_TASK_DONE;
	if (kind == HW_DISPATCH_SUBMIT) {
		hw_tasks_submitted(r, i, &result->submitted);
		verdict = result->submitted.verdict;
		error = result->submitted.error;
	} else if (kind == HW_DISPATCH_ANSWER) {
		hw_tasks_answered(r, i, &result->answered);
		verdict = result->answered.verdict;
		error = result->answered.error;
	} else if (kind == HW_DISPATCH_CANCEL) {
		hw_tasks_cancelled(r, i, &result->cancelled);
		verdict = result->cancelled.verdict;
		error = result->cancelled.error;
	} else if (kind == HW_DISPATCH_WATCH) {
		hw_tasks_followed(r, i, &result->followed);
		verdict = result->followed.verdict;
		error = result->followed.error;
	}
	result->rc = verdict == HW_TASK_ERROR ? -EIO : 0;
	result->error = verdict == HW_TASK_ERROR ? error.at : NULL;
}

static void on_call(void *arg, const redisReply *reply)
{
	struct call *c = arg;
	struct hw_dispatcher *d = c->dispatcher;
	struct hw_tasks_reply r;
	int rc = reply ? hw_tasks_reply(reply, &r) : -ENOTCONN;
	if (rc == 0) {
		hw_tasks_turn_answered(d->app->turn, &r);
		for (size_t i = 0; i < c->n; i++) {
			struct hw_dispatch_result result = {.task = c->items[i].task, .now_ms = r.now_ms};
			read_item(&r, c->kind, i, &result);
			if (result.rc)
				hw_tasks_store_trouble(d->app->store, result.error);
			report(d, &c->items[i], &result);
		}
	} else if (reply && reply->type == REDIS_REPLY_ERROR && hw_trouble_of(reply->str) != HW_TROUBLE_NOSCRIPT) {
		report_all(d, c, -EIO, reply->str);
	} else {
		report_all(d, c, -ENOTCONN, NULL);
	}
	call_done(d, c);
	hw_tasks_schedule_turn(d->app);
}

static void flush(struct hw_dispatcher *d, enum hw_dispatch_kind kind)
{
	struct call *c = d->open[kind];
	if (!c || c->n == 0)
		return;
	d->open[kind] = NULL;
	c->bytes = hw_eval_size(&c->eval);
	d->n_bytes += c->bytes;
	int rc = hw_tasks_store_call(d->app->store, scripts[kind], &c->eval, on_call, c);
	if (rc) {
		report_all(d, c, rc, NULL);
		call_done(d, c);
	}
}

void hw_dispatcher_flush(struct hw_dispatcher *d)
{
	for (int k = 0; k < HW_DISPATCH_KINDS; k++)
		flush(d, (enum hw_dispatch_kind)k);
}

/* Begins a call, when its first request comes. Its first argument is the latest time that Redis' clock can show. */
static struct call *begin(struct hw_dispatcher *d, enum hw_dispatch_kind kind)
{
	const struct hw_tasks_app *a = d->app;
	bool believes = kind != HW_DISPATCH_WATCH || hw_tasks_watch_is_settled(a->watch);
	struct call *c = d->spare ? d->spare : calloc(1, sizeof(*c));
	d->spare = NULL;
	if (!c)
		return NULL;
	c->dispatcher = d;
	c->kind = kind;
	c->n = c->bytes = 0;
	hw_tasks_begin(&c->eval, &a->rules, believes ? hw_schedule_latest_ms(a->schedule, hw_tasks_now()) : 0);
	d->open[kind] = c;
	return c;
}

static bool has_task(const struct call *c, const struct hw_task_id *task)
{
	for (size_t i = 0; i < c->n; i++)
		if (memcmp(&c->items[i].task, task, sizeof(*task)) == 0)
			return true;
	return false;
}

/* Returns the open call of a kind if it has room for a request about `task` (NULL: about no task). Otherwise returns
 * a new call. */
static struct call *room(struct hw_dispatcher *d, enum hw_dispatch_kind kind, const struct hw_task_id *task)
{
	struct call *c = d->open[kind];
	if (c && (c->n == HW_TASK_CALL_ITEMS || hw_eval_size(&c->eval) >= HW_DISPATCH_CALL_BYTES ||
	          (task && has_task(c, task)))) {
		flush(d, kind);
		c = NULL;
	}
	return c ? c : begin(d, kind);
}

static void add(struct hw_dispatcher *d, struct call *c, struct item item)
{
	c->items[c->n++] = item;
	d->n_items++;
	hw_tasks_schedule_turn(d->app);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static int closed(const struct hw_dispatcher *d)
{
	if (!hw_tasks_store_is_up(d->app->store))
		return -ENOTCONN;
	return d->n_items < HW_DISPATCH_ITEMS_MAX && d->n_bytes < HW_DISPATCH_BYTES_MAX ? 0 : -EBUSY;
}

bool hw_dispatcher_is_open(const struct hw_dispatcher *d)
{
	return closed(d) == 0 && !d->waiting && d->n_again == 0;
}

bool hw_dispatcher_is_idle(const struct hw_dispatcher *d)
{
	return d->n_items == 0 && !d->waiting;
}

int hw_dispatcher_submit(struct hw_dispatcher *d, const struct hw_task_submission *s, struct hw_task_id *task,
                         hw_dispatch_fn *fn, void *arg)
{
	struct hw_task_submission named = *s;
	int rc = closed(d);
	if (!rc)
		rc = hw_tasks_store_name(d->app->store, s->sender, s->msg_id, &named.task);
	if (rc)
		return rc;
	if (task)
		*task = named.task;
	struct call *c = room(d, HW_DISPATCH_SUBMIT, &named.task);
	if (!c)
		return -ENOMEM;
	hw_tasks_put_submission(&c->eval, &named);
	add(d, c, (struct item){named.task, fn, arg, NULL});
	return 0;
}

#define TEXTS_MAX 4

static size_t texts_of(struct kept *k, struct hw_text *texts[TEXTS_MAX])
{
	if (k->kind == HW_DISPATCH_ANSWER) {
		texts[0] = &k->answer.from;
		texts[1] = &k->answer.value;
		return 2;
	}
	texts[0] = &k->seen.sender;
	texts[1] = &k->seen.msg_id;
	texts[2] = &k->seen.receiver;
	texts[3] = &k->seen.action;
	return 4;
}

/* A copy of `what` that owns its texts. */
static struct kept *kept_new(const struct kept *what)
{
	struct kept all = *what;
	struct hw_text *texts[TEXTS_MAX];
	size_t n = texts_of(&all, texts), size = 0;
	for (size_t i = 0; i < n; i++)
		size += texts[i]->len;
	struct kept *k = malloc(sizeof(*k) + size);
	if (!k)
		return NULL;
	*k = all;
	texts_of(k, texts);
	for (size_t i = 0, at = 0; i < n; at += texts[i++]->len) {
		if (texts[i]->len)
			memcpy(k->text + at, texts[i]->at, texts[i]->len);
		texts[i]->at = k->text + at;
	}
	return k;
}

static const struct hw_task_id *task_of(const struct kept *k)
{
	return k->kind == HW_DISPATCH_ANSWER ? &k->answer.task : &k->seen.task;
}

/* Appends a kept request to the open call of its kind. A call contains at most one answer about each task. It may
 * contain several watched messages about a task, because Redis processes them in the order of the call. */
static int put_kept(struct hw_dispatcher *d, struct kept *k)
{
	struct call *c = room(d, k->kind, k->kind == HW_DISPATCH_ANSWER ? task_of(k) : NULL);
	if (!c)
		return -ENOMEM;
	if (k->kind == HW_DISPATCH_ANSWER)
		hw_tasks_put_answer(&c->eval, &k->answer);
	else
		hw_tasks_put_seen(&c->eval, &k->seen);
	add(d, c, (struct item){*task_of(k), k->fn, k->arg, k});
	return 0;
}

static int put_or_keep(struct hw_dispatcher *d, const struct kept *what)
{
	struct kept *k = kept_new(what);
	if (!k)
		return -ENOMEM;
	if (!hw_tasks_store_is_up(d->app->store) || put_kept(d, k) != 0)
		keep(d, k);
	return 0;
}

int hw_dispatcher_answer(struct hw_dispatcher *d, const struct hw_task_answer *a, hw_dispatch_fn *fn, void *arg)
{
	return put_or_keep(d, &(struct kept){.kind = HW_DISPATCH_ANSWER, .answer = *a, .fn = fn, .arg = arg});
}

int hw_dispatcher_watch(struct hw_dispatcher *d, const struct hw_task_seen *s, hw_dispatch_fn *fn, void *arg)
{
	return put_or_keep(d, &(struct kept){.kind = HW_DISPATCH_WATCH, .seen = *s, .fn = fn, .arg = arg});
}

int hw_dispatcher_cancel(struct hw_dispatcher *d, const struct hw_task_cancel *what, hw_dispatch_fn *fn, void *arg)
{
	int rc = closed(d);
	struct call *c = rc ? NULL : room(d, HW_DISPATCH_CANCEL, &what->task);
	if (!c)
		return rc ? rc : -ENOMEM;
	hw_tasks_put_cancel(&c->eval, what);
	add(d, c, (struct item){what->task, fn, arg, NULL});
	return 0;
}

int hw_dispatcher_online(struct hw_dispatcher *d, struct hw_text receiver, struct hw_text offset)
{
	int rc = d->missed ? -EAGAIN : closed(d);
	if (rc)
		return rc;
	if (d->open[HW_DISPATCH_ONLINE] && (offset.len || d->open[HW_DISPATCH_ONLINE]->n == HW_TASK_CALL_ITEMS))
		flush(d, HW_DISPATCH_ONLINE);
	if (d->missed)
		return -EAGAIN;
	struct call *c = d->open[HW_DISPATCH_ONLINE];
	if (!c) {
		c = begin(d, HW_DISPATCH_ONLINE);
		if (!c)
			return -ENOMEM;
		hw_tasks_put_offset(&c->eval, offset);
	}
	hw_tasks_put_online(&c->eval, receiver);
	add(d, c, (struct item){.fn = NULL});
	return 0;
}

bool hw_dispatcher_missed(struct hw_dispatcher *d)
{
	bool missed = d->missed && hw_tasks_store_is_up(d->app->store);
	if (missed)
		d->missed = false;
	return missed;
}

void hw_dispatcher_up(struct hw_dispatcher *d)
{
	struct kept *k = d->waiting, *next;
	d->waiting = NULL;
	d->waiting_end = &d->waiting;
	for (; k; k = next) {
		next = k->next;
		k->again = true;
		d->n_again++;
		if (put_kept(d, k) != 0)
			keep(d, k);
	}
}

/* --- a record ----------------------------------------------------------------------------------------------------- */

struct query {
	hw_dispatched_record_fn *fn;
	void *arg;
	struct hw_task_id task;
};

static void on_record(void *arg, const redisReply *reply)
{
	struct query *q = arg;
	struct hw_tasks_reply r;
	struct hw_task_record record;
	int rc = reply ? hw_tasks_reply(reply, &r) : -ENOTCONN;
	if (rc == 0 && r.n_items != 1)
		rc = -EPROTO;
	if (rc == 0) {
		hw_tasks_shown(&r, 0, &record);
		rc = record.state == HW_TASK_STATES ? -ENOENT : 0;
	}
	q->fn(q->arg, &q->task, rc, &record);
	free(q);
}

int hw_dispatcher_query(struct hw_dispatcher *d, const struct hw_task_id *task, hw_dispatched_record_fn *fn, void *arg)
{
	struct hw_eval e = {0};
	struct query *q = malloc(sizeof(*q));
	int rc = -ENOMEM;
	if (q) {
		*q = (struct query){fn, arg, *task};
		hw_tasks_begin(&e, &d->app->rules, 0);
		hw_tasks_put_show(&e, task);
		rc = hw_tasks_store_call(d->app->store, HW_TASKS_SHOW, &e, on_record, q);
	}
	hw_eval_fini(&e);
	if (rc)
		free(q);
	return rc;
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

struct hw_dispatcher *hw_dispatcher_new(struct hw_tasks_app *app)
{
	struct hw_dispatcher *d = calloc(1, sizeof(*d));
	if (d) {
		d->app = app;
		d->waiting_end = &d->waiting;
	}
	return d;
}

void hw_dispatcher_free(struct hw_dispatcher *d)
{
	if (!d)
		return;
	d->ends = true;
	for (int k = 0; k < HW_DISPATCH_KINDS; k++) {
		struct call *c = d->open[k];
		d->open[k] = NULL;
		if (c)
			report_all(d, c, -ENOTCONN, NULL);
		call_free(c);
	}
	for (struct kept *k = d->waiting, *next; k; k = next) {
		next = k->next;
		if (k->fn)
			k->fn(k->arg, &(struct hw_dispatch_result){.rc = -ENOTCONN, .task = *task_of(k)});
		free(k);
	}
	call_free(d->spare);
	free(d);
}
