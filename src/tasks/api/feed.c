/* SPDX-License-Identifier: MIT */
/*
 * See feed.h. Invariant: a client that does not lag was sent all entries up to the reader's offset. No client is sent
 * an entry twice: entries up to the client's own offset are skipped. All requests use one connection, and replies
 * arrive in order. So if a lagging client requests its own page, the page reaches at least to the reader's offset.
 */
#include "tasks/api/feed.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/event.h"
#include "http/json.h"
#include "http/reply.h"
#include "http/stream.h"
#include "stream/commands.h"
#include "stream/reader.h"
#include "tasks/follow/transition.h"
#include "tasks/queue/store.h"

#define PAGE        200
#define FOLLOW_MAX  (256 * 1024) /* if more bytes wait for a client, it lags */
#define COMMENT_S   15
#define WAIT_CHAINS 256

struct client {
	struct client *next, **prev;
	struct hw_feed *feed;
	struct hw_stream stream;
	/* the last entry that was sent to the client; initially, the entry after which the client wants to begin */
	struct hw_stream_id at;
	bool lags;
	bool any; /* this offset is only a lower limit: there may be no entry with this id */
};

struct hw_feed {
	struct hw_tasks_app *app; /* borrowed */
	struct hw_reads *reads;   /* borrowed */
	char *key;                /* owned */
	struct hw_stream_reader reader;
	struct event *comment;
	bool up, known; /* known: the offset is one of the present stream */
	struct client *first;
	struct client *served; /* the client that has requested a page; NULL: there is none, or it has disconnected */
	bool serving;
	unsigned n_clients, n_lagging, n_waits;
	uint64_t refused, resets;
	struct hw_feed_wait *waits[WAIT_CHAINS]; /* by the first byte of their tasks */
};

static void pump(struct hw_feed *f);

/* --- the clients -------------------------------------------------------------------------------------------------- */

static void set_lags(struct client *cl, bool lags)
{
	if (lags && !cl->lags)
		cl->feed->n_lagging++;
	if (!lags && cl->lags)
		cl->feed->n_lagging--;
	cl->lags = lags;
}

static void on_gone(void *arg)
{
	struct client *cl = arg;
	struct hw_feed *f = cl->feed;
	set_lags(cl, false);
	*cl->prev = cl->next;
	if (cl->next)
		cl->next->prev = cl->prev;
	if (f->served == cl)
		f->served = NULL;
	if (--f->n_clients == 0)
		event_del(f->comment);
	free(cl);
}

static void on_drained(void *arg)
{
	struct client *cl = arg;
	if (cl->lags)
		pump(cl->feed);
}

static const struct hw_stream_ops stream_ops = {on_drained, on_gone};

