/* SPDX-License-Identifier: MIT */
/*
 * See stream_reader.h. One connection, on which XREAD waits. Cost: a round trip for what has come meanwhile.
 *
 * Of device:events only what comes online matters here: those receivers' tasks are made due, and the place behind them
 * is kept in task:at by the same call.
 */
#include "tasks/stream_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/bounds.h"
#include "heartwheel/topic.h"
#include "link/link.h"
#include "link/trouble.h"
#include "tasks/app.h"
#include "tasks/message.h"

#define COUNT      "500"
#define WAIT_MS    "1000" /* far below HW_LINK_SILENCE_MS */
#define ID_MAX     48
#define KEY_MAX    160
#define WORDS_MAX  12
#define LOOK_EVERY 5 /* answers without an entry, until it is asked whether the stream is still the one it was */

struct hw_stream_reader {
	struct hw_tasks_app *app;
	struct hw_redis_link link;
	bool ready, wanted; /* the connection is there; the store is up */
	bool asking;        /* an answer is awaited */
	bool begun;         /* the places are known */
	bool full;          /* device:events has the greatest id */
	unsigned n_empty;   /* answers without an entry, in a row */
	char devices[KEY_MAX];
	char device_at[ID_MAX], task_at[ID_MAX];
	struct hw_stream_hook *hooks, *next; /* next: the one that is told next, while they are */
};

static void go_on(struct hw_stream_reader *t);

/* --- entries ------------------------------------------------------------------------------------------------------ */

static struct hw_text text_of(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING ? (struct hw_text){r->str, r->len} : (struct hw_text){"", 0};
}

/* An entry: its id, and its fields' names and values. */
bool hw_is_stream_entry(const redisReply *e)
{
	return e->type == REDIS_REPLY_ARRAY && e->elements == 2 && e->element[0]->type == REDIS_REPLY_STRING &&
	       e->element[0]->len < ID_MAX && e->element[1]->type == REDIS_REPLY_ARRAY;
}

struct field {
	const char *name;
	struct hw_text *to;
};

static void read_fields(const redisReply *entry, const struct field *fields, size_t n)
{
	const redisReply *all = entry->element[1];
	for (size_t i = 0; i + 1 < all->elements; i += 2)
		for (size_t k = 0; k < n; k++)
			if (all->element[i]->type == REDIS_REPLY_STRING &&
			    strcmp(all->element[i]->str, fields[k].name) == 0)
				*fields[k].to = text_of(all->element[i + 1]);
}

/* A decimal number from 0 on; -1: it is none. */
static int64_t number_of(struct hw_text t)
{
	int64_t n = 0;
	if (t.len == 0 || t.len > 18)
		return -1;
	for (size_t k = 0; k < t.len; k++) {
		if (t.at[k] < '0' || t.at[k] > '9')
			return -1;
		n = 10 * n + (t.at[k] - '0');
	}
	return n;
}

/* `ms`, or what stands for it: the entry's own time, which Redis' clock made, or now. */
static int64_t time_of(const redisReply *entry, int64_t ms, int64_t now_ms)
{
	struct hw_place at;
	if (hw_bounds_time(ms, now_ms))
		return ms;
	bool placed = hw_place_read(&at, entry->element[0]->str, entry->element[0]->len) && at.ms <= INT64_MAX &&
	              hw_bounds_time((int64_t)at.ms, now_ms);
	return placed ? (int64_t)at.ms : now_ms;
}

bool hw_task_transition_read(const redisReply *entry, int64_t now_ms, struct hw_task_transition *out)
{
	struct hw_text none = {"", 0}, task = none, state = none, time = none, watched = none, waited = none;
	if (!hw_is_stream_entry(entry))
		return false;
	*out = (struct hw_task_transition){entry->element[0]->str, .receiver = none, .sender = none,
	                                   .msg_id = none,         .why = none,      .node = none,
	                                   .action = none};
	const struct field fields[] = {
		{"task", &task},       {"receiver", &out->receiver}, {"sender", &out->sender}, {"msg_id", &out->msg_id},
		{"state", &state},     {"why", &out->why},           {"time_ms", &time},       {"node", &out->node},
		{"watched", &watched}, {"action", &out->action},     {"waited_ms", &waited}};
	read_fields(entry, fields, sizeof(fields) / sizeof(*fields));
	out->state = hw_task_state_of(state.at, state.len);
	out->late = out->why.len == 4 && memcmp(out->why.at, HW_TASK_WHY_LATE, 4) == 0;
	out->watched = watched.len > 0;
	out->time_ms = time_of(entry, number_of(time), now_ms);
	out->waited_ms = number_of(waited) > 0 ? number_of(waited) : 0;
	if (!hw_task_name_is_valid(out->receiver))
		out->receiver = none;
	return hw_task_id_parse(&out->task, task.at, task.len) && out->state != HW_TASK_STATES &&
	       (out->sender.len == 0 || hw_task_name_is_valid(out->sender) || hw_tasks_is_local(out->sender)) &&
	       (out->msg_id.len == 0 || hw_task_msg_id_is_valid(out->msg_id));
}

