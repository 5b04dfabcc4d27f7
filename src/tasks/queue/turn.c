/* SPDX-License-Identifier: MIT */
/* See turn.h. Cost: one call of the claim script for up to HW_CLAIM_MAX tasks, and one copy of each message. */
#include "tasks/queue/turn.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/topic.h"
#include "tasks/app.h"
#include "tasks/follow/sessions.h"
#include "tasks/mqtt/message.h"

#define ORDERS_A_TURN 16
#define ROOM          1024 /* with this many messages on the way to the broker, no task is claimed */
#define AGAIN_MS      5000 /* after a claim that failed with an error, the task is claimed again after this pause */
#define SENT_SLOTS    8192 /* tasks whose acks are timed; a power of two */

struct order {
	struct hw_tasks_turn *turn;
	struct hw_schedule_order what;
	struct hw_mono asked;
};

struct hw_tasks_turn {
	struct hw_tasks_app *app;
	struct event *event;
	struct hw_eval eval;
	unsigned n_orders;   /* orders without an answer */
	bool clock_was_held; /* Redis' clock was not trusted a second ago */
	struct hw_message message, topic;
	struct {
		uint64_t task; /* the first 8 bytes of its name */
		int64_t ns;
	} sent[SENT_SLOTS];
};

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void put_wakes(struct hw_tasks_turn *t, const struct hw_tasks_reply *r, struct hw_mono now)
{
	struct hw_task_wake w;
	for (size_t k = 0; k < r->n_wakes; k++)
		if (hw_tasks_wake(r, k, &w))
			hw_schedule_put(t->app->schedule, now, w.task,
			                hw_schedule_receiver(w.receiver.at, w.receiver.len), w.due_ms);
}

static void note_unusable(struct hw_tasks_turn *t, const struct hw_tasks_reply *r)
{
	hw_tasks_unusable(t->app, HW_UNUSABLE_RECORD, r->unusable,
	                  "fields of tasks under %s are out of bounds and count as missing", t->app->conf->key_prefix);
}

