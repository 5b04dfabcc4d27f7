/* SPDX-License-Identifier: MIT */
/*
 * See feed.h. Invariant: whoever follows has been sent all that stands up to `last`, and each client nothing twice:
 * what is at or before its own place is left out. All questions go over one connection, whose answers come in their
 * order, so a page that a client has read for itself is never behind `last`.
 */
#include "tasks/feed.h"

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

#define PAGE        200
#define PAGE_TEXT   "200"
#define FOLLOW_MAX  (256 * 1024) /* what may wait to be sent to one who follows */
#define COMMENT_S   15
#define LOOK_EVERY  25 /* empty pages, until it is asked whether the stream is still the one it was */
#define WAIT_CHAINS 256
#define AGAIN_MS    1000 /* after an error */

struct client {
	struct client *next, **prev;
	struct hw_feed *feed;
	struct hw_stream stream;
	struct hw_event_id at; /* the last that was sent to it, or before which it does not look */
	bool lags;
	bool checked; /* whether its place is still there */
};

struct hw_feed {
	struct hw_reads *reads; /* borrowed */
	char *key;              /* owned */
	struct event *poll, *comment;
	bool up, known; /* known: `last` is a place of the stream as it is */
	bool asked;     /* for a page, or for the end */
	struct hw_event_id last;
	struct client *first;
	struct client *served; /* whose page is asked for; NULL: nobody's, or it has gone */
	bool serving;
	unsigned n_clients, n_lagging, n_waits, n_empty;
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
	char at[HW_EVENT_ID_TEXT];
	f->resets++;
	cl->at = f->last;
	set_lags(cl, false);
	if (!body) {
		hw_stream_cut(&cl->stream);
		return;
	}
	hw_event_id_text(f->last, at);
	hw_stream_event(body, "reset", at);
	evbuffer_add(body, "{}", 2);
	hw_stream_event_end(body);
	f->refused += !hw_stream_send(&cl->stream, body);
	evbuffer_free(body);
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

struct entry {
	struct hw_event_id at;
	const redisReply *fields; /* names and values in turn */
};

/* The entries of a stream's page, whose outermost array names the stream; those that make no sense are left out. */
static size_t read_page(const redisReply *reply, struct entry entries[PAGE])
{
	size_t n = 0;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1 || reply->element[0]->type != REDIS_REPLY_ARRAY ||
	    reply->element[0]->elements != 2)
		return 0;
	const redisReply *page = reply->element[0]->element[1];
	for (size_t i = 0; page->type == REDIS_REPLY_ARRAY && i < page->elements && n < PAGE; i++) {
		const redisReply *e = page->element[i];
		if (e->type != REDIS_REPLY_ARRAY || e->elements != 2 || e->element[0]->type != REDIS_REPLY_STRING ||
		    e->element[1]->type != REDIS_REPLY_ARRAY)
			continue;
		entries[n].fields = e->element[1];
		n += hw_event_id_parse(e->element[0]->str, e->element[0]->len, &entries[n].at) == 0;
	}
	return n;
}

static struct hw_text field(const struct entry *e, const char *name)
{
	size_t len = strlen(name);
	for (size_t k = 0; k + 1 < e->fields->elements; k += 2) {
		const redisReply *key = e->fields->element[k], *value = e->fields->element[k + 1];
		if (key->type == REDIS_REPLY_STRING && key->len == len && memcmp(key->str, name, len) == 0 &&
		    value->type == REDIS_REPLY_STRING)
			return (struct hw_text){value->str, value->len};
	}
	return (struct hw_text){"", 0};
}

static void write_entry(struct evbuffer *out, const struct entry *e)
{
	static const char *const texts[] = {"task", "receiver", "sender", "msg_id", "state", "why", "node"};
	char at[HW_EVENT_ID_TEXT];
	struct hw_json j;
	hw_event_id_text(e->at, at);
	hw_stream_event(out, "task", at);
	hw_json_begin(&j, out);
	hw_json_open(&j, '{');
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct hw_text t = field(e, texts[i]);
		hw_json_bytes(&j, texts[i], t.at, t.len);
	}
	hw_json_int(&j, "time_ms", strtoll(field(e, "time_ms").at, NULL, 10));
	if (field(e, "watched").len)
		hw_json_bool(&j, "watched", true);
	hw_json_close(&j, '}');
	hw_json_end(&j);
	hw_stream_event_end(out);
}