static bool is_word(struct hw_text t, const char *word)
{
	return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
}

bool hw_device_transition_read(const redisReply *entry, int64_t now_ms, struct hw_device_transition *out)
{
	struct hw_text none = {"", 0}, time = none, seen = none;
	if (!hw_is_stream_entry(entry))
		return false;
	*out = (struct hw_device_transition){entry->element[0]->str, .device = none, .state = none, .reason = none,
	                                     .group = none,          .node = none,   .seq = none};
	const struct field fields[] = {{"id", &out->device},   {"state", &out->state}, {"reason", &out->reason},
	                               {"group", &out->group}, {"node", &out->node},   {"seq", &out->seq},
	                               {"time_ms", &time},     {"last_seen_ms", &seen}};
	read_fields(entry, fields, sizeof(fields) / sizeof(*fields));
	out->time_ms = time_of(entry, number_of(time), now_ms);
	out->last_seen_ms = hw_bounds_time(number_of(seen), now_ms) ? number_of(seen) : out->time_ms;
	bool is_state =
		is_word(out->state, "online") || is_word(out->state, "offline") || is_word(out->state, "forgotten");
	return is_state && hw_id_valid(out->device.at, out->device.len) &&
	       (out->seq.len == 0 || hw_bounds_time(number_of(out->seq), now_ms));
}

/* --- hooks -------------------------------------------------------------------------------------------------------- */

void hw_stream_reader_join(struct hw_stream_reader *t, struct hw_stream_hook *h)
{
	h->next = t->hooks;
	t->hooks = h;
}

void hw_stream_reader_leave(struct hw_stream_reader *t, struct hw_stream_hook *h)
{
	struct hw_stream_hook **at = &t->hooks;
	if (t->next == h)
		t->next = h->next;
	while (*at && *at != h)
		at = &(*at)->next;
	if (*at)
		*at = h->next;
}

/* Tells each hook: of a task, of a device, or, both NULL, that reading begins. */
static void tell(struct hw_stream_reader *t, const struct hw_task_transition *task,
                 const struct hw_device_transition *device)
{
	for (struct hw_stream_hook *h = t->hooks; h; h = t->next) {
		t->next = h->next;
		if (task && h->on_task)
			h->on_task(h->arg, task);
		else if (device && h->on_device)
			h->on_device(h->arg, device);
		else if (!task && !device && h->on_up)
			h->on_up(h->arg);
	}
}

/* --- what was read ------------------------------------------------------------------------------------------------ */

static bool is_online(const struct hw_stream_reader *t, const struct hw_device_transition *d, struct hw_text *receiver)
{
	const char *prefix = t->app->conf->id_prefix;
	size_t len = strlen(prefix);
	if (d->state.len != 6 || memcmp(d->state.at, "online", 6) != 0 || d->device.len <= len ||
	    memcmp(d->device.at, prefix, len) != 0)
		return false;
	*receiver = (struct hw_text){d->device.at + len, d->device.len - len};
	return true;
}

/* The id behind the next HW_TASK_CALL_ITEMS that came online, from entry `i` on; all that is left, if there are fewer.
 */
static struct hw_text place_from(const struct hw_stream_reader *t, const redisReply *entries, size_t i, int64_t now_ms)
{
	struct hw_device_transition d;
	struct hw_text receiver, place = {"", 0};
	for (size_t n = 0; i < entries->elements; i++) {
		if (!hw_device_transition_read(entries->element[i], now_ms, &d))
			continue;
		if (is_online(t, &d, &receiver) && n++ == HW_TASK_CALL_ITEMS)
			break;
		place = (struct hw_text){d.id, strlen(d.id)};
	}
	return place;
}

