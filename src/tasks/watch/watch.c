/* SPDX-License-Identifier: MIT */
/*
 * See watch.h. Each message that is seen is reported to Redis, which has a record for each task; the instances store
 * none. Cost: one item of a script's call for each message, and one call each second, which ends tasks whose time is
 * over.
 *
 * With several instances, the report of a task may be delayed, and another instance may report the answer first. So if
 * the task of an answer is unknown, the answer is reported again, after growing pauses. At most AGAIN_MAX answers wait
 * for that.
 *
 * An instance that was stopped or not connected may read an answer late that was given in time. So it ends no task
 * because of its time until it has received every message for SETTLE_MS. Until then it passes the limit 0 to the
 * scripts, which then trust no clock and end no task because of its time.
 */
#include "tasks/watch/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "heartwheel/topic.h"
#include "link/clock.h"
#include "tasks/app.h"
#include "tasks/queue/calls.h"
#include "tasks/queue/turn.h"

#define AGAIN_MS    1000 /* then doubled each time */
#define AGAIN_TRIES 5    /* 31 s in all */
#define AGAIN_MAX   10000
#define SWEEPS      50 /* calls without a pause: 10,000 tasks per second */
#define SETTLE_MS   5000
#define STILL_MS    3000 /* an instance without a tick for this long has stalled */

/* An answer to an unknown task. */
struct again {
	struct again *next;
	struct hw_task_id task;
	enum hw_task_state state;
	unsigned tries; /* repetitions so far */
	int64_t at_ms;  /* monotonic */
	size_t len;
	char receiver[];
};

/* A message on its way to Redis. */
struct notice {
	struct hw_tasks_watch *watch;
	struct again *again; /* owned: for reporting again if the task is unknown; NULL: not reported again */
};

struct hw_tasks_watch {
	struct hw_tasks_app *app;
	struct again *waiting, **waiting_end;
	size_t n_waiting;
	bool sweeping, known;
	unsigned sweeps; /* since the last tick */
	/* monotonic. hears_ms: since when this instance receives all messages; 0: it does not receive all */
	int64_t ticked_ms, hears_ms;
	uint64_t count;
};

static int64_t now_ms(void)
{
	return hw_clock_mono().ns / HW_NS_PER_MS;
}

/* --- reports to Redis --------------------------------------------------------------------------------------------- */

static void keep(struct hw_tasks_watch *w, struct again *a)
{
	a->next = NULL;
	*w->waiting_end = a;
	w->waiting_end = &a->next;
	w->n_waiting++;
}

/* Keeps an answer to an unknown task until it is reported again. */
static void wait_with(struct hw_tasks_watch *w, struct again *a)
{
	if (a->tries == AGAIN_TRIES || w->n_waiting == AGAIN_MAX) {
		w->app->counts.refused[HW_REFUSED_FULL] += a->tries < AGAIN_TRIES;
		free(a);
		return;
	}
	a->at_ms = now_ms() + (AGAIN_MS << a->tries++);
	keep(w, a);
}

static void on_reported(void *arg, const struct hw_dispatch_result *result)
{
	struct notice *t = arg;
	struct hw_tasks_watch *w = t->watch;
	if (result->rc == 0 && result->followed.verdict == HW_TASK_FULL)
		w->app->counts.refused[HW_REFUSED_FULL]++;
	else if (result->rc == 0 && result->followed.verdict == HW_TASK_FOREIGN)
		w->app->counts.foreign++;
	if (result->rc == 0 && result->followed.verdict == HW_TASK_GONE && t->again)
		wait_with(w, t->again);
	else
		free(t->again);
	free(t);
}

/* Reports a message to Redis. Takes over `a`, with which the message may be reported again; NULL: it is reported
 * only once. */
static void report(struct hw_tasks_watch *w, const struct hw_task_seen *s, struct again *a)
{
	struct notice *t = malloc(sizeof(*t));
	if (t)
		*t = (struct notice){w, a};
	if (t && hw_dispatcher_watch(w->app->dispatcher, s, on_reported, t) == 0)
		return;
	free(a);
	free(t);
}

static struct again *again_of(const struct hw_task_seen *s)
{
	struct again *a = malloc(sizeof(*a) + s->receiver.len);
	if (!a)
		return NULL;
	*a = (struct again){.task = s->task, .state = s->state, .len = s->receiver.len};
	if (a->len)
		memcpy(a->receiver, s->receiver.at, a->len);
	return a;
}

