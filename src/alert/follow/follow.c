/* SPDX-License-Identifier: MIT */
/*
 * See follow.h. A connection of its own waits for a new entry of device:events (XREAD), and then makes the reader of
 * that stream read. All entries are read over the connection of the store. So after a failover, the entries and the
 * committed state come from the same Redis. Without the waiting connection, that stream is read at each tick. Cost when
 * idle: 11 small commands a second.
 */
#include "alert/follow/follow.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/app.h"
#include "alert/follow/fields.h"
#include "alert/follow/watch.h"
#include "alert/state/commit.h"
#include "link/trouble.h"
#include "stream/commands.h"
#include "stream/reader.h"

#define GATHER_MS     20 /* pause between two reads of device:events while entries come: they share a commit */
#define POLL_HEARD_MS 250

struct source {
	struct hw_alert_app *app;
	enum hw_alert_stream which;
	char key[HW_ALERT_KEY_MAX];
	struct hw_stream_reader reader;
	bool paused; /* until the commit under way has ended */
	bool again;  /* the next gap is expected: continue from `from` */
	struct hw_stream_id from;
	uint64_t unread_ms; /* time of the last entry that was read, if the stream has more; 0: everything is read */
	bool read;          /* `done` is valid */
	struct hw_stream_id done;
	char why[HW_TROUBLE_TEXT]; /* why Redis refuses to read the stream; "": it does not */
};

struct hw_alert_follow {
	struct hw_alert_app *app;
	struct source sources[HW_ALERT_STREAMS];
	size_t fresh;              /* entries since the last commit was built */
	struct hw_redis_link link; /* waits for entries of device:events; unused with [store] type = memory */
	bool linked, waits;
	struct event *gather; /* runs for GATHER_MS after entries of device:events were read */
};

const char *hw_alert_stream_name(enum hw_alert_stream s)
{
	static const char *const names[] = {
		[HW_ALERT_EVENTS] = "events", [HW_ALERT_HEARD] = "parent_heard", [HW_ALERT_TASKS] = "tasks"};
	return names[s];
}

const char *hw_alert_stream_key(const struct hw_alert_app *a, enum hw_alert_stream s, char *buf)
{
	const char *prefix = s == HW_ALERT_TASKS ? a->conf->task_prefix : a->conf->redis.key_prefix;
	snprintf(buf, HW_ALERT_KEY_MAX, "%s%s", prefix, s == HW_ALERT_HEARD ? "parent_heard" : "events");
	return buf;
}

/* --- waiting for entries ------------------------------------------------------------------------------------------ */

static void on_entry(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_alert_follow *f = arg;
	struct source *s = &f->sources[HW_ALERT_EVENTS];
	const redisReply *reply = answer;
	char why[HW_TROUBLE_TEXT];
	(void)ac;
	f->waits = false;
	if (!reply)
		return;
	hw_redis_link_got(&f->link);
	if (reply->type != REDIS_REPLY_ERROR) {
		hw_alert_follow_entry(f);
		return;
	}
	hw_trouble_text(reply->str, why);
	hw_log_limited(f->app->log, HW_ALERT_LIMIT_EVENTS, HW_LOG_WARNING,
	               "Redis does not report new entries of %s: %s; they are read up to 1 s later", s->key, why);
}

static void on_gathered(evutil_socket_t fd, short what, void *arg)
{
	struct hw_alert_follow *f = arg;
	(void)fd, (void)what;
	hw_stream_reader_tick(&f->sources[HW_ALERT_EVENTS].reader);
}

/* Called when the last page of device:events, with `n` entries, was read. */
static void wait_for_entry(struct hw_alert_follow *f, size_t n)
{
	const struct timeval gather = {0, GATHER_MS * 1000};
	struct source *s = &f->sources[HW_ALERT_EVENTS];
	const char *key = s->key;
	struct hw_stream_command c;
	if (n > 0)
		(void)event_add(f->gather, &gather); /* if there is no memory, the tick reads */
	if (n > 0 || !f->linked || f->waits)
		return;
	hw_stream_wait(&c, &key, &s->done, 1);
	f->waits = hw_redis_link_command(&f->link, on_entry, f, c.argc, c.argv, c.len) == 0;
}