/* Whether all that came online was handed on. */
static bool wake_receivers(struct hw_stream_reader *t, const redisReply *entries, int64_t now_ms)
{
	struct hw_device_transition d;
	struct hw_text receiver;
	size_t n = 0;
	for (size_t i = 0; i < entries->elements; i++) {
		if (!hw_device_transition_read(entries->element[i], now_ms, &d) || !is_online(t, &d, &receiver))
			continue;
		struct hw_text place = {"", 0};
		if (n++ % HW_TASK_CALL_ITEMS == 0)
			place = place_from(t, entries, i, now_ms);
		if (hw_dispatcher_online(t->app->dispatcher, receiver, place) != 0)
			return false;
	}
	return true;
}

static void set_place(char place[ID_MAX], const redisReply *entries)
{
	const redisReply *last = entries->elements ? entries->element[entries->elements - 1] : NULL;
	if (last && hw_is_stream_entry(last))
		snprintf(place, ID_MAX, "%s", last->element[0]->str);
}

/* False: to be read again, a little later. */
static bool take_devices(struct hw_stream_reader *t, const redisReply *entries)
{
	struct hw_device_transition d;
	int64_t now_ms = hw_tasks_store_now_ms(t->app->store);
	uint64_t unusable = 0;
	if (!wake_receivers(t, entries, now_ms))
		return false;
	for (size_t i = 0; i < entries->elements; i++)
		if (hw_device_transition_read(entries->element[i], now_ms, &d))
			tell(t, NULL, &d);
		else
			unusable += hw_is_stream_entry(entries->element[i]);
	hw_tasks_unusable(t->app, HW_UNUSABLE_EVENT, unusable, "entries of %s are no transitions, and are skipped",
	                  t->devices);
	set_place(t->device_at, entries);
	return true;
}

static void take_tasks(struct hw_stream_reader *t, const redisReply *entries)
{
	struct hw_task_transition task;
	for (size_t i = 0; i < entries->elements; i++)
		if (hw_task_transition_read(entries->element[i], hw_tasks_store_now_ms(t->app->store), &task))
			tell(t, &task, NULL);
	set_place(t->task_at, entries);
}

static bool take(struct hw_stream_reader *t, const redisReply *reply)
{
	bool whole = true;
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
		const redisReply *stream = reply->element[i];
		if (stream->type != REDIS_REPLY_ARRAY || stream->elements != 2 ||
		    stream->element[0]->type != REDIS_REPLY_STRING || stream->element[1]->type != REDIS_REPLY_ARRAY)
			continue;
		if (strcmp(stream->element[0]->str, t->devices) == 0)
			whole = take_devices(t, stream->element[1]);
		else
			take_tasks(t, stream->element[1]);
	}
	return whole;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static bool ask(struct hw_stream_reader *t, redisCallbackFn *fn, const char *const *words)
{
	const char *argv[WORDS_MAX];
	size_t len[WORDS_MAX];
	int n = 0;
	for (; n < WORDS_MAX && words[n]; n++) {
		argv[n] = words[n];
		len[n] = strlen(words[n]);
	}
	return hw_redis_link_command(&t->link, fn, t, n, argv, len) == 0;
}

/* Whether the answer is one; what is wrong is told, and tried again by the tick. */
static bool is_answer(struct hw_stream_reader *t, const redisReply *reply)
{
	if (!reply)
		return false;
	hw_redis_link_got(&t->link);
	if (reply->type == REDIS_REPLY_ERROR)
		hw_tasks_store_trouble(t->app->store, reply->str);
	return reply->type != REDIS_REPLY_ERROR;
}

/* The newest entry's id of a stream; without any, its beginning. */
static void newest(const redisReply *r, char place[ID_MAX])
{
	snprintf(place, ID_MAX, "0-0");
	if (r->type == REDIS_REPLY_ARRAY && r->elements == 1)
		set_place(place, r);
}

/* Whether a place that is kept in Redis is one of the stream, or of what it was: its end is not before it. */
static bool is_place(const char *text, size_t len, const char *end)
{
	struct hw_place at, last;
	return hw_place_read(&at, text, len) && hw_place_read(&last, end, strlen(end)) && hw_place_cmp(at, last) <= 0;
}

