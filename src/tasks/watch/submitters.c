/* SPDX-License-Identifier: MIT */
/*
 * See submitters.h. src/stream/group.h reads, on a connection of its own. Acknowledgements are sent over the store's
 * connection. While OUT_MAX messages wait for the broker, no further entries are read.
 */
#include "tasks/watch/submitters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "link/link.h"
#include "link/trouble.h"
#include "stream/entries.h"
#include "stream/group.h"
#include "tasks/app.h"

#define GROUP   "tell"
#define PAGE    100
#define IDLE_MS 15000
#define OUT_MAX 1000

/* An entry to be published. */
struct notice {
	struct hw_submitters *owner;
	struct hw_stream_id id;
	struct hw_task_id task;
	struct hw_text receiver, sender, msg_id, why;
	enum hw_task_state state;
	bool late;
	int64_t time_ms;
	char text[];
};

struct hw_submitters {
	struct hw_tasks_app *app;
	struct hw_redis_link link;
	struct hw_stream_group group;
	char events[HW_TASKS_KEY_MAX];
	bool ready, asking; /* asking: the records of the tasks in the page are requested, and some answers are
	                     * missing */
	size_t out;         /* messages on their way to the broker */
	struct notice *page[PAGE];
	size_t n_page;
	struct hw_stream_acks acks;
	unsigned acking; /* commands without a reply yet */
};

static void go_on(struct hw_submitters *t);

/* --- acknowledging ------------------------------------------------------------------------------------------------ */

static void on_acked(void *arg, const redisReply *r)
{
	struct hw_submitters *t = arg;
	(void)r;
	t->acking--;
}

void hw_submitters_flush(struct hw_submitters *t)
{
	if (t->acks.argc == 0)
		return;
	/* If the command is lost, the entries are published again; each entry is published at least once. */
	if (hw_tasks_store_command(t->app->store, on_acked, t, t->acks.argc, t->acks.argv, t->acks.len) == 0)
		t->acking++;
	t->acks.argc = 0;
}

static void acknowledge(struct hw_submitters *t, struct hw_stream_id id)
{
	if (hw_stream_acks_add(&t->acks, &t->group, id))
		hw_submitters_flush(t);
}

/* --- publishing --------------------------------------------------------------------------------------------------- */

static void on_put(void *arg, enum hw_put what, const char *text)
{
	struct notice *e = arg;
	struct hw_submitters *t = e->owner;
	t->out--;
	if (what == HW_PUT_REFUSED)
		hw_log_limited(t->app->log, HW_TASKS_LIMIT_SUBMITTERS, HW_LOG_WARNING,
		               "cannot send a task's result to its submitter: %.200s", text);
	if (what != HW_PUT_LOST)
		acknowledge(t, e->id);
	t->app->counts.notified += what == HW_PUT_TAKEN || what == HW_PUT_NOBODY;
	free(e);
	if (t->out == 0)
		hw_submitters_flush(t);
	go_on(t);
}

static enum hw_task_topic word_of(enum hw_task_state s)
{
	if (s == HW_TASK_ACKED)
		return HW_TOPIC_ACK;
	return s == HW_TASK_COMPLETE ? HW_TOPIC_COMPLETE : HW_TOPIC_FAILED;
}

/* Returns a value or an error of a task, which was JSON when it arrived. Another program may have overwritten it
 * since. */
static struct hw_text value_of(struct hw_submitters *t, const redisReply *r)
{
	struct hw_text none = {"", 0};
	if (!r || r->type != REDIS_REPLY_STRING || r->len == 0)
		return none;
	if (r->len <= HW_TASK_BYTES_MAX && hw_json_valid(r->str, r->len))
		return (struct hw_text){r->str, r->len};
	hw_tasks_unusable(t->app, HW_UNUSABLE_RECORD, 1,
	                  "answers of devices under %svalue: were left out, because they are not JSON",
	                  t->app->conf->key_prefix);
	return none;
}

static void notify_one(struct hw_submitters *t, struct notice *e, struct hw_text value)
{
	const struct hw_notice n = {.msg_id = e->msg_id,
	                            .receiver = e->receiver,
	                            .task = &e->task,
	                            .state = e->state,
	                            .time_ms = e->time_ms,
	                            .value = e->state == HW_TASK_COMPLETE ? value : (struct hw_text){"", 0},
	                            .error = e->state == HW_TASK_FAILED ? value : (struct hw_text){"", 0},
	                            .why = e->why.at,
	                            .late = e->late};
	t->out++;
	if (hw_tasks_notify(t->app, e->sender, word_of(e->state), &n, on_put, e) == 0)
		return;
	t->out--;
	free(e); /* the entry stays pending, and is read again */
}

/* The reply of MGET: the answers to the tasks. */
static void on_values(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_submitters *t = arg;
	const redisReply *r = answer;
	(void)ac;
	t->asking = false;
	if (r)
		hw_redis_link_got(&t->link);
	bool fits = r && r->type == REDIS_REPLY_ARRAY && r->elements == t->n_page;
	for (size_t i = 0; i < t->n_page; i++) {
		if (fits)
			notify_one(t, t->page[i], value_of(t, r->element[i]));
		else
			free(t->page[i]);
	}
	t->n_page = 0;
	if (fits)
		go_on(t);
}