static void report_again(struct hw_tasks_watch *w)
{
	struct again *a = w->waiting, *next;
	int64_t now = now_ms();
	w->waiting = NULL;
	w->waiting_end = &w->waiting;
	w->n_waiting = 0;
	for (; a; a = next) {
		struct hw_task_seen s = {.task = a->task,
		                         .state = a->state,
		                         .sender = {"", 0},
		                         .msg_id = {"", 0},
		                         .receiver = {a->receiver, a->len},
		                         .action = {"", 0},
		                         .exp_ms = -1};
		next = a->next;
		if (a->at_ms > now)
			keep(w, a);
		else
			report(w, &s, a);
	}
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* Makes the name of a watched task. It never equals that of one of our tasks, because no sender's name contains a
 * slash. */
static int name_it(struct hw_tasks_watch *w, struct hw_text sender, struct hw_text msg_id, struct hw_task_id *task)
{
	char name[HW_ID_MAX + 2];
	if (sender.len > HW_ID_MAX)
		return -EINVAL;
	size_t len = hw_print(name, sizeof(name), "/%.*s", (int)sender.len, sender.at);
	return hw_tasks_store_name(w->app->store, (struct hw_text){name, len}, msg_id, task);
}

static bool is_us(const struct hw_tasks_watch *w, struct hw_text name)
{
	const char *ours = w->app->conf->name;
	return name.len == strlen(ours) && memcmp(name.at, ours, name.len) == 0;
}

/* Whether this is the id of a probe of heartwheeld (core/probe.c). A probe is no task: its answer is a heartbeat. */
static bool is_probe(struct hw_text id)
{
	size_t n = 0;
	for (size_t k = 0; k < id.len; k++)
		n += k == 8 || k == 13 ? id.at[k] == '-' : memchr("0123456789abcdef", id.at[k], 16) != NULL;
	return id.len == 30 && n == 30;
}

/* Returns the sender of a task: the topic's last level if the ACL binds it to the client, or else the sender in the
 * payload. Empty: the task is not followed. */
static struct hw_text sender_of(struct hw_tasks_watch *w, const struct hw_overheard *seen, struct hw_text last)
{
	struct hw_text none = {"", 0}, sender = last.len ? last : seen->sender;
	bool lies = last.len && seen->sender.len &&
	            (last.len != seen->sender.len || memcmp(last.at, seen->sender.at, last.len) != 0);
	if (!hw_task_name_is_valid(sender) || hw_tasks_is_local(sender) || lies) {
		w->app->counts.refused[HW_REFUSED_SENDER]++;
		return none;
	}
	return is_us(w, sender) || is_probe(seen->msg_id) ? none : sender;
}

static void follow(struct hw_tasks_watch *w, struct hw_text receiver, struct hw_text last,
                   const struct hw_overheard *seen)
{
	struct hw_task_seen s = {.state = HW_TASK_SENT,
	                         .sender = sender_of(w, seen, last),
	                         .msg_id = seen->msg_id,
	                         .receiver = receiver,
	                         .action = seen->action,
	                         .exp_ms = seen->exp_ms};
	if (s.sender.len && name_it(w, s.sender, s.msg_id, &s.task) == 0)
		report(w, &s, NULL);
}

static void note(struct hw_tasks_watch *w, enum hw_task_topic word, struct hw_text sender, struct hw_text last,
                 const struct hw_overheard *seen)
{
	struct hw_task_seen s = {.state = word == HW_TOPIC_ACK        ? HW_TASK_ACKED
	                                  : word == HW_TOPIC_COMPLETE ? HW_TASK_COMPLETE
	                                                              : HW_TASK_FAILED,
	                         .sender = {"", 0},
	                         .msg_id = {"", 0},
	                         .receiver = last,
	                         .action = {"", 0},
	                         .exp_ms = -1};
	if (!seen->is_ours && !is_probe(seen->msg_id) && name_it(w, sender, seen->msg_id, &s.task) == 0)
		report(w, &s, w->app->conf->several ? again_of(&s) : NULL);
}

static void on_message(void *arg, const struct hw_tasks_got *m)
{
	struct hw_tasks_watch *w = arg;
	struct hw_text name, last;
	struct hw_overheard seen;
	enum hw_task_topic word = hw_task_topic_read(w->app->conf->root, m->topic.at, m->topic.len, &name, &last);
	if (m->retained || m->truncated || word == HW_TOPIC_NONE || is_us(w, name) || !hw_task_name_is_valid(name))
		return;
	int rc = hw_overheard_read(&seen, m->payload.at, m->payload.len);
	if (rc == -EINVAL)
		w->app->counts.refused[HW_REFUSED_MALFORMED]++;
	else if (rc == 0 && word == HW_TOPIC_PENDING)
		follow(w, name, last, &seen);
	else if (rc == 0)
		note(w, word, name, last, &seen);
	hw_overheard_fini(&seen);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static bool hears(const struct hw_tasks_watch *w, int64_t now)
{
	const struct hw_tasks_app *a = w->app;
	return hw_tasks_broker_reads(a->broker) && hw_tasks_store_is_up(a->store) && now - w->ticked_ms < STILL_MS;
}

bool hw_tasks_watch_is_settled(const struct hw_tasks_watch *w)
{
	int64_t now = now_ms();
	int64_t half = w->app->conf->keep_ms / 2; /* `keep` is the longest time for which a record stays in Redis after
	                                           * the end of its task. So the wait must be shorter */
	return hears(w, now) && w->hears_ms && now - w->hears_ms >= (half < SETTLE_MS ? half : SETTLE_MS);
}

static void sweep(struct hw_tasks_watch *w);

static void on_swept(void *arg, const redisReply *reply)
{
	struct hw_tasks_watch *w = arg;
	struct hw_tasks_reply r;
	w->sweeping = false;
	if (!reply || hw_tasks_reply(reply, &r) != 0)
		return; /* the store has logged why; the next tick tries again */
	hw_tasks_turn_answered(w->app->turn, &r);
	bool more = hw_tasks_swept(&r, &w->count);
	w->known = true;
	if (more && w->sweeps < SWEEPS && !w->app->life.stopping)
		sweep(w);
}

static void sweep(struct hw_tasks_watch *w)
{
	struct hw_tasks_app *a = w->app;
	struct hw_eval eval = {0};
	if (w->sweeping || !hw_tasks_store_is_up(a->store))
		return;
	hw_tasks_begin(&eval, &a->rules,
	               hw_tasks_watch_is_settled(w) ? hw_schedule_latest_ms(a->schedule, hw_tasks_now()) : 0);
	w->sweeping = hw_tasks_store_call(a->store, HW_TASKS_SWEEP, &eval, on_swept, w) == 0;
	w->sweeps += w->sweeping;
	hw_eval_fini(&eval);
}

void hw_tasks_watch_tick(struct hw_tasks_watch *w)
{
	int64_t now = now_ms();
	if (!hw_tasks_watch_is_on(w))
		return;
	w->hears_ms = !hears(w, now) ? 0 : w->hears_ms ? w->hears_ms : now;
	w->ticked_ms = now;
	report_again(w);
	w->sweeps = 0;
	sweep(w);
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

bool hw_tasks_watch_is_on(const struct hw_tasks_watch *w)
{
	return w && w->app->conf->watch;
}

bool hw_tasks_watch_count(const struct hw_tasks_watch *w, uint64_t *n)
{
	*n = w ? w->count : 0;
	return w && w->known;
}

static int listen_to(struct hw_tasks_watch *w, const char *word)
{
	char filter[2 * HW_CONF_TEXT_MAX];
	size_t len = hw_print(filter, sizeof(filter), "%s/+/%s/+", w->app->conf->root, word);
	int rc = hw_tasks_broker_listen(w->app->broker, filter, false, on_message, w);
	filter[len - 2] = '\0';
	return rc ? rc : hw_tasks_broker_listen(w->app->broker, filter, false, on_message, w);
}

struct hw_tasks_watch *hw_tasks_watch_new(struct hw_tasks_app *app)
{
	struct hw_tasks_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->app = app;
	w->waiting_end = &w->waiting;
	if (!app->conf->watch || (listen_to(w, "pending") == 0 && listen_to(w, "ack") == 0 &&
	                          listen_to(w, "complete") == 0 && listen_to(w, "failed") == 0))
		return w;
	free(w);
	return NULL;
}

void hw_tasks_watch_free(struct hw_tasks_watch *w)
{
	if (!w)
		return;
	for (struct again *a = w->waiting, *next; a; a = next) {
		next = a->next;
		free(a);
	}
	free(w);
}