/* Another program wrote task:at, or the stream was deleted or put back. What was between is not known: tasks that are
 * held are looked at every 10 minutes. */
static void replace_place(struct hw_stream_reader *t)
{
	char at[HW_TASKS_KEY_MAX];
	hw_tasks_store_key(t->app->store, "at", at);
	hw_tasks_unusable(t->app, HW_UNUSABLE_OFFSET, 1, "%s is no place in %s: reading goes on at %s", at, t->devices,
	                  t->device_at);
	(void)hw_tasks_store_ask(t->app->store, NULL, NULL, (const char *[]){"SET", at, t->device_at, NULL});
}

/* Whether a command of a transaction failed, but for a key that holds something else. */
static bool is_refused(struct hw_stream_reader *t, const redisReply *r)
{
	if (r->type != REDIS_REPLY_ERROR || hw_trouble_of(r->str) == HW_TROUBLE_WRONGTYPE)
		return false;
	hw_tasks_store_trouble(t->app->store, r->str);
	return true;
}

static void on_read(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_stream_reader *t = arg;
	(void)ac;
	const redisReply *reply = answer;
	t->asking = false;
	if (!is_answer(t, reply))
		return;
	t->n_empty = reply->type == REDIS_REPLY_NIL ? t->n_empty + 1 : 0;
	if (t->wanted && t->begun && take(t, reply))
		go_on(t);
}

struct hw_place hw_stream_reader_offset(const struct hw_stream_reader *t)
{
	struct hw_place place = {0, 0};
	(void)hw_place_read(&place, t->device_at, strlen(t->device_at));
	return place;
}

static bool wants_tasks(const struct hw_stream_reader *t)
{
	for (const struct hw_stream_hook *h = t->hooks; h; h = h->next)
		if (h->on_task)
			return true;
	return false;
}

/* The last entry of device:events, asked for while nothing comes: where the stream was deleted or put back, nothing
 * would come until its ids have passed the place. */
static void on_end(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_stream_reader *t = arg;
	const redisReply *r = answer;
	char end[ID_MAX];
	(void)ac;
	t->asking = false;
	if (!is_answer(t, r) || !t->wanted || !t->begun || r->type != REDIS_REPLY_ARRAY)
		return;
	newest(r, end);
	if (!is_place(t->device_at, strlen(t->device_at), end)) {
		snprintf(t->device_at, ID_MAX, "0-0");
		replace_place(t);
		tell(t, NULL, NULL);
	}
	go_on(t);
}

static bool read_on(struct hw_stream_reader *t)
{
	char tasks[HW_TASKS_KEY_MAX];
	if (t->n_empty >= LOOK_EVERY) {
		t->n_empty = 0;
		return ask(t, on_end, (const char *[]){"XREVRANGE", t->devices, "+", "-", "COUNT", "1", NULL});
	}
	hw_tasks_store_key(t->app->store, "events", tasks);
	if (wants_tasks(t))
		return ask(t, on_read,
		           (const char *[]){"XREAD", "COUNT", COUNT, "BLOCK", WAIT_MS, "STREAMS", t->devices, tasks,
		                            t->device_at, t->task_at, NULL});
	*t->task_at = '\0';
	return ask(
		t, on_read,
		(const char *[]){"XREAD", "COUNT", COUNT, "BLOCK", WAIT_MS, "STREAMS", t->devices, t->device_at, NULL});
}

/* The first who reads: what is lost on the way from here on is read again from here. */
static void keep_place(struct hw_stream_reader *t)
{
	char at[HW_TASKS_KEY_MAX];
	hw_tasks_store_key(t->app->store, "at", at);
	(void)hw_tasks_store_ask(t->app->store, NULL, NULL, (const char *[]){"SET", at, t->device_at, "NX", NULL});
}

/* EXEC of GET task:at, and of the last entries of both. */
static void on_places(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_stream_reader *t = arg;
	const redisReply *r = answer;
	(void)ac;
	t->asking = false;
	if (!is_answer(t, r) || !t->wanted || r->type != REDIS_REPLY_ARRAY || r->elements != 3)
		return;
	const redisReply *at = r->element[0];
	if (r->element[1]->type != REDIS_REPLY_ARRAY || is_refused(t, at))
		return;
	newest(r->element[1], t->device_at);
	newest(r->element[2], t->task_at);
	if (at->type == REDIS_REPLY_NIL)
		keep_place(t);
	else if (at->type == REDIS_REPLY_STRING && is_place(at->str, at->len, t->device_at))
		snprintf(t->device_at, ID_MAX, "%s", at->str);
	else
		replace_place(t);
	bool first = !t->begun;
	t->n_empty = 0;
	t->begun = true;
	if (first)
		tell(t, NULL, NULL);
	go_on(t);
}

