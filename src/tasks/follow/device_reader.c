/* SPDX-License-Identifier: MIT */
/*
 * See device_reader.h. src/stream/reader.h reads the stream, on a connection of its own.
 *
 * For tasks only the online transitions in device:events matter. One call of a script makes the tasks of several
 * receivers due, and stores the offset after these entries in task:at. After a start, reading continues at that offset.
 */
#include "tasks/follow/device_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/link.h"
#include "link/trouble.h"
#include "stream/commands.h"
#include "stream/reader.h"
#include "tasks/app.h"

#define PAGE    500
#define KEY_MAX 160

struct hw_device_reader {
	struct hw_tasks_app *app;
	struct hw_redis_link link;
	struct hw_stream_reader reader;
	bool ready, wanted; /* the connection is up; the store is up */
	bool asking;        /* the stored offset is requested */
	bool begun;         /* the reader has the offset */
	bool full;          /* device:events has the greatest id */
	char devices[KEY_MAX];
	struct hw_device_hook *hooks;
};

/* --- hooks -------------------------------------------------------------------------------------------------------- */

void hw_device_reader_join(struct hw_device_reader *t, struct hw_device_hook *h)
{
	h->next = t->hooks;
	t->hooks = h;
}

static void report_device(struct hw_device_reader *t, const struct hw_device_transition *d)
{
	for (struct hw_device_hook *h = t->hooks; h; h = h->next)
		if (h->on_device)
			h->on_device(h->arg, d);
}

/* Called when reading begins. */
static void report_up(struct hw_device_reader *t)
{
	for (struct hw_device_hook *h = t->hooks; h; h = h->next)
		if (h->on_up)
			h->on_up(h->arg);
}

/* --- the last possible id ----------------------------------------------------------------------------------------- */

const char *hw_device_reader_why(const struct hw_device_reader *t, char why[HW_DEVICE_READER_WHY])
{
	if (!t->full)
		return NULL;
	snprintf(why, HW_DEVICE_READER_WHY,
	         "%s has the greatest possible id and accepts no entry, so wills and followers get no transition: save "
	         "what you need of it and delete its key",
	         t->devices);
	return why;
}

/* Logs if device:events contains the greatest possible id: Redis then adds no more entries. */
static void note_whether_full(struct hw_device_reader *t)
{
	bool full = hw_stream_id_compare(hw_device_reader_offset(t), HW_STREAM_ID_GREATEST) == 0;
	char why[HW_DEVICE_READER_WHY];
	if (full == t->full)
		return;
	t->full = full;
	if (full)
		hw_log(t->app->log, HW_LOG_ERROR, "Redis: %s", hw_device_reader_why(t, why));
	else
		hw_log(t->app->log, HW_LOG_NOTICE, "Redis: the key %s can be written again", t->devices);
}

struct hw_stream_id hw_device_reader_offset(const struct hw_device_reader *t)
{
	return hw_stream_reader_offset(&t->reader);
}

/* --- entries that were read --------------------------------------------------------------------------------------- */

static bool is_online(const struct hw_device_reader *t, const struct hw_device_transition *d, struct hw_text *receiver)
{
	const char *prefix = t->app->conf->id_prefix;
	size_t len = strlen(prefix);
	if (d->state.len != 6 || memcmp(d->state.at, "online", 6) != 0 || d->device.len <= len ||
	    memcmp(d->device.at, prefix, len) != 0)
		return false;
	*receiver = (struct hw_text){d->device.at + len, d->device.len - len};
	return true;
}

/* Returns the offset after the next HW_TASK_CALL_ITEMS online transitions from entry `i` on. If there are fewer,
 * returns the offset after all entries. */
static struct hw_stream_id offset_after(const struct hw_device_reader *t, const struct hw_stream_page *page, size_t i,
                                        int64_t now_ms)
{
	struct hw_device_transition d;
	struct hw_text receiver;
	struct hw_stream_id offset = {0, 0};
	for (size_t n = 0; i < page->n; i++) {
		if (!hw_device_transition_read(page->entries[i], now_ms, &d))
			continue;
		if (is_online(t, &d, &receiver) && n++ == HW_TASK_CALL_ITEMS)
			break;
		offset = d.id;
	}
	return offset;
}