void hw_tasks_turn_answered(struct hw_tasks_turn *t, const struct hw_tasks_reply *r)
{
	struct hw_mono now = hw_tasks_now();
	hw_schedule_clock(t->app->schedule, now, r->now_ms);
	put_wakes(t, r, now);
	note_unusable(t, r);
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

/* A message on its way to the broker. */
struct sending {
	struct hw_tasks_app *app;
	struct hw_task_id task;
	bool to_topic;
};

static void on_put(void *arg, enum hw_put what, const char *text)
{
	struct sending *s = arg;
	struct hw_task_answer a = {.task = s->task, .kind = HW_ANSWER_KINDS, .from = {"", 0}, .value = {"", 0}};
	if (what == HW_PUT_REFUSED) {
		a.kind = HW_ANSWER_REFUSED;
		hw_log_limited(s->app->log, HW_TASKS_LIMIT_PUT, HW_LOG_WARNING, "the broker refused a task: %.200s",
		               text);
	} else if (what != HW_PUT_LOST && s->to_topic) {
		a.kind = HW_ANSWER_PUBLISHED;
	} else if (what == HW_PUT_NOBODY) {
		a.kind = HW_ANSWER_NOBODY;
	}
	if (a.kind != HW_ANSWER_KINDS)
		(void)hw_dispatcher_answer(s->app->dispatcher, &a, NULL, NULL);
	free(s);
}

static uint64_t start_of(const struct hw_task_id *task)
{
	uint64_t n;
	memcpy(&n, task->bytes, sizeof(n));
	return n;
}

static void note_sent(struct hw_tasks_turn *t, const struct hw_task_id *task, const struct hw_task_claimed *c,
                      int64_t now_ms)
{
	uint64_t n = start_of(task);
	if (c->tries > 1) {
		t->app->counts.retries++;
		return;
	}
	hw_histogram_add(&t->app->counts.lateness, (double)(now_ms - c->at_ms) / 1e3);
	t->sent[n % SENT_SLOTS].task = n;
	t->sent[n % SENT_SLOTS].ns = hw_tasks_now().ns;
}

void hw_tasks_turn_acked(struct hw_tasks_turn *t, const struct hw_task_id *task)
{
	uint64_t n = start_of(task);
	if (t->sent[n % SENT_SLOTS].task != n || t->sent[n % SENT_SLOTS].ns == 0)
		return;
	hw_histogram_add(&t->app->counts.ack, (double)(hw_tasks_now().ns - t->sent[n % SENT_SLOTS].ns) / 1e9);
	t->sent[n % SENT_SLOTS].ns = 0;
}

/* Whether the record in Redis can be that of a submission. Another program may have changed it. */
static bool is_sendable(const struct hw_task_claimed *c)
{
	return hw_task_name_is_valid(c->receiver) && hw_id_valid(c->action.at, c->action.len) &&
	       hw_id_valid(c->sender.at, c->sender.len) && hw_task_msg_id_is_valid(c->msg_id) &&
	       c->body.len <= HW_TASK_BYTES_MAX && hw_json_valid(c->body.at, c->body.len);
}

/* Makes the message of a task. The record of a task for a device is checked here; the topic of a task for a topic is
 * checked when the message is queued for the broker. Returns 0, -EINVAL or -ENOMEM. */
static int make(struct hw_tasks_turn *t, const struct hw_task_id *task, const struct hw_task_claimed *c, int64_t now_ms,
                struct hw_tasks_put *m)
{
	const struct hw_tasks_settings *conf = t->app->conf;
	if (!c->receiver.len) {
		m->topic = c->topic;
		m->payload = c->body;
		m->qos = c->qos;
		m->retain = c->retain;
		return 0;
	}
	m->qos = 1;
	if (!is_sendable(c))
		return -EINVAL;
	if (hw_message_pending(&t->message, conf->name, task, c, now_ms) != 0 ||
	    hw_message_topic(&t->topic, conf->root, c->receiver, HW_TOPIC_PENDING) != 0)
		return -ENOMEM;
	m->topic = (struct hw_text){t->topic.at, t->topic.len};
	m->payload = (struct hw_text){t->message.at, t->message.len};
	return 0;
}

/* Makes the task fail, because no message can be made of it, now or later. */
static void give_up(struct hw_tasks_turn *t, const struct hw_task_id *task)
{
	const struct hw_task_answer lost = {.task = *task, .kind = HW_ANSWER_LOST, .from = {"", 0}, .value = {"", 0}};
	char id[HW_TASK_TEXT + 1];
	hw_task_id_text(task, id);
	hw_tasks_unusable(t->app, HW_UNUSABLE_RECORD, 1,
	                  "task %s cannot be sent and fails: its receiver, action or payload is malformed", id);
	(void)hw_dispatcher_answer(t->app->dispatcher, &lost, NULL, NULL);
}

/* Sends a claimed task. If the queue for the broker is full, sends nothing; the task is due again after its wait. */
static void send_task(struct hw_tasks_turn *t, const struct hw_task_id *task, const struct hw_task_claimed *c,
                      int64_t now_ms)
{
	int64_t left_ms = c->exp_ms - now_ms;
	struct hw_tasks_put m = {.subject = start_of(task) | 1};
	int rc = left_ms > 0 ? make(t, task, c, now_ms, &m) : -ETIME;
	if (rc == -EINVAL)
		give_up(t, task);
	if (rc)
		return;
	m.until_ns = hw_tasks_now().ns + left_ms * HW_NS_PER_MS;
	struct sending *s = malloc(sizeof(*s));
	if (!s)
		return;
	*s = (struct sending){t->app, *task, c->receiver.len == 0};
	if (hw_tasks_broker_publish(t->app->broker, &m, on_put, s) != 0)
		free(s);
	else
		note_sent(t, task, c, now_ms);
}

struct due {
	const struct hw_task_id *task;
	struct hw_task_claimed c;
};

static int by_time(const void *a, const void *b)
{
	const struct hw_task_claimed *x = &((const struct due *)a)->c, *y = &((const struct due *)b)->c;
	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return (x->created_ms > y->created_ms) - (x->created_ms < y->created_ms);
}

/* --- orders ------------------------------------------------------------------------------------------------------- */

/* Handles claimed tasks. The wheel returns tasks that are due together in any order; the oldest task is sent first. */
static void claimed(struct hw_tasks_turn *t, const struct hw_schedule_order *o, struct hw_mono asked,
                    const struct hw_tasks_reply *r)
{
	struct hw_schedule_claimed done[HW_CLAIM_MAX];
	struct due send[HW_CLAIM_MAX];
	struct hw_task_claimed c;
	size_t n = 0;
	struct hw_mono now = hw_tasks_now();
	/* The latest time that Redis' clock can show now, so that no message is sent after its exp, however long the
	 * reply took. */
	int64_t latest_ms = r->now_ms + (now.ns - asked.ns) / HW_NS_PER_MS + 1;
	hw_schedule_clock(t->app->schedule, now, r->now_ms);
	note_unusable(t, r);
	for (size_t i = 0; i < o->n; i++) {
		hw_tasks_claimed(r, i, &c);
		done[i] = (struct hw_schedule_claimed){o->tasks[i], c.verdict == HW_TASK_SEND, c.due_ms};
		if (c.verdict == HW_TASK_SEND) {
			send[n++] = (struct due){&o->tasks[i], c};
		} else if (c.verdict == HW_TASK_ERROR) {
			done[i].due_ms = r->now_ms + AGAIN_MS;
			hw_tasks_store_trouble(t->app->store, c.error.at);
		}
	}
	qsort(send, n, sizeof(*send), by_time);
	for (size_t i = 0; i < n; i++)
		send_task(t, send[i].task, &send[i].c, latest_ms);
	hw_schedule_claimed(t->app->schedule, now, o->serial, r->now_ms, done, o->n);
	put_wakes(t, r, now);
}

/* Removes a member of task:due that names no task. Otherwise each page would contain it again. */
static void remove_due(struct hw_tasks_turn *t, const redisReply *item)
{
	char key[HW_TASKS_KEY_MAX];
	const redisReply *name = item->type == REDIS_REPLY_ARRAY && item->elements ? item->element[0] : NULL;
	if (!name || name->type != REDIS_REPLY_STRING)
		return;
	const char *argv[] = {"ZREM", hw_tasks_store_key(t->app->store, "due", key), name->str};
	const size_t len[] = {4, strlen(key), name->len};
	hw_tasks_unusable(t->app, HW_UNUSABLE_DUE, 1, "members of %s that are not tasks were removed", key);
	(void)hw_tasks_store_command(t->app->store, NULL, NULL, 3, argv, len);
}

static void paged(struct hw_tasks_turn *t, const struct hw_schedule_order *o, const struct hw_tasks_reply *r)
{
	struct hw_schedule_found found[HW_PAGE_MAX];
	struct hw_task_wake w;
	size_t n = 0;
	for (size_t i = 0; i < r->n_items && n < HW_PAGE_MAX; i++) {
		bool is_task = hw_tasks_found(r, i, &w);
		found[n++] = (struct hw_schedule_found){w.task, hw_schedule_receiver(w.receiver.at, w.receiver.len),
		                                        w.due_ms, !is_task};
		if (!is_task)
			remove_due(t, r->items->element[i]);
	}
	hw_schedule_page(t->app->schedule, hw_tasks_now(), o->serial, r->now_ms, found, n);
}

static void on_order(void *arg, const redisReply *reply)
{
	struct order *o = arg;
	struct hw_tasks_turn *t = o->turn;
	struct hw_tasks_reply r;
	if (!reply || hw_tasks_reply(reply, &r) != 0)
		hw_schedule_failed(t->app->schedule, hw_tasks_now(), o->what.serial);
	else if (o->what.kind == HW_SCHEDULE_CLAIM)
		claimed(t, &o->what, o->asked, &r);
	else
		paged(t, &o->what, &r);
	t->n_orders--;
	free(o);
	hw_tasks_schedule_turn(t->app);
}

static void give(struct hw_tasks_turn *t, struct order *o)
{
	struct hw_schedule *s = t->app->schedule;
	bool claim = o->what.kind == HW_SCHEDULE_CLAIM;
	hw_tasks_begin(&t->eval, &t->app->rules, hw_schedule_latest_ms(s, hw_tasks_now()));
	for (size_t i = 0; claim && i < o->what.n; i++)
		hw_tasks_put_claim(&t->eval, &o->what.tasks[i]);
	if (!claim)
		hw_tasks_put_page(&t->eval, &o->what);
	if (hw_tasks_store_call(t->app->store, claim ? HW_TASKS_CLAIM : HW_TASKS_PAGE, &t->eval, on_order, o) == 0) {
		t->n_orders++;
		return;
	}
	hw_schedule_failed(s, hw_tasks_now(), o->what.serial);
	free(o);
}

static bool may_claim(const struct hw_tasks_app *a)
{
	return !a->life.stopping && hw_tasks_store_is_up(a->store) && hw_tasks_broker_publishes(a->broker) &&
	       hw_tasks_broker_waiting(a->broker) < ROOM && hw_tasks_broker_has_room(a->broker);
}

/* Returns whether there may be more orders. */
static bool pull(struct hw_tasks_turn *t)
{
	for (int i = 0; i < ORDERS_A_TURN; i++) {
		struct order *o = may_claim(t->app) ? malloc(sizeof(*o)) : NULL;
		if (!o)
			return false;
		o->turn = t;
		o->asked = hw_tasks_now();
		if (!hw_schedule_next(t->app->schedule, hw_tasks_now(), &o->what)) {
			free(o);
			return false;
		}
		give(t, o);
	}
	return true;
}

/* --- the turn ----------------------------------------------------------------------------------------------------- */

/* Sleeps until the schedule is due, but at most one second. If no task can be claimed now, sleeps one second. */
static void rest(struct hw_tasks_turn *t)
{
	struct hw_mono now = hw_tasks_now();
	int64_t ns = hw_schedule_due(t->app->schedule, now).ns - now.ns, most = HW_NS_PER_S;
	if (!may_claim(t->app) || ns > most)
		ns = most;
	ns = ns < 0 ? 0 : ns;
	struct timeval tv = {ns / HW_NS_PER_S, (ns % HW_NS_PER_S + 999) / 1000};
	if (tv.tv_usec > 999999)
		tv.tv_usec = 999999;
	event_add(t->event, &tv);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct hw_tasks_turn *t = arg;
	struct hw_tasks_app *a = t->app;
	(void)fd, (void)what;
	hw_dispatcher_flush(a->dispatcher);
	bool more = pull(t);
	hw_tasks_broker_open(a->broker, hw_dispatcher_is_open(a->dispatcher));
	hw_tasks_sessions_turn(a->sessions);
	hw_tasks_broker_flush(a->broker);
	rest(t);
	if (more)
		hw_tasks_turn_schedule(t);
}

void hw_tasks_turn_tick(struct hw_tasks_turn *t)
{
	struct hw_tasks_app *a = t->app;
	bool held = hw_schedule_clock_held(a->schedule, hw_tasks_now());
	if (held && !t->clock_was_held)
		hw_log(a->log, HW_LOG_WARNING,
		       "Redis' clock has jumped ahead by more than %d s: no task is sent or ended for %lld s, unless "
		       "the clock goes back",
		       HW_CLOCK_STEP_MS / 1000, (long long)a->conf->clock_hold_ms / 1000);
	else if (!held && t->clock_was_held)
		hw_log(a->log, HW_LOG_NOTICE, "Redis' clock is trusted again");
	t->clock_was_held = held;
}

bool hw_tasks_turn_is_idle(const struct hw_tasks_turn *t)
{
	return t->n_orders == 0;
}

void hw_tasks_turn_schedule(struct hw_tasks_turn *t)
{
	event_active(t->event, EV_TIMEOUT, 0);
}

struct hw_tasks_turn *hw_tasks_turn_new(struct hw_tasks_app *app)
{
	struct hw_tasks_turn *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->app = app;
	t->event = evtimer_new(app->loop.base, on_turn, t);
	if (t->event)
		return t;
	free(t);
	return NULL;
}

void hw_tasks_turn_free(struct hw_tasks_turn *t)
{
	if (!t)
		return;
	event_free(t->event);
	hw_eval_fini(&t->eval);
	hw_message_fini(&t->message);
	hw_message_fini(&t->topic);
	free(t);
}
