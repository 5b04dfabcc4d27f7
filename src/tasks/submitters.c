/* SPDX-License-Identifier: MIT */
/*
 * See submitters.h. One connection, on which XREADGROUP waits; acknowledgements go over the store's. What was taken and
 * is not acknowledged yet is bounded by OUT_MAX: then nothing more is read until the broker has taken some.
 *
 * What this instance has taken before and not told (a crash, a lost broker) is read again first. What another one has
 * taken and left is taken over after IDLE_MS.
 */
#include "tasks/submitters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "link/clock.h"
#include "link/link.h"
#include "link/trouble.h"
#include "tasks/app.h"
#include "tasks/ends.h"
#include "tasks/place.h"

#define GROUP        "tell"
#define PAGE         100
#define PAGE_TEXT    "100"
#define WAIT_MS      "1000"
#define IDLE_TEXT    "15000"
#define TAKE_OVER_MS 5000
#define OUT_MAX      1000
#define ACKS         128
#define ID_MAX       48

/* An entry that is to be told. */
struct telling {
	struct hw_submitters *tell;
	char id[ID_MAX];
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
	bool ready, grouped, asking;
	bool own;       /* what was taken before is read first */
	bool asked_own; /* and was asked for */
	char own_at[ID_MAX];
	struct hw_place ends_at; /* the newest entry of which people were told, if it came to nothing */
	int64_t took_over_ms;    /* monotonic */
	size_t out;              /* on their way to the broker */
	struct telling *page[PAGE];
	size_t n_page;
	char acks[ACKS][ID_MAX];
	size_t n_acks;
	unsigned acking; /* commands without an answer yet */
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
	char events[HW_TASKS_KEY_MAX];
	const char *argv[3 + ACKS] = {"XACK", hw_tasks_store_key(t->app->store, "events", events), GROUP};
	size_t len[3 + ACKS] = {4, strlen(events), strlen(GROUP)};
	if (t->n_acks == 0)
		return;
	for (size_t i = 0; i < t->n_acks; i++) {
		argv[3 + i] = t->acks[i];
		len[3 + i] = strlen(t->acks[i]);
	}
	/* One that gets lost is told again: at least once. */
	if (hw_tasks_store_command(t->app->store, on_acked, t, (int)(3 + t->n_acks), argv, len) == 0)
		t->acking++;
	t->n_acks = 0;
}

static void acknowledge(struct hw_submitters *t, const char *id)
{
	snprintf(t->acks[t->n_acks++], ID_MAX, "%s", id);
	if (t->n_acks == ACKS)
		hw_submitters_flush(t);
}

/* --- telling ------------------------------------------------------------------------------------------------------ */

static void on_put(void *arg, enum hw_put what, const char *text)
{
	struct telling *e = arg;
	struct hw_submitters *t = e->tell;
	t->out--;
	if (what == HW_PUT_REFUSED)
		hw_log_limited(t->app->log, HW_TASKS_LIMIT_TELL, HW_LOG_WARNING,
		               "a submitter cannot be told what became of its task: %.200s", text);
	if (what != HW_PUT_LOST)
		acknowledge(t, e->id);
	t->app->counts.told += what == HW_PUT_TAKEN || what == HW_PUT_NOBODY;
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

/* A value or an error was JSON when it came in: another program may have written there since. */
static struct hw_text value_of(struct hw_submitters *t, const redisReply *r)
{
	struct hw_text none = {"", 0};
	if (!r || r->type != REDIS_REPLY_STRING || r->len == 0)
		return none;
	if (r->len <= HW_TASK_BYTES_MAX && hw_json_valid(r->str, r->len))
		return (struct hw_text){r->str, r->len};
	hw_tasks_unusable(t->app, HW_UNUSABLE_RECORD, 1,
	                  "answers to tasks under %svalue: are no JSON, and are left out", t->app->conf->key_prefix);
	return none;
}

static void tell_one(struct hw_submitters *t, struct telling *e, struct hw_text value)
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
	free(e); /* it stays taken, and is read again */
}

/* MGET of their values. */
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
			tell_one(t, t->page[i], value_of(t, r->element[i]));
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