static bool ask_values(struct hw_submitters *t)
{
	char keys[PAGE][HW_TASKS_KEY_MAX], id[HW_TASK_TEXT + 1], name[64];
	const char *argv[1 + PAGE] = {"MGET"};
	size_t len[1 + PAGE] = {4};
	for (size_t i = 0; i < t->n_page; i++) {
		hw_task_id_text(&t->page[i]->task, id);
		snprintf(name, sizeof(name), "value:%s", id);
		argv[1 + i] = hw_tasks_store_key(t->app->store, name, keys[i]);
		len[1 + i] = strlen(keys[i]);
	}
	return hw_redis_link_command(&t->link, on_values, t, (int)(1 + t->n_page), argv, len) == 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static struct hw_text put(char **to, struct hw_text from)
{
	struct hw_text out = {*to, from.len};
	if (from.len)
		memcpy(*to, from.at, from.len);
	(*to)[from.len] = '\0';
	*to += from.len + 1;
	return out;
}

/* Whether a notice of the transition is published to the sender. Returns false for the first ack, because the instance
 * that has passed the submission to Redis publishes that notice. */
static bool is_for_sender(const struct hw_task_transition *e)
{
	return e->state >= HW_TASK_ACKED && !e->watched && e->sender.len && e->msg_id.len &&
	       !hw_tasks_is_local(e->sender);
}

/* Returns false if there is no memory. */
static bool take_entry(struct hw_submitters *t, const struct hw_task_transition *e)
{
	struct notice *w = malloc(sizeof(*w) + e->receiver.len + e->sender.len + e->msg_id.len + e->why.len + 4);
	if (!w)
		return false;
	char *to = w->text;
	*w = (struct notice){
		.owner = t, .id = e->id, .task = e->task, .state = e->state, .late = e->late, .time_ms = e->time_ms};
	w->receiver = put(&to, e->receiver);
	w->sender = put(&to, e->sender);
	w->msg_id = put(&to, e->msg_id);
	w->why = put(&to, e->why);
	t->page[t->n_page++] = w;
	return true;
}

static void on_entries(void *arg, redisReply *const *entries, size_t n, enum hw_stream_delivery delivery)
{
	struct hw_submitters *t = arg;
	struct hw_task_transition e;
	struct hw_stream_id id;
	int64_t now_ms = hw_tasks_store_now_ms(t->app->store);
	for (size_t i = 0; i < n && t->n_page < PAGE; i++) {
		const redisReply *one = entries[i];
		bool whole = hw_task_transition_read(one, now_ms, &e);
		if (!whole && hw_stream_entry_fields(one))
			hw_tasks_unusable(t->app, HW_UNUSABLE_EVENT, 1,
			                  "entries of %sevents that are not transitions of tasks were skipped",
			                  t->app->conf->key_prefix);
		if (whole && delivery == HW_STREAM_FRESH && !e.late)
			(e.watched ? t->app->counts.watched : t->app->counts.ended)[e.state]++;
		if (whole && is_for_sender(&e)) {
			/* if there is no memory, the entry stays pending, and is read again later */
			(void)take_entry(t, &e);
			continue;
		}
		/* There is nothing to publish, or the entry was trimmed and only its id is left. */
		if (hw_stream_entry_id(one, &id))
			acknowledge(t, id);
	}
}

static void on_idle(void *arg)
{
	go_on(arg);
}

static void on_refused(void *arg, const char *error)
{
	struct hw_submitters *t = arg;
	hw_tasks_store_trouble(t->app->store, error);
}

static const struct hw_stream_group_ops group_ops = {on_entries, on_idle, on_refused};

static void go_on(struct hw_submitters *t)
{
	struct hw_tasks_app *a = t->app;
	if (t->asking || !t->ready || a->life.stopping || !hw_tasks_store_is_up(a->store) ||
	    !hw_tasks_broker_publishes(a->broker) || t->out >= OUT_MAX)
		return;
	if (t->n_page == 0) {
		hw_stream_group_read(&t->group);
		return;
	}
	t->asking = ask_values(t);
	if (!t->asking)
		hw_redis_link_fail(&t->link, "out of memory");
}

bool hw_submitters_is_idle(const struct hw_submitters *t)
{
	return t->acks.argc == 0 && t->acking == 0;
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

void hw_submitters_up(struct hw_submitters *t)
{
	if (t->ready)
		hw_stream_group_up(&t->group);
	go_on(t);
}

void hw_submitters_tick(struct hw_submitters *t)
{
	hw_redis_link_tick(&t->link);
	hw_submitters_flush(t);
	go_on(t);
}

static void on_ready(void *arg)
{
	struct hw_submitters *t = arg;
	t->ready = true;
	hw_redis_link_settled(&t->link);
	hw_submitters_up(t);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_submitters *t = arg;
	(void)why; /* the store logs it */
	t->ready = t->asking = false;
	hw_stream_group_down(&t->group);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

struct hw_submitters *hw_submitters_new(struct hw_tasks_app *app)
{
	struct hw_submitters *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->app = app;
	hw_tasks_store_key(app->store, "events", t->events);
	hw_stream_group_init(
		&t->group,
		&(struct hw_stream_group_conf){&t->link, t->events, GROUP, app->conf->node_id, PAGE, IDLE_MS},
		&group_ops, t);
	const struct hw_redis_link_conf conf = {.at = hw_redis_address_of(&app->conf->redis, app->life.redis_password),
	                                        .seed = (uint64_t)(uintptr_t)t | 1};
	if (hw_redis_link_init(&t->link, app->loop.base, &conf, &link_ops, t) == 0)
		return t;
	free(t);
	return NULL;
}

void hw_submitters_free(struct hw_submitters *t)
{
	if (!t)
		return;
	t->ready = false;
	hw_redis_link_fini(&t->link);
	for (size_t i = 0; i < t->n_page; i++)
		free(t->page[i]);
	free(t);
}