static void on_aside(redisAsyncContext *ac, void *answer, void *arg)
{
	(void)ac;
	(void)is_answer(arg, answer);
}

static bool ask_places(struct hw_stream_reader *t)
{
	char at[HW_TASKS_KEY_MAX], tasks[HW_TASKS_KEY_MAX];
	hw_tasks_store_key(t->app->store, "at", at);
	hw_tasks_store_key(t->app->store, "events", tasks);
	return ask(t, on_aside, (const char *[]){"MULTI", NULL}) &&
	       ask(t, on_aside, (const char *[]){"GET", at, NULL}) &&
	       ask(t, on_aside, (const char *[]){"XREVRANGE", t->devices, "+", "-", "COUNT", "1", NULL}) &&
	       ask(t, on_aside, (const char *[]){"XREVRANGE", tasks, "+", "-", "COUNT", "1", NULL}) &&
	       ask(t, on_places, (const char *[]){"EXEC", NULL});
}

/* Redis appends nothing to a stream that has the greatest id. */
static void look_whether_full(struct hw_stream_reader *t)
{
	bool full = hw_place_cmp(hw_stream_reader_offset(t), HW_PLACE_GREATEST) == 0;
	char why[HW_TOLD_WHY];
	if (!t->begun || full == t->full)
		return;
	t->full = full;
	if (full)
		hw_log(t->app->log, HW_LOG_ERROR, "Redis: %s", hw_stream_reader_why(t, why));
	else
		hw_log(t->app->log, HW_LOG_NOTICE, "Redis: %s takes entries again", t->devices);
}

const char *hw_stream_reader_why(const struct hw_stream_reader *t, char why[HW_TOLD_WHY])
{
	if (!t->full)
		return NULL;
	snprintf(why, HW_TOLD_WHY,
	         "%s has the greatest possible id, so it takes no entry, and wills and followers get no transition: "
	         "save what you need of it and delete its key",
	         t->devices);
	return why;
}

static void go_on(struct hw_stream_reader *t)
{
	look_whether_full(t);
	if (t->asking || !t->ready || !t->wanted)
		return;
	bool places = !t->begun || (wants_tasks(t) && !*t->task_at);
	t->asking = places ? ask_places(t) : read_on(t);
	if (!t->asking)
		hw_redis_link_fail(&t->link, "out of memory");
}

/* --- life --------------------------------------------------------------------------------------------------------- */

void hw_stream_reader_up(struct hw_stream_reader *t)
{
	t->wanted = true;
	go_on(t);
}

void hw_stream_reader_down(struct hw_stream_reader *t)
{
	t->wanted = t->begun = false;
}

void hw_stream_reader_again(struct hw_stream_reader *t)
{
	t->begun = false;
	go_on(t);
}

void hw_stream_reader_tick(struct hw_stream_reader *t)
{
	hw_redis_link_tick(&t->link);
	go_on(t);
}

static void on_ready(void *arg)
{
	struct hw_stream_reader *t = arg;
	t->ready = true;
	hw_redis_link_settled(&t->link);
	go_on(t);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_stream_reader *t = arg;
	(void)why; /* the store says it */
	t->ready = t->begun = t->asking = false;
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

struct hw_stream_reader *hw_stream_reader_new(struct hw_tasks_app *app)
{
	struct hw_stream_reader *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->app = app;
	snprintf(t->devices, sizeof(t->devices), "%sevents", app->conf->redis.key_prefix);
	const struct hw_redis_link_conf conf = {.at = hw_redis_address_of(&app->conf->redis, app->redis_password),
	                                        .seed = (uint64_t)(uintptr_t)t | 1};
	if (hw_redis_link_init(&t->link, app->loop.base, &conf, &link_ops, t) == 0)
		return t;
	free(t);
	return NULL;
}

void hw_stream_reader_free(struct hw_stream_reader *t)
{
	if (!t)
		return;
	t->wanted = false;
	hw_redis_link_fini(&t->link);
	free(t);
}