/* Sends a client what is new to it. */
static void send_entries(struct client *cl, const struct entry *entries, size_t n)
{
	struct hw_feed *f = cl->feed;
	struct evbuffer *body = evbuffer_new();
	if (!body) {
		hw_stream_cut(&cl->stream);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (hw_event_id_compare(entries[i].at, cl->at) > 0) {
			write_entry(body, &entries[i]);
			cl->at = entries[i].at;
		}
	if (evbuffer_get_length(body) > 0)
		f->refused += !hw_stream_send(&cl->stream, body);
	evbuffer_free(body);
}

static void tell_clients(struct hw_feed *f, const struct entry *entries, size_t n)
{
	struct client *next;
	for (struct client *cl = f->first; cl; cl = next) {
		next = cl->next;
		if (cl->lags)
			continue;
		if (hw_stream_waiting(&cl->stream) > FOLLOW_MAX)
			set_lags(cl, true);
		else
			send_entries(cl, entries, n);
	}
}

/* --- those who wait ----------------------------------------------------------------------------------------------- */

static void tell_waits(struct hw_feed *f, const struct entry *entries, size_t n)
{
	for (size_t i = 0; i < n && f->n_waits > 0; i++) {
		struct hw_text name = field(&entries[i], "task"), state = field(&entries[i], "state");
		enum hw_task_state s = hw_task_state_of(state.at, state.len);
		struct hw_feed_wait *next;
		struct hw_task_id task;
		if (s == HW_TASK_STATES || !hw_task_has_ended(s) || !hw_task_id_parse(&task, name.at, name.len))
			continue;
		for (struct hw_feed_wait *w = f->waits[task.bytes[0]]; w; w = next) {
			next = w->next;
			if (memcmp(&w->task, &task, sizeof(task)) == 0)
				w->on_end(w->arg);
		}
	}
}

/* Something may have been missed. */
static void tell_all_waits(struct hw_feed *f)
{
	struct hw_feed_wait *next;
	for (size_t k = 0; k < WAIT_CHAINS; k++)
		for (struct hw_feed_wait *w = f->waits[k]; w; w = next) {
			next = w->next;
			w->on_end(w->arg);
		}
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void arm(struct hw_feed *f, int ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	(void)event_add(f->poll, &tv); /* hw_feed_tick() does it where there was no memory */
}

/* An error (BUSY, LOADING, NOPERM) says nothing of the stream: it is asked again. */
static bool is_refused(struct hw_feed *f, const redisReply *reply)
{
	hw_redis_link_got(hw_reads_link(f->reads));
	if (reply->type != REDIS_REPLY_ERROR)
		return false;
	arm(f, AGAIN_MS);
	return true;
}

/* The newest place, or that there is none. */
static void on_end_known(struct hw_feed *f, const redisReply *reply)
{
	struct hw_event_id end = {0, 0};
	bool fresh = !f->known;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 && reply->element[0]->type == REDIS_REPLY_ARRAY &&
	    reply->element[0]->elements == 2 && reply->element[0]->element[0]->type == REDIS_REPLY_STRING)
		(void)hw_event_id_parse(reply->element[0]->element[0]->str, reply->element[0]->element[0]->len, &end);
	bool other = f->known && hw_event_id_compare(end, f->last) < 0;
	if (!fresh && !other)
		return;
	f->last = end;
	f->known = true;
	for (struct client *cl = f->first, *next; cl; cl = next) {
		next = cl->next;
		if (other)
			send_reset(cl); /* another stream stands in its place */
		else if (!cl->lags && cl->at.ms == 0)
			cl->at = end;
	}
	if (other)
		tell_all_waits(f);
}

static void on_end(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_feed *f = arg;
	(void)ac;
	f->asked = false;
	if (!answer || is_refused(f, answer))
		return;
	on_end_known(f, answer);
	f->n_empty = 0;
	arm(f, f->known ? 0 : HW_FEED_MS);
}

static void on_page(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_feed *f = arg;
	struct entry entries[PAGE];
	(void)ac;
	f->asked = false;
	if (!answer || is_refused(f, answer))
		return;
	size_t n = read_page(answer, entries);
	f->n_empty = n == 0 ? f->n_empty + 1 : 0;
	if (n > 0)
		f->last = entries[n - 1].at;
	tell_clients(f, entries, n);
	tell_waits(f, entries, n);
	arm(f, n == PAGE ? 0 : HW_FEED_MS);
	pump(f);
}

static int ask_end(struct hw_feed *f, redisCallbackFn *fn)
{
	const char *argv[] = {"XREVRANGE", f->key, "+", "-", "COUNT", "1"};
	const size_t len[] = {9, strlen(f->key), 1, 1, 5, 1};
	return hw_redis_link_command(hw_reads_link(f->reads), fn, f, 6, argv, len);
}

static int ask_page(struct hw_feed *f, struct hw_event_id at, redisCallbackFn *fn)
{
	char place[HW_EVENT_ID_TEXT];
	const char *argv[] = {"XREAD", "COUNT", PAGE_TEXT, "STREAMS", f->key, place};
	hw_event_id_text(at, place);
	const size_t len[] = {5, 5, strlen(PAGE_TEXT), 7, strlen(f->key), strlen(place)};
	return hw_redis_link_command(hw_reads_link(f->reads), fn, f, 6, argv, len);
}

/* Where nobody listens, what happens next is not known to begin where it ended. */
static void poll_stream(struct hw_feed *f)
{
	if (!f->up || f->asked)
		return;
	if (f->n_clients == 0 && f->n_waits == 0) {
		f->known = false;
		return;
	}
	bool look = !f->known || f->n_empty >= LOOK_EVERY;
	f->asked = (look ? ask_end(f, on_end) : ask_page(f, f->last, on_page)) == 0;
}

static void on_poll(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	poll_stream(arg);
	pump(arg);
}

void hw_feed_store(struct hw_feed *f, bool up)
{
	f->up = up;
	f->asked = f->serving = false;
	f->served = NULL;
	f->n_empty = LOOK_EVERY; /* another Redis may answer now */
	if (up)
		arm(f, 0);
}

void hw_feed_tick(struct hw_feed *f)
{
	if (!event_pending(f->poll, EV_TIMEOUT, NULL) && (f->n_clients > 0 || f->n_waits > 0))
		arm(f, HW_FEED_MS);
}

/* --- those who lag ------------------------------------------------------------------------------------------------ */

static void on_own_page(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_feed *f = arg;
	struct client *cl = f->served;
	struct entry entries[PAGE];
	(void)ac;
	f->serving = false;
	f->served = NULL;
	if (!answer || is_refused(f, answer))
		return;
	size_t n = read_page(answer, entries);
	if (cl && n < PAGE)
		set_lags(cl, false);
	if (cl)
		send_entries(cl, entries, n);
	pump(f);
}

/* Whether the entry at its place is still there. */
static void on_checked(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_feed *f = arg;
	struct client *cl = f->served;
	const redisReply *reply = answer;
	(void)ac;
	f->serving = false;
	f->served = NULL;
	if (!reply || is_refused(f, reply))
		return;
	if (cl) {
		cl->checked = true;
		if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0)
			send_reset(cl);
	}
	pump(f);
}