static void send_reset(struct client *cl)
{
	struct hw_feed *f = cl->feed;
	struct evbuffer *body = evbuffer_new();
	char at[HW_STREAM_ID_TEXT];
	f->resets++;
	cl->at = hw_stream_reader_offset(&f->reader);
	set_lags(cl, false);
	if (!body) {
		hw_stream_cut(&cl->stream);
		return;
	}
	hw_stream_event(body, "reset", hw_stream_id_print(cl->at, at));
	evbuffer_add(body, "{}", 2);
	hw_stream_event_end(body);
	f->refused += !hw_stream_send(&cl->stream, body);
	evbuffer_free(body);
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

/* Reads the transitions in a page, and leaves out other entries. */
static size_t read_page(const struct hw_feed *f, const struct hw_stream_page *page,
                        struct hw_task_transition entries[PAGE])
{
	int64_t now_ms = hw_tasks_store_now_ms(f->app->store);
	size_t n = 0;
	for (size_t i = 0; i < page->n; i++)
		n += hw_task_transition_read(page->entries[i], now_ms, &entries[n]);
	return n;
}

static void write_text(struct hw_json *j, const char *name, struct hw_text t)
{
	hw_json_bytes(j, name, t.at, t.len);
}

static void write_entry(struct evbuffer *out, const struct hw_task_transition *e)
{
	char id[HW_STREAM_ID_TEXT], task[HW_TASK_TEXT + 1];
	struct hw_json j;
	hw_stream_event(out, "task", hw_stream_id_print(e->id, id));
	hw_json_begin(&j, out);
	hw_json_open(&j, '{');
	hw_task_id_text(&e->task, task);
	hw_json_text(&j, "task", task);
	write_text(&j, "receiver", e->receiver);
	write_text(&j, "sender", e->sender);
	write_text(&j, "msg_id", e->msg_id);
	hw_json_text(&j, "state", hw_task_state_name(e->state));
	write_text(&j, "why", e->why);
	write_text(&j, "node", e->node);
	hw_json_int(&j, "time_ms", e->time_ms);
	if (e->watched)
		hw_json_bool(&j, "watched", true);
	hw_json_close(&j, '}');
	hw_json_end(&j);
	hw_stream_event_end(out);
}

/* Sends a client the entries after its offset. Its offset becomes `last`. */
static void send_entries(struct client *cl, const struct hw_task_transition *entries, size_t n,
                         struct hw_stream_id last)
{
	struct hw_feed *f = cl->feed;
	struct evbuffer *body = evbuffer_new();
	if (!body) {
		hw_stream_cut(&cl->stream);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (hw_stream_id_compare(entries[i].id, cl->at) > 0)
			write_entry(body, &entries[i]);
	if (hw_stream_id_compare(last, cl->at) > 0)
		cl->at = last;
	if (evbuffer_get_length(body) > 0)
		f->refused += !hw_stream_send(&cl->stream, body);
	evbuffer_free(body);
}

static void publish_to_clients(struct hw_feed *f, const struct hw_task_transition *entries, size_t n,
                               struct hw_stream_id last)
{
	struct client *next;
	for (struct client *cl = f->first; cl; cl = next) {
		next = cl->next;
		if (cl->lags)
			continue;
		if (hw_stream_waiting(&cl->stream) > FOLLOW_MAX)
			set_lags(cl, true);
		else
			send_entries(cl, entries, n, last);
	}
}

/* --- waits -------------------------------------------------------------------------------------------------------- */

static void report_waits(struct hw_feed *f, const struct hw_task_transition *entries, size_t n)
{
	for (size_t i = 0; i < n && f->n_waits > 0; i++) {
		const struct hw_task_id *task = &entries[i].task;
		struct hw_feed_wait *next;
		if (!hw_task_has_ended(entries[i].state))
			continue;
		for (struct hw_feed_wait *w = f->waits[task->bytes[0]]; w; w = next) {
			next = w->next;
			if (memcmp(&w->task, task, sizeof(*task)) == 0)
				w->on_end(w->arg);
		}
	}
}

/* Calls every wait, because an end may have been missed. */
static void report_all_waits(struct hw_feed *f)
{
	struct hw_feed_wait *next;
	for (size_t k = 0; k < WAIT_CHAINS; k++)
		for (struct hw_feed_wait *w = f->waits[k]; w; w = next) {
			next = w->next;
			w->on_end(w->arg);
		}
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool on_page(void *arg, const struct hw_stream_page *page)
{
	struct hw_feed *f = arg;
	struct hw_task_transition entries[PAGE];
	size_t n = read_page(f, page, entries);
	publish_to_clients(f, entries, n, page->last);
	report_waits(f, entries, n);
	if (f->n_clients == 0 && f->n_waits == 0) {
		hw_stream_reader_stop(&f->reader);
		f->known = false;
	}
	pump(f);
	return true;
}

/* Called when the end of the stream is known, or when entries were missed. If the feed has not begun yet, it begins
 * at this end. Otherwise entries were missed, and each client is sent a reset. */
static struct hw_stream_id on_gap(void *arg, struct hw_stream_id offset, struct hw_stream_id end)
{
	struct hw_feed *f = arg;
	bool missed = f->known;
	(void)offset;
	f->known = true;
	for (struct client *cl = f->first, *next; cl; cl = next) {
		next = cl->next;
		if (missed)
			send_reset(cl);
		else if (!cl->lags && cl->at.ms == 0)
			cl->at = end;
	}
	if (missed)
		report_all_waits(f);
	pump(f);
	return end;
}

/* BUSY, LOADING, NOPERM: the reader repeats the request. */
static void on_refused(void *arg, const char *error, bool reads)
{
	(void)arg, (void)error, (void)reads;
}

static const struct hw_stream_reader_ops reader_ops = {on_page, on_gap, on_refused};

static void start(struct hw_feed *f)
{
	if (!hw_stream_reader_is_started(&f->reader))
		hw_stream_reader_recover(&f->reader);
}

void hw_feed_store(struct hw_feed *f, bool up)
{
	f->up = up;
	f->serving = false;
	f->served = NULL;
	if (up)
		hw_stream_reader_up(&f->reader);
	else
		hw_stream_reader_down(&f->reader);
}

void hw_feed_tick(struct hw_feed *f)
{
	hw_stream_reader_tick(&f->reader);
	pump(f);
}

/* --- lagging clients ---------------------------------------------------------------------------------------------- */

/* Handles a page that a lagging client has requested. If the client's last entry was trimmed, later entries may be
 * trimmed too, so the client is sent a reset. */
static void on_own_page(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_feed *f = arg;
	struct client *cl = f->served;
	const redisReply *reply = answer;
	struct hw_task_transition entries[PAGE];
	struct hw_stream_page page;
	(void)ac;
	f->serving = false;
	f->served = NULL;
	if (!reply)
		return;
	hw_redis_link_got(hw_reads_link(f->reads));
	if (reply->type == REDIS_REPLY_ERROR) /* the tick repeats it */
		return;
	if (cl && (!hw_stream_page_read(reply, cl->at, PAGE, &page) || (page.gone && !cl->any))) {
		send_reset(cl);
	} else if (cl) {
		cl->any &= page.n == 0;
		if (!page.more)
			set_lags(cl, false);
		send_entries(cl, entries, read_page(f, &page, entries), page.last);
	}
	pump(f);
}

/* Requests the next page for a lagging client that has read everything it was sent. */
static void pump(struct hw_feed *f)
{
	struct client *cl = f->first;
	struct hw_stream_command c;
	if (!f->up || !f->known || f->serving || f->n_lagging == 0)
		return;
	while (cl && (!cl->lags || hw_stream_waiting(&cl->stream) > 0))
		cl = cl->next;
	if (!cl)
		return;
	hw_stream_range(&c, f->key, cl->at, PAGE);
	f->serving = hw_redis_link_command(hw_reads_link(f->reads), on_own_page, f, c.argc, c.argv, c.len) == 0;
	f->served = f->serving ? cl : NULL;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void on_comment(evutil_socket_t fd, short what, void *arg)
{
	struct hw_feed *f = arg;
	struct client *next;
	(void)fd, (void)what;
	for (struct client *cl = f->first; cl; cl = next) {
		next = cl->next;
		f->refused += !hw_stream_comment(&cl->stream);
	}
}

static struct client *client_new(struct hw_feed *f)
{
	struct timeval comment = {COMMENT_S, 0};
	struct client *cl = f->n_clients < HW_FEED_CLIENTS ? calloc(1, sizeof(*cl)) : NULL;
	if (!cl || (f->n_clients == 0 && event_add(f->comment, &comment) < 0)) {
		free(cl);
		return NULL;
	}
	*cl = (struct client){.next = f->first, .prev = &f->first, .feed = f};
	if (f->first)
		f->first->prev = &cl->next;
	f->first = cl;
	f->n_clients++;
	return cl;
}

/* Parses where a client wants to begin: after the event with an id, or at a time in ms. For a time sets *any,
 * because an event with that id need not exist. */
static int read_offset(const char *text, struct hw_stream_id *at, bool *any)
{
	*any = !strchr(text, '-');
	return hw_stream_id_parse_loose(text, strlen(text), at);
}

void hw_feed_serve(struct hw_feed *f, struct evhttp_request *req)
{
	struct hw_param p;
	struct hw_stream_id at = {0, 0};
	bool any = false;
	const char *after, *why = hw_stream_place(req, &after, &p);
	if (!why && after && *after && read_offset(after, &at, &any) < 0)
		why = "'after' must be the id of an event, or a time";
	if (why) {
		hw_reply_error(req, HTTP_BADREQUEST, why);
		return;
	}
	if (hw_is_head(req)) {
		hw_stream_head(req);
		return;
	}
	struct client *cl = client_new(f);
	if (!cl) {
		f->refused++;
		hw_reply_error(req, HTTP_SERVUNAVAIL, "the limit of clients that read the events is reached");
		return;
	}
	hw_stream_begin(&cl->stream, req, &stream_ops, cl);
	bool goes_on = after && *after;
	cl->at = goes_on ? at : f->known ? hw_stream_reader_offset(&f->reader) : (struct hw_stream_id){0, 0};
	cl->any = any;
	set_lags(cl, goes_on);
	start(f);
	pump(f);
}

void hw_feed_wait(struct hw_feed *f, struct hw_feed_wait *w)
{
	struct hw_feed_wait **chain = &f->waits[w->task.bytes[0]];
	w->next = *chain;
	w->prev = chain;
	if (*chain)
		(*chain)->prev = &w->next;
	*chain = w;
	f->n_waits++;
	w->feed = f;
	start(f);
}

void hw_feed_wait_stop(struct hw_feed_wait *w)
{
	if (!w->prev)
		return;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->prev = NULL;
	w->feed->n_waits--;
}

void hw_feed_stats(const struct hw_feed *f, struct hw_feed_stats *out)
{
	*out = (struct hw_feed_stats){f->n_clients, f->n_lagging, f->refused, f->resets};
}

struct hw_feed *hw_feed_new(struct hw_tasks_app *app, struct hw_reads *reads, const char *key)
{
	struct event_base *base = app->loop.base;
	struct hw_feed *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->app = app;
	f->reads = reads;
	f->key = strdup(key);
	f->comment = event_new(base, -1, EV_PERSIST, on_comment, f);
	if (f->key && f->comment &&
	    hw_stream_reader_init(&f->reader, base,
	                          &(struct hw_stream_reader_conf){hw_reads_link(reads), f->key, PAGE, HW_FEED_MS},
	                          &reader_ops, f) == 0)
		return f;
	hw_feed_free(f);
	return NULL;
}

void hw_feed_free(struct hw_feed *f)
{
	if (!f)
		return;
	hw_stream_reader_fini(&f->reader);
	if (f->comment)
		event_free(f->comment);
	free(f->key);
	free(f);
}