/* Passes the online transitions to the dispatcher. Returns whether it has accepted all of them. */
static bool wake_receivers(struct hw_device_reader *t, const struct hw_stream_page *page, int64_t now_ms)
{
	struct hw_device_transition d;
	struct hw_text receiver;
	char offset[HW_STREAM_ID_TEXT];
	size_t n = 0;
	for (size_t i = 0; i < page->n; i++) {
		if (!hw_device_transition_read(page->entries[i], now_ms, &d) || !is_online(t, &d, &receiver))
			continue;
		struct hw_text after = {"", 0};
		if (n++ % HW_TASK_CALL_ITEMS == 0) {
			after.at = hw_stream_id_print(offset_after(t, page, i, now_ms), offset);
			after.len = strlen(offset);
		}
		if (hw_dispatcher_online(t->app->dispatcher, receiver, after) != 0)
			return false;
	}
	return true;
}

static bool on_page(void *arg, const struct hw_stream_page *page)
{
	struct hw_device_reader *t = arg;
	struct hw_device_transition d;
	int64_t now_ms = hw_tasks_store_now_ms(t->app->store);
	uint64_t unusable = 0;
	if (!wake_receivers(t, page, now_ms))
		return false;
	for (size_t i = 0; i < page->n; i++)
		if (hw_device_transition_read(page->entries[i], now_ms, &d))
			report_device(t, &d);
		else
			unusable += hw_stream_entry_fields(page->entries[i]) != NULL;
	hw_tasks_unusable(t->app, HW_UNUSABLE_EVENT, unusable, "entries of %s that are not transitions were skipped",
	                  t->devices);
	note_whether_full(t);
	return true;
}

/* --- the offset --------------------------------------------------------------------------------------------------- */

static void keep_offset(struct hw_device_reader *t, struct hw_stream_id offset, const char *only_if)
{
	char at[HW_TASKS_KEY_MAX], text[HW_STREAM_ID_TEXT];
	hw_tasks_store_key(t->app->store, "at", at);
	(void)hw_tasks_store_ask(t->app->store, NULL, NULL,
	                         (const char *[]){"SET", at, hw_stream_id_print(offset, text), only_if, NULL});
}

/* Replaces the stored offset, which cannot be used: another program wrote task:at, or the stream was deleted or
 * restored. Some online transitions may be lost, but held tasks are also checked every 10 minutes. */
static void replace_offset(struct hw_device_reader *t, struct hw_stream_id offset)
{
	char at[HW_TASKS_KEY_MAX], text[HW_STREAM_ID_TEXT];
	hw_tasks_unusable(t->app, HW_UNUSABLE_OFFSET, 1, "%s is not an offset in %s: reading continues at %s",
	                  hw_tasks_store_key(t->app->store, "at", at), t->devices, hw_stream_id_print(offset, text));
	keep_offset(t, offset, NULL);
}

/* Returns the offset at which reading continues after a gap. If the stream was only trimmed, this is its first
 * entry. If the stream ends before the old offset, the stream was deleted or restored, and is read from its start. */
static struct hw_stream_id on_gap(void *arg, struct hw_stream_id offset, struct hw_stream_id end)
{
	struct hw_device_reader *t = arg;
	struct hw_stream_id start = {0, 0};
	if (hw_stream_id_compare(offset, end) <= 0)
		return offset;
	replace_offset(t, start);
	report_up(t);
	return start;
}

static void on_refused(void *arg, const char *error, bool reads)
{
	struct hw_device_reader *t = arg;
	(void)reads;
	hw_tasks_store_trouble(t->app->store, error);
}

static const struct hw_stream_reader_ops reader_ops = {on_page, on_gap, on_refused};

/* Whether the stored offset belongs to this stream: the stream does not end before it. */
static bool is_offset(const redisReply *kept, struct hw_stream_id end, struct hw_stream_id *offset)
{
	return kept->type == REDIS_REPLY_STRING && hw_stream_id_parse_loose(kept->str, kept->len, offset) == 0 &&
	       hw_stream_id_compare(*offset, end) <= 0;
}

/* Whether the reply can be used. Reports an error to the store; the tick then tries again. */
static bool is_answer(struct hw_device_reader *t, const redisReply *reply)
{
	if (!reply)
		return false;
	hw_redis_link_got(&t->link);
	if (reply->type == REDIS_REPLY_ERROR)
		hw_tasks_store_trouble(t->app->store, reply->str);
	return reply->type != REDIS_REPLY_ERROR;
}

/* Whether a command of a transaction failed with an error other than WRONGTYPE. */
static bool is_refused(struct hw_device_reader *t, const redisReply *r)
{
	if (r->type != REDIS_REPLY_ERROR || hw_trouble_of(r->str) == HW_TROUBLE_WRONGTYPE)
		return false;
	hw_tasks_store_trouble(t->app->store, r->str);
	return true;
}