static int ask_whether_there(struct hw_feed *f, struct hw_event_id at)
{
	char place[HW_EVENT_ID_TEXT];
	const char *argv[] = {"XRANGE", f->key, place, place, "COUNT", "1"};
	hw_event_id_text(at, place);
	const size_t len[] = {6, strlen(f->key), strlen(place), strlen(place), 5, 1};
	return hw_redis_link_command(hw_reads_link(f->reads), on_checked, f, 6, argv, len);
}

/* Serves one who lags and has taken what it was sent. */
static void pump(struct hw_feed *f)
{
	struct client *cl = f->first;
	if (!f->up || !f->known || f->serving || f->n_lagging == 0)
		return;
	while (cl && (!cl->lags || hw_stream_waiting(&cl->stream) > 0))
		cl = cl->next;
	if (!cl)
		return;
	f->serving = (cl->checked ? ask_page(f, cl->at, on_own_page) : ask_whether_there(f, cl->at)) == 0;
	f->served = f->serving ? cl : NULL;
}

/* --- coming in ---------------------------------------------------------------------------------------------------- */

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

/* Behind an event, by its id; or from a time on, in milliseconds: *any then, as no event has to be there. */
static int read_place(const char *text, struct hw_event_id *at, bool *any)
{
	char id[HW_EVENT_ID_TEXT + 2];
	*any = !strchr(text, '-');
	int n = snprintf(id, sizeof(id), "%s%s", text, *any ? "-0" : "");
	return n > 0 && n < (int)sizeof(id) ? hw_event_id_parse(id, (size_t)n, at) : -EINVAL;
}

void hw_feed_serve(struct hw_feed *f, struct evhttp_request *req)
{
	struct hw_param p;
	struct hw_event_id at = {0, 0};
	bool any = false;
	const char *place, *why = hw_stream_place(req, &place, &p);
	if (!why && place && *place && read_place(place, &at, &any) < 0)
		why = "'after' is neither the id of an event nor a time";
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
		hw_reply_error(req, HTTP_SERVUNAVAIL, "as many clients as there may be read the events already");
		return;
	}
	hw_stream_begin(&cl->stream, req, &stream_ops, cl);
	bool goes_on = place && *place;
	cl->at = goes_on ? at : f->known ? f->last : (struct hw_event_id){0, 0};
	cl->checked = any || at.ms == 0; /* from what there is */
	set_lags(cl, goes_on);
	arm(f, 0);
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
	poll_stream(f);
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

struct hw_feed *hw_feed_new(struct event_base *base, struct hw_reads *reads, const char *key)
{
	struct hw_feed *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->reads = reads;
	f->key = strdup(key);
	f->poll = event_new(base, -1, 0, on_poll, f);
	f->comment = event_new(base, -1, EV_PERSIST, on_comment, f);
	if (f->key && f->poll && f->comment)
		return f;
	hw_feed_free(f);
	return NULL;
}

void hw_feed_free(struct hw_feed *f)
{
	if (!f)
		return;
	if (f->poll)
		event_free(f->poll);
	if (f->comment)
		event_free(f->comment);
	free(f->key);
	free(f);
}