static void on_ready(void *arg)
{
	struct hw_alert_follow *f = arg;
	f->linked = true;
	hw_redis_link_settled(&f->link);
	hw_stream_reader_tick(&f->sources[HW_ALERT_EVENTS].reader);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_alert_follow *f = arg;
	(void)why; /* the store logs it */
	f->linked = false;
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

/* --- entries ------------------------------------------------------------------------------------------------------ */

static int read_event(struct hw_alert_app *a, const redisReply *r, struct hw_now now)
{
	struct hw_incident_entry entry;
	if (!hw_alert_entry_read(r, hw_alert_bound_ms(a), &entry)) {
		hw_alert_unusable(a, HW_ALERT_UNUSABLE_ENTRY, "%sevents: an entry that is no transition was skipped",
		                  a->conf->redis.key_prefix);
		return 0;
	}
	hw_alert_watch_node(a->watch, entry.node);
	return hw_incidents_entry(a->engine, now, &entry);
}

static void read_heard(struct hw_alert_app *a, const redisReply *r, struct hw_now now)
{
	struct hw_parent_heard heard;
	if (hw_parent_heard_read(r, hw_alert_bound_ms(a), &heard))
		hw_incidents_parent_heard(a->engine, now, heard.id, heard.seq, heard.settle_ms);
	else
		hw_alert_unusable(a, HW_ALERT_UNUSABLE_ENTRY, "%sparent_heard: an unusable entry was skipped",
		                  a->conf->redis.key_prefix);
}

/* Handles an entry about a watched task that failed or expired. */
static int read_task(struct hw_alert_app *a, const redisReply *r, struct hw_now now)
{
	struct hw_task_notice notice;
	if (!hw_task_notice_read(r, &notice))
		return 0;
	return hw_incidents_task(a->engine, now, notice.device, NULL, notice.text);
}

static int read_entry(struct source *s, const redisReply *r, struct hw_now now)
{
	switch (s->which) {
	case HW_ALERT_EVENTS:
		return read_event(s->app, r, now);
	case HW_ALERT_HEARD:
		read_heard(s->app, r, now);
		break;
	case HW_ALERT_TASKS:
		return read_task(s->app, r, now);
	case HW_ALERT_STREAMS:
		break;
	}
	return 0;
}

static bool on_page(void *arg, const struct hw_stream_page *page)
{
	struct source *s = arg;
	struct hw_alert_app *a = s->app;
	struct hw_now now = hw_alert_now(a);
	int rc = 0;
	if (page->n > 0 && a->follow->fresh >= HW_ALERT_PAGE && hw_alert_commit_is_busy(a->commit)) {
		s->paused = true;
		hw_stream_reader_stop(&s->reader);
		return false;
	}
	for (size_t i = 0; i < page->n && rc == 0; i++)
		rc = read_entry(s, page->entries[i], now);
	if (rc) {
		hw_alert_on_no_memory(a);
		return false;
	}
	s->why[0] = '\0';
	s->read = true;
	s->done = page->last;
	s->unread_ms = page->more ? page->last.ms : 0;
	a->follow->fresh += page->n;
	a->counts.entries += page->n;
	if (page->n > 0)
		hw_alert_schedule_turn(a);
	if (s->which == HW_ALERT_EVENTS && !page->more)
		wait_for_entry(a->follow, page->n);
	return true;
}

/* Called when entries of a stream are missing. If they are of device:events, the state is loaded again. If entries of
 * the other streams are missing, an incident is only delayed, or the notice of a task is lost. */
static struct hw_stream_id on_gap(void *arg, struct hw_stream_id offset, struct hw_stream_id end)
{
	struct source *s = arg;
	if (s->again) {
		s->again = false;
		return s->from;
	}
	s->app->counts.gaps++;
	if (s->which == HW_ALERT_EVENTS) {
		hw_log(s->app->log, HW_LOG_WARNING,
		       "Redis trimmed entries of %s before heartwheel-alert read them; heartwheel-alert loads the "
		       "state again; see [redis] events_max",
		       s->key);
		hw_stream_reader_stop(&s->reader);
		hw_alert_on_gap(s->app);
		return end;
	}
	return hw_stream_id_compare(offset, end) < 0 ? offset : end;
}

static void on_refused(void *arg, const char *error, bool reads)
{
	struct source *s = arg;
	(void)reads;
	hw_trouble_text(error, s->why);
	hw_log_limited(s->app->log, HW_ALERT_LIMIT_EVENTS, HW_LOG_ERROR,
	               "stream %s cannot be read: %s; heartwheel-alert gets no news from it, and tries again", s->key,
	               s->why);
	if (hw_trouble_of(error) == HW_TROUBLE_WRONGTYPE)
		s->app->counts.unusable[HW_ALERT_UNUSABLE_KEY]++;
}

static const struct hw_stream_reader_ops reader_ops = {on_page, on_gap, on_refused};

/* --- the interface ------------------------------------------------------------------------------------------------ */

void hw_alert_follow_begin(struct hw_alert_follow *f, const struct hw_alert_offset offsets[HW_ALERT_STREAMS])
{
	f->fresh = 0;
	for (int k = 0; k < HW_ALERT_STREAMS; k++) {
		struct source *s = &f->sources[k];
		s->paused = s->again = false;
		s->why[0] = '\0';
		s->unread_ms = 0;
		s->done = offsets[k].id;
		s->read = true;
		hw_stream_reader_from(&s->reader, offsets[k].id);
	}
}

void hw_alert_follow_end(struct hw_alert_follow *f)
{
	for (int k = 0; k < HW_ALERT_STREAMS; k++)
		hw_stream_reader_stop(&f->sources[k].reader);
}

void hw_alert_follow_again(struct hw_alert_follow *f, int64_t ms)
{
	for (int k = 0; k < HW_ALERT_STREAMS; k++) {
		struct source *s = &f->sources[k];
		s->paused = false;
		s->again = true;
		s->from = (struct hw_stream_id){ms > 0 ? (uint64_t)ms : 0, 0};
		hw_stream_reader_recover(&s->reader);
	}
}

void hw_alert_follow_resume(struct hw_alert_follow *f)
{
	f->fresh = 0;
	for (int k = 0; k < HW_ALERT_STREAMS; k++) {
		struct source *s = &f->sources[k];
		if (!s->paused)
			continue;
		s->paused = false;
		hw_stream_reader_from(&s->reader, s->done);
	}
}

void hw_alert_follow_offsets(const struct hw_alert_follow *f, struct hw_alert_offset out[HW_ALERT_STREAMS])
{
	for (int k = 0; k < HW_ALERT_STREAMS; k++)
		out[k] = (struct hw_alert_offset){f->sources[k].done, f->sources[k].read};
}

bool hw_alert_follow_is_refused(const struct hw_alert_follow *f, char *why, size_t cap)
{
	for (int k = 0; k < HW_ALERT_STREAMS; k++)
		if (*f->sources[k].why) {
			snprintf(why, cap, "%s cannot be read: %s", f->sources[k].key, f->sources[k].why);
			return true;
		}
	return false;
}

int64_t hw_alert_follow_lag_ms(const struct hw_alert_follow *f, int64_t redis_ms)
{
	int64_t lag = 0;
	for (int k = 0; k < HW_ALERT_STREAMS; k++) {
		uint64_t ms = f->sources[k].unread_ms;
		if (ms && redis_ms > 0 && ms < (uint64_t)redis_ms && redis_ms - (int64_t)ms > lag)
			lag = redis_ms - (int64_t)ms;
	}
	return lag;
}

void hw_alert_follow_store(struct hw_alert_follow *f, bool up)
{
	for (int k = 0; k < HW_ALERT_STREAMS; k++)
		if (up)
			hw_stream_reader_up(&f->sources[k].reader);
		else
			hw_stream_reader_down(&f->sources[k].reader);
}

void hw_alert_follow_entry(struct hw_alert_follow *f)
{
	if (!event_pending(f->gather, EV_TIMEOUT, NULL))
		hw_stream_reader_tick(&f->sources[HW_ALERT_EVENTS].reader);
}

void hw_alert_follow_tick(struct hw_alert_follow *f)
{
	if (f->link.base)
		hw_redis_link_tick(&f->link);
	for (int k = 0; k < HW_ALERT_STREAMS; k++)
		hw_stream_reader_tick(&f->sources[k].reader);
}

struct hw_alert_follow *hw_alert_follow_new(struct hw_alert_app *app)
{
	struct hw_alert_follow *f = calloc(1, sizeof(*f));
	static const int poll_ms[HW_ALERT_STREAMS] = {HW_STREAM_BY_TICK, POLL_HEARD_MS, HW_STREAM_BY_TICK};
	const struct hw_redis_link_conf link = {.at = hw_redis_address_of(&app->conf->redis, app->redis_password),
	                                        .seed = hw_alert_seed()};
	bool failed = !f;
	for (int k = 0; f && k < HW_ALERT_STREAMS; k++) {
		struct source *s = &f->sources[k];
		s->app = app;
		s->which = (enum hw_alert_stream)k;
		hw_alert_stream_key(app, s->which, s->key);
		const struct hw_stream_reader_conf conf = {.link = hw_alert_store_link(app->store),
		                                           .key = s->key,
		                                           .count = HW_ALERT_PAGE,
		                                           .poll_ms = poll_ms[k]};
		failed |= hw_stream_reader_init(&s->reader, app->loop.base, &conf, &reader_ops, s) != 0;
	}
	if (f) {
		f->app = app;
		f->gather = event_new(app->loop.base, -1, 0, on_gathered, f);
		failed |= !f->gather;
	}
	if (!failed && !hw_alert_store_keys(app->store))
		failed = hw_redis_link_init(&f->link, app->loop.base, &link, &link_ops, f) != 0;
	if (!failed)
		return f;
	hw_alert_follow_free(f);
	return NULL;
}

void hw_alert_follow_free(struct hw_alert_follow *f)
{
	if (!f)
		return;
	if (f->link.base)
		hw_redis_link_fini(&f->link);
	if (f->gather)
		event_free(f->gather);
	for (int k = 0; k < HW_ALERT_STREAMS; k++)
		hw_stream_reader_fini(&f->sources[k].reader);
	free(f);
}