/* The reply of EXEC: task:at, and the last entry. */
static void on_offset(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_device_reader *t = arg;
	const redisReply *r = answer;
	struct hw_stream_id kept;
	(void)ac;
	t->asking = false;
	if (!is_answer(t, r) || !t->wanted || r->type != REDIS_REPLY_ARRAY || r->elements != 2)
		return;
	const redisReply *at = r->element[0];
	if (r->element[1]->type != REDIS_REPLY_ARRAY || is_refused(t, at))
		return;
	struct hw_stream_id offset = hw_stream_newest(r->element[1]);
	if (at->type == REDIS_REPLY_NIL)
		keep_offset(t, offset, "NX"); /* "NX": sets the offset only if Redis has none. If reports about
		                                 receivers are lost, reading starts at this offset again */
	else if (is_offset(at, offset, &kept))
		offset = kept;
	else
		replace_offset(t, offset);
	t->begun = true;
	hw_stream_reader_from(&t->reader, offset);
	note_whether_full(t);
	report_up(t);
}

static void on_aside(redisAsyncContext *ac, void *answer, void *arg)
{
	(void)ac;
	(void)is_answer(arg, answer);
}

static bool ask(struct hw_device_reader *t, redisCallbackFn *fn, int argc, const char **argv)
{
	size_t len[6];
	for (int i = 0; i < argc; i++)
		len[i] = strlen(argv[i]);
	return hw_redis_link_command(&t->link, fn, t, argc, argv, len) == 0;
}

static void begin(struct hw_device_reader *t)
{
	struct hw_stream_command c;
	char at[HW_TASKS_KEY_MAX];
	if (t->asking || t->begun || !t->ready || !t->wanted)
		return;
	hw_tasks_store_key(t->app->store, "at", at);
	hw_stream_range_newest(&c, t->devices, 1);
	t->asking = ask(t, on_aside, 1, (const char *[]){"MULTI"}) &&
	            ask(t, on_aside, 2, (const char *[]){"GET", at}) && ask(t, on_aside, c.argc, c.argv) &&
	            ask(t, on_offset, 1, (const char *[]){"EXEC"});
	if (!t->asking)
		hw_redis_link_fail(&t->link, "out of memory");
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

static void stop(struct hw_device_reader *t)
{
	t->begun = false;
	hw_stream_reader_stop(&t->reader);
}

void hw_device_reader_up(struct hw_device_reader *t)
{
	t->wanted = true;
	begin(t);
}

void hw_device_reader_down(struct hw_device_reader *t)
{
	t->wanted = false;
	stop(t);
}

void hw_device_reader_again(struct hw_device_reader *t)
{
	stop(t);
	begin(t);
}

void hw_device_reader_tick(struct hw_device_reader *t)
{
	hw_redis_link_tick(&t->link);
	hw_stream_reader_tick(&t->reader);
	begin(t);
}

static void on_ready(void *arg)
{
	struct hw_device_reader *t = arg;
	t->ready = true;
	hw_redis_link_settled(&t->link);
	hw_stream_reader_up(&t->reader);
	begin(t);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_device_reader *t = arg;
	(void)why; /* the store logs it */
	t->ready = t->asking = false;
	hw_stream_reader_down(&t->reader);
	stop(t);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

struct hw_device_reader *hw_device_reader_new(struct hw_tasks_app *app)
{
	struct hw_device_reader *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->app = app;
	snprintf(t->devices, sizeof(t->devices), "%sevents", app->conf->redis.key_prefix);
	const struct hw_redis_link_conf conf = {.at = hw_redis_address_of(&app->conf->redis, app->life.redis_password),
	                                        .seed = (uint64_t)(uintptr_t)t | 1};
	if (hw_stream_reader_init(&t->reader, app->loop.base,
	                          &(struct hw_stream_reader_conf){&t->link, t->devices, PAGE, 0}, &reader_ops,
	                          t) == 0 &&
	    hw_redis_link_init(&t->link, app->loop.base, &conf, &link_ops, t) == 0)
		return t;
	hw_stream_reader_fini(&t->reader);
	free(t);
	return NULL;
}

void hw_device_reader_free(struct hw_device_reader *t)
{
	if (!t)
		return;
	t->wanted = false;
	hw_redis_link_fini(&t->link);
	hw_stream_reader_fini(&t->reader);
	free(t);
}