/* The submitter hears of the beginning when Redis has the task, from who asked Redis. */
static bool is_told(const struct hw_task_transition *e)
{
	return e->state >= HW_TASK_ACKED && !e->watched && e->sender.len && e->msg_id.len &&
	       !hw_tasks_is_local(e->sender);
}

/* False without memory. */
static bool take_entry(struct hw_submitters *t, const struct hw_task_transition *e)
{
	struct telling *w = malloc(sizeof(*w) + e->receiver.len + e->sender.len + e->msg_id.len + e->why.len + 4);
	if (!w)
		return false;
	char *to = w->text;
	*w = (struct telling){.tell = t, .task = e->task, .state = e->state, .late = e->late, .time_ms = e->time_ms};
	snprintf(w->id, ID_MAX, "%s", e->id);
	w->receiver = put(&to, e->receiver);
	w->sender = put(&to, e->sender);
	w->msg_id = put(&to, e->msg_id);
	w->why = put(&to, e->why);
	t->page[t->n_page++] = w;
	return true;
}

/* Who has read entries before: nobody; this instance, which may not have got the answer; one that has died. */
enum reading { FRESH, OWN, TAKEN_OVER };

/*
 * One entry is read by one instance, so people are told of it once: by whom it was given to first, whatever becomes of
 * that one's connections meanwhile, and anew by who takes over. An entry that this instance reads again is behind all
 * that it was told of if its answer was lost, and none of them else.
 */
static void tell_people(struct hw_submitters *t, const struct hw_task_transition *e, enum reading reading)
{
	struct hw_place at;
	if (!hw_tasks_ends_tell(e) || !hw_place_read(&at, e->id, strlen(e->id)))
		return;
	bool behind = hw_place_cmp(at, t->ends_at) > 0;
	if (reading == OWN && !behind)
		return;
	if (behind) /* also of what was taken over: what it is given later lies behind that */
		t->ends_at = at;
	struct hw_tasks_ends *ends = hw_notifier_gathers(t->app->notifier);
	if (!ends)
		return;
	hw_tasks_ends_add(ends, e);
	hw_notifier_gathered(t->app->notifier);
}

static void take_entries(struct hw_submitters *t, const redisReply *entries, enum reading reading)
{
	struct hw_task_transition e;
	int64_t now_ms = hw_tasks_store_now_ms(t->app->store);
	for (size_t i = 0; i < entries->elements && t->n_page < PAGE; i++) {
		const redisReply *one = entries->element[i];
		bool whole = hw_task_transition_read(one, now_ms, &e);
		if (!whole && hw_is_stream_entry(one))
			hw_tasks_unusable(t->app, HW_UNUSABLE_EVENT, 1,
			                  "entries of %sevents are no transitions of tasks, and are skipped",
			                  t->app->conf->key_prefix);
		if (whole && reading == FRESH && !e.late)
			(e.watched ? t->app->counts.watched : t->app->counts.ended)[e.state]++;
		if (whole)
			tell_people(t, &e, reading);
		if (whole && is_told(&e)) {
			(void)take_entry(t, &e); /* without memory it stays taken, and is read again */
			continue;
		}
		/* Nothing to tell; or it was trimmed, and only its id is left. */
		if (one->type == REDIS_REPLY_ARRAY && one->elements == 2 &&
		    one->element[0]->type == REDIS_REPLY_STRING && one->element[0]->len < ID_MAX)
			acknowledge(t, one->element[0]->str);
	}
}

/* Whether the answer is one. */
static bool is_answer(struct hw_submitters *t, const redisReply *r)
{
	t->asking = false;
	if (!r)
		return false;
	hw_redis_link_got(&t->link);
	if (r->type != REDIS_REPLY_ERROR)
		return true;
	t->grouped = false; /* NOGROUP, UNBLOCKED: where Redis came back empty */
	if (strncmp(r->str, "NOGROUP", 7) != 0 && strncmp(r->str, "BUSYGROUP", 9) != 0 &&
	    strncmp(r->str, "UNBLOCKED", 9) != 0)
		hw_tasks_store_trouble(t->app->store, r->str);
	return false;
}

static void on_read(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_submitters *t = arg;
	const redisReply *r = answer;
	bool own = t->asked_own;
	(void)ac;
	if (!is_answer(t, r))
		return;
	const redisReply *stream = r->type == REDIS_REPLY_ARRAY && r->elements == 1 ? r->element[0] : NULL;
	const redisReply *entries =
		stream && stream->type == REDIS_REPLY_ARRAY && stream->elements == 2 ? stream->element[1] : NULL;
	size_t n = entries && entries->type == REDIS_REPLY_ARRAY ? entries->elements : 0;
	if (n > 0) {
		const redisReply *last = entries->element[n - 1];
		take_entries(t, entries, own ? OWN : FRESH);
		if (own && last->type == REDIS_REPLY_ARRAY && last->elements == 2 &&
		    last->element[0]->type == REDIS_REPLY_STRING)
			snprintf(t->own_at, ID_MAX, "%.47s", last->element[0]->str);
	} else if (own) {
		t->own = false;
	}
	go_on(t);
}

/* [next, entries, …] */
static void on_taken_over(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_submitters *t = arg;
	const redisReply *r = answer;
	(void)ac;
	if (!is_answer(t, r))
		return;
	if (r->type == REDIS_REPLY_ARRAY && r->elements >= 2 && r->element[1]->type == REDIS_REPLY_ARRAY)
		take_entries(t, r->element[1], TAKEN_OVER);
	go_on(t);
}

static void on_group(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_submitters *t = arg;
	const redisReply *r = answer;
	(void)ac;
	bool there = r && r->type == REDIS_REPLY_ERROR && strncmp(r->str, "BUSYGROUP", 9) == 0;
	if (!is_answer(t, r) && !there)
		return;
	t->grouped = true;
	go_on(t);
}

static bool ask(struct hw_submitters *t, redisCallbackFn *fn, const char *const *words)
{
	const char *argv[12];
	size_t len[12];
	int n = 0;
	for (; n < 12 && words[n]; n++) {
		argv[n] = words[n];
		len[n] = strlen(words[n]);
	}
	return hw_redis_link_command(&t->link, fn, t, n, argv, len) == 0;
}

static bool read_more(struct hw_submitters *t)
{
	char events[HW_TASKS_KEY_MAX];
	const char *node = t->app->conf->node_id;
	int64_t now = hw_clock_mono().ns / HW_NS_PER_MS;
	hw_tasks_store_key(t->app->store, "events", events);
	if (!t->grouped)
		return ask(t, on_group, (const char *[]){"XGROUP", "CREATE", events, GROUP, "0", "MKSTREAM", NULL});
	if (!t->own && now - t->took_over_ms >= TAKE_OVER_MS) {
		t->took_over_ms = now;
		return ask(t, on_taken_over,
		           (const char *[]){"XAUTOCLAIM", events, GROUP, node, IDLE_TEXT, "0-0", "COUNT", PAGE_TEXT,
		                            NULL});
	}
	t->asked_own = t->own;
	if (t->own)
		return ask(t, on_read,
		           (const char *[]){"XREADGROUP", "GROUP", GROUP, node, "COUNT", PAGE_TEXT, "STREAMS", events,
		                            t->own_at, NULL});
	return ask(t, on_read,
	           (const char *[]){"XREADGROUP", "GROUP", GROUP, node, "COUNT", PAGE_TEXT, "BLOCK", WAIT_MS, "STREAMS",
	                            events, ">", NULL});
}

static void go_on(struct hw_submitters *t)
{
	struct hw_tasks_app *a = t->app;
	if (t->asking || !t->ready || a->stopping || !hw_tasks_store_is_up(a->store) ||
	    !hw_tasks_broker_publishes(a->broker) || t->out >= OUT_MAX)
		return;
	t->asking = t->n_page ? ask_values(t) : read_more(t);
	if (!t->asking)
		hw_redis_link_fail(&t->link, "out of memory");
}

bool hw_submitters_is_idle(const struct hw_submitters *t)
{
	return t->n_acks == 0 && t->acking == 0;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

void hw_submitters_up(struct hw_submitters *t)
{
	t->own = true;
	t->grouped = false;
	snprintf(t->own_at, ID_MAX, "0-0");
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
	(void)why; /* the store says it */
	t->ready = t->asking = false;
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

struct hw_submitters *hw_submitters_new(struct hw_tasks_app *app)
{
	struct hw_submitters *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->app = app;
	const struct hw_redis_link_conf conf = {.at = hw_redis_address_of(&app->conf->redis, app->redis_password),
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
