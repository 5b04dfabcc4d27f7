/* SPDX-License-Identifier: MIT */
/*
 * GET /v1/events: transitions as server-sent events. The hub (struct hw_hub) is the state that all clients share.
 *
 * A client follows or lags. In each turn of the loop, all clients that follow get the new transitions, as the same
 * bytes. A client lags if it does not read what it is sent, or if it resumes after an earlier id. A lagging client gets
 * the stream in pages, each when it has read the page before. At the end of the stream it follows again. So a client
 * misses nothing, even in a mass outage that is faster than its socket. A client that never reads costs FOLLOW_MAX and
 * a page of memory until its write timeout.
 *
 * With a store, one page at a time is requested. The hub's own requests come first: when the connection to the store is
 * back, the hub reads the entries that it has missed. Invariant: the store answers in the order in which it wrote. So a
 * client that has read the last page has exactly the transitions that hw_control_event() has reported so far.
 *
 * With several nodes, the entries come over another connection, which may be ahead of a page or behind it. So a page
 * that ends before the hub's last id is not the last page. Entries after the hub's last id are cut off a page; the hub
 * sends them later. A client may have read, from another node, more than this node has read so far. If that client
 * resumes here, it is sent nothing until the hub has reached its id.
 *
 * While the store is late, this node's unwritten transitions are sent as `pending` events without an id. When the store
 * has written such a transition, clients that resume get it again, with an id. For each client the hub notes the number
 * of the last pending event that was sent. So a slow client gets the later pending events when it has read the earlier
 * ones, but at most the newest HW_HISTORY. When no write is pending at the store, the remaining ones will never get an
 * id, and are not sent.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/parts.h"
#include "http/json.h"
#include "http/stream.h"

#define CLIENTS_MAX 64
#define FOLLOW_MAX  (256 * 1024) /* bytes that may wait for a follower */
#define PAGE        200
#define COMMENT_S   15
#define ASIDE_MAX   (64 * 1024) /* a client gets no pending events while this many bytes for it are unread */

/* The last published state of blindness. */
struct sight_reported {
	bool blind, starting, back; /* `back`: the connection is up again; the monitor is still blind only because
	                             * the grace after the loss has not ended */
	enum hw_cause cause;
};

enum hub_state { HUB_AWAY, HUB_BEGINS, HUB_CATCHES_UP, HUB_LIVE };

struct client {
	struct client *next, **prev;
	struct hw_hub *hub;
	struct hw_stream stream;
	struct hw_stream_id at; /* the last id sent to it, or the id to continue after */
	bool lags;
	bool waits;     /* ... until the hub has reached `at` */
	uint64_t aside; /* number of the first pending event not sent to it */
};

struct hw_hub {
	struct hw_control *c;
	enum hub_state state;
	struct hw_stream_id last;                     /* newest id passed on */
	bool known;                                   /* ... or it is known that there is none */
	struct hw_stream_id reported;                 /* newest id announced, also while not live */
	struct hw_stream_id reported_then, last_then; /* `reported` and `last` when the page was requested */
	uint64_t begun_ms, n;                         /* without a store: the parts of new ids */
	struct client *first, **tail;
	unsigned n_clients, n_lagging;
	uint64_t refused;
	bool asked;               /* a page was requested from the store, and its answer has not arrived */
	struct client *asked_for; /* the client for which the page was requested; NULL: it was requested for the hub, or
	                             the client has disconnected */
	bool asked_for_hub;
	struct evbuffer *fresh; /* bytes to send to the followers */
	bool unarmed;           /* event_add of `flush` failed: hw_hub_tick() flushes */
	bool late;              /* the store is late: send `pending` events */
	uint64_t settled;       /* number up to which the store has all it will ever have */
	struct sight_reported sight;
	struct event *flush, *comment;
};

static bool has_store(const struct hw_hub *h)
{
	return h->c->ops && h->c->ops->events_after != NULL;
}

/* --- writing */

/* A pending event has no id. */
static void write_event(const struct hw_hub *h, struct evbuffer *out, const char *name, const struct hw_event *e)
{
	char at[HW_STREAM_ID_TEXT];
	struct hw_json j;
	hw_stream_id_print(e->at, at);
	hw_stream_event(out, name, e->at.ms || e->at.seq ? at : NULL);
	hw_json_begin(&j, out);
	hw_json_open(&j, '{');
	hw_write_event(&j, h->c, e);
	hw_json_close(&j, '}');
	hw_json_end(&j);
	hw_stream_event_end(out);
}

static void write_reset(const struct hw_hub *h, struct evbuffer *out)
{
	char at[HW_STREAM_ID_TEXT];
	hw_stream_id_print(h->last, at);
	hw_stream_event(out, "reset", at);
	evbuffer_add(out, "{}", 2);
	hw_stream_event_end(out);
}

static void set_lags(struct client *cl, bool lags)
{
	if (lags && !cl->lags)
		cl->hub->n_lagging++;
	if (!lags && cl->lags)
		cl->hub->n_lagging--;
	cl->lags = lags;
}

static void client_free(struct client *cl)
{
	struct hw_hub *h = cl->hub;
	set_lags(cl, false);
	*cl->prev = cl->next;
	if (cl->next)
		cl->next->prev = cl->prev;
	else
		h->tail = cl->prev;
	if (h->asked_for == cl)
		h->asked_for = NULL;
	if (--h->n_clients == 0)
		event_del(h->comment);
	free(cl);
}

static void on_gone(void *arg)
{
	client_free(arg);
}

static void pump(struct hw_hub *h);
static bool report_aside(struct client *cl);

static void on_drained(void *arg)
{
	struct client *cl = arg;
	struct hw_hub *h = cl->hub;
	if (h->late && !report_aside(cl))
		return;
	if (cl->lags)
		pump(h);
}

static const struct hw_stream_ops stream_ops = {on_drained, on_gone};

static void cut_off(struct client *cl)
{
	cl->hub->refused++;
	hw_stream_cut(&cl->stream); /* on_gone() frees the client */
}

/* --- blindness */

static struct sight_reported sight_now(const struct hw_hub *h)
{
	struct hw_blindness b = hw_monitor_blindness(h->c->monitor);
	if (hw_stands_by(h->c) || !b.blind)
		return (struct sight_reported){0};
	return (struct sight_reported){.blind = true,
	                               .starting = hw_is_starting(h->c),
	                               .back = hw_monitor_in_grace(h->c->monitor),
	                               .cause = b.cause};
}

/* Sends a `sight` event. Returns false if the client was disconnected. */
static bool report_sight(struct client *cl)
{
	const struct sight_reported *s = &cl->hub->sight;
	struct evbuffer *body = evbuffer_new();
	struct hw_json j;
	if (!body)
		return true;
	hw_stream_event(body, "sight", NULL);
	hw_json_begin(&j, body);
	hw_json_open(&j, '{');
	hw_json_bool(&j, "blind", s->blind);
	hw_json_text(&j, "blind_cause", s->blind ? hw_cause_name(s->cause) : NULL);
	hw_json_bool(&j, "starting", s->starting);
	if (s->blind)
		hw_write_blind_times(&j, cl->hub->c);
	hw_json_close(&j, '}');
	hw_json_end(&j);
	hw_stream_event_end(body);
	bool there = hw_stream_send(&cl->stream, body);
	cl->hub->refused += !there;
	evbuffer_free(body);
	return there;
}

void hw_control_sight(struct hw_control *c)
{
	struct hw_hub *h = c->hub;
	struct sight_reported is = sight_now(h);
	struct client *next;
	bool same = is.back == h->sight.back && is.blind == h->sight.blind && is.cause == h->sight.cause &&
	            is.starting == h->sight.starting;
	if (!same)
		h->sight = is;
	for (struct client *cl = same ? NULL : h->first; cl; cl = next) {
		next = cl->next;
		report_sight(cl);
	}
}

/* --- those who follow */

static void flush(struct hw_hub *h)
{
	size_t len = evbuffer_get_length(h->fresh);
	const char *text = len > 0 ? (const char *)evbuffer_pullup(h->fresh, -1) : NULL;
	struct client *next;
	event_del(h->flush);
	for (struct client *cl = h->first; cl && len > 0; cl = next) {
		next = cl->next;
		if (cl->lags)
			continue;
		if (!text || hw_stream_waiting(&cl->stream) + len > FOLLOW_MAX) {
			set_lags(cl, true);
			continue;
		}
		cl->at = h->last;
		h->refused += !hw_stream_send_text(&cl->stream, text, len);
	}
	evbuffer_drain(h->fresh, len);
}

static void wake(struct hw_hub *h)
{
	struct timeval at_once = {0, 0};
	if (!event_pending(h->flush, EV_TIMEOUT, NULL))
		h->unarmed = event_add(h->flush, &at_once) != 0;
}

/* Sends a client a page of pending events. Returns false if the client was disconnected. */
static bool report_aside(struct client *cl)
{
	struct hw_hub *h = cl->hub;
	struct evbuffer *body = hw_stream_waiting(&cl->stream) < ASIDE_MAX ? evbuffer_new() : NULL;
	const struct hw_event *e;
	bool there = true;
	if (!body)
		return true;
	if (cl->aside < h->settled)
		cl->aside = h->settled;
	for (int n = 0; n < PAGE && (e = hw_history_waiting(h->c->history, &cl->aside)); n++)
		write_event(h, body, "pending", e);
	if (evbuffer_get_length(body) > 0)
		there = hw_stream_send(&cl->stream, body);
	h->refused += !there;
	evbuffer_free(body);
	return there;
}

static void report_all_aside(struct hw_hub *h)
{
	struct client *next;
	for (struct client *cl = h->late ? h->first : NULL; cl; cl = next) {
		next = cl->next;
		report_aside(cl);
	}
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush(arg);
	report_all_aside(arg);
	pump(arg);
}

/* Passes on a new transition. */
static void report(struct hw_hub *h, const struct hw_event *e)
{
	(has_store(h) ? hw_history_add : hw_history_append)(h->c->history, e);
	h->last = e->at;
	if (h->n_clients > h->n_lagging)
		write_event(h, h->fresh, "transition", e);
	if (h->n_clients > 0)
		wake(h);
}

void hw_hub_tick(struct hw_hub *h)
{
	hw_control_sight(h->c);
	if (h->unarmed)
		event_active(h->flush, EV_TIMEOUT, 0);
	h->unarmed = false;
}

/* Sends `reset` to all clients that follow, because some transitions cannot be read any more. */
static void reset_all(struct hw_hub *h)
{
	if (h->n_clients == h->n_lagging)
		return;
	write_reset(h, h->fresh);
	flush(h);
}

/* --- lagging clients */

/* Moves a served client to the end of the list. */
static void to_tail(struct client *cl)
{
	struct hw_hub *h = cl->hub;
	if (!cl->next)
		return;
	*cl->prev = cl->next;
	cl->next->prev = cl->prev;
	cl->next = NULL;
	cl->prev = h->tail;
	*h->tail = cl;
	h->tail = &cl->next;
}

/* Whether the client has read more than the hub, from another node. */
static bool is_ahead(const struct client *cl)
{
	return hw_stream_id_compare(cl->at, cl->hub->last) > 0;
}

static void give_page(struct client *cl, const struct hw_event_page *page)
{
	struct hw_hub *h = cl->hub;
	struct evbuffer *body = evbuffer_new();
	if (!body) {
		cut_off(cl);
		return;
	}
	bool lost = !page->ok || page->gone;
	int ahead = has_store(h) ? hw_stream_id_compare(page->last, h->last) : 0;
	cl->waits = !lost && ahead > 0 && is_ahead(cl);
	if (cl->waits) {
		evbuffer_free(body);
		return;
	}
	if (lost) {
		write_reset(h, body);
		cl->at = h->last;
	} else {
		for (size_t i = 0; i < page->n; i++)
			if (ahead <= 0 || hw_stream_id_compare(page->events[i].at, h->last) <= 0)
				write_event(h, body, "transition", &page->events[i]);
		cl->at = ahead > 0 ? h->last : page->last;
	}
	/* The hub reported transitions after the page was requested, so the page lacks them. */
	bool behind = ahead < 0 && hw_stream_id_compare(h->last, h->last_then) > 0;
	if (lost || ahead > 0 || (!page->more && !behind)) {
		flush(h); /* these bytes are already in its pages */
		set_lags(cl, false);
	}
	to_tail(cl);
	if (evbuffer_get_length(body) > 0)
		h->refused += !hw_stream_send(&cl->stream, body);
	evbuffer_free(body);
}

static struct client *next_lagging(const struct hw_hub *h)
{
	struct client *cl = h->first;
	while (cl && (!cl->lags || hw_stream_waiting(&cl->stream) > 0 || (cl->waits && is_ahead(cl))))
		cl = cl->next;
	return cl;
}

/* Sends one client a page from memory. When the client's flush event comes, the next client gets its page. */
static void serve_from_memory(struct hw_hub *h, struct client *cl)
{
	struct hw_event events[PAGE];
	struct hw_event_page page;
	hw_history_after(h->c->history, cl->at, events, PAGE, &page);
	give_page(cl, &page);
	if (next_lagging(h))
		event_active(h->flush, EV_TIMEOUT, 0);
}

/* Serves a lagging client that has read everything. */
static void pump(struct hw_hub *h)
{
	struct client *cl = h->n_lagging > 0 && h->state == HUB_LIVE && !h->asked ? next_lagging(h) : NULL;
	if (cl && !has_store(h)) {
		serve_from_memory(h, cl);
	} else if (cl && h->c->ops->events_after(h->c->arg, cl->at) == 0) {
		h->last_then = h->last;
		h->asked = true;
		h->asked_for = cl;
		h->asked_for_hub = false;
	}
}

/* --- the hub */

static void ask_for_hub(struct hw_hub *h, int rc, enum hub_state state)
{
	h->asked = h->asked_for_hub = rc == 0;
	h->asked_for = NULL;
	h->reported_then = h->reported;
	h->state = rc == 0 ? state : HUB_LIVE;
}

/* Lets all clients continue that wait for an id: the store may be another one now, and the hub may never reach that
 * id. If the id is not in the new stream, the next page shows this. */
static void end_waits(struct hw_hub *h)
{
	for (struct client *cl = h->first; cl; cl = cl->next)
		cl->waits = false;
}

static void begin(struct hw_hub *h)
{
	ask_for_hub(h, h->c->ops->events_last(h->c->arg), HUB_BEGINS);
}

void hw_control_store(struct hw_control *c, bool up)
{
	struct hw_hub *h = c->hub;
	h->asked = h->asked_for_hub = false;
	h->asked_for = NULL;
	end_waits(h);
	if (!up)
		h->state = HUB_AWAY;
	else if (!h->known)
		begin(h);
	else
		ask_for_hub(h, c->ops->events_after(c->arg, h->last), HUB_CATCHES_UP);
}

void hw_control_event(struct hw_control *c, const struct hw_event *e)
{
	struct hw_hub *h = c->hub;
	struct hw_event numbered = *e;
	if (!has_store(h)) {
		numbered.at = (struct hw_stream_id){h->begun_ms, ++h->n};
		report(h, &numbered);
		return;
	}
	h->reported = e->at;
	if (h->state == HUB_LIVE && hw_stream_id_compare(e->at, h->last) > 0)
		report(h, e);
	/* A hub that is not live reads this event from the stream later. A live hub has already sent each event up to
	 * `last`, and skips it. */
}

/* Sends the event `parent_heard`. This event has no id: a client that resumes does not get it again, and a client
 * that lags does not get it at all. */
void hw_control_parent_heard(struct hw_control *c, struct hw_id id, uint64_t seq, struct hw_id parent,
                             int64_t settle_ms)
{
	struct hw_hub *h = c->hub;
	struct hw_json j;
	if (h->n_clients == h->n_lagging)
		return;
	hw_stream_event(h->fresh, "parent_heard", NULL);
	hw_json_begin(&j, h->fresh);
	hw_json_open(&j, '{');
	hw_json_bytes(&j, "id", id.text, id.len);
	hw_json_uint(&j, "seq", seq);
	hw_json_bytes(&j, "parent", parent.text, parent.len);
	hw_json_int(&j, "settle_ms", settle_ms);
	hw_json_close(&j, '}');
	hw_json_end(&j);
	hw_stream_event_end(h->fresh);
	wake(h);
}

void hw_control_pending(struct hw_control *c, const struct hw_event *e)
{
	struct hw_hub *h = c->hub;
	hw_history_await(c->history, e);
	if (h->late && h->n_clients > 0)
		wake(h);
}

void hw_control_late(struct hw_control *c, bool late)
{
	struct hw_hub *h = c->hub;
	h->late = late;
	if (late && h->n_clients > 0)
		wake(h);
}

void hw_control_settled(struct hw_control *c)
{
	c->hub->settled = hw_history_end(c->history);
}

/* If the announced end of the stream is past the last id read, requests more. */
static void read_on(struct hw_hub *h)
{
	if (h->state == HUB_LIVE && !h->asked && hw_stream_id_compare(h->reported, h->last) > 0)
		ask_for_hub(h, h->c->ops->events_after(h->c->arg, h->last), HUB_CATCHES_UP);
}

void hw_control_missed(struct hw_control *c, struct hw_stream_id upto)
{
	c->hub->reported = upto;
	read_on(c->hub);
}

/* Marks the hub as live. All transitions that were reported before the page was requested are on the page, or no
 * longer in the stream. */
static void become_live(struct hw_hub *h)
{
	h->state = HUB_LIVE;
	if (hw_stream_id_compare(h->reported, h->reported_then) == 0)
		h->reported = h->last;
}

/* Called when the end of the stream is known, at the first connection or after a gap. The hub sends the entries that
 * follow it. */
static void hub_begins(struct hw_hub *h, const struct hw_event_page *page)
{
	bool gap = h->known;
	end_waits(h);
	for (size_t i = 0; page->ok && i < page->n; i++)
		if (hw_stream_id_compare(page->events[i].at, h->last) > 0)
			hw_history_add(h->c->history, &page->events[i]);
	hw_history_set_cut(h->c->history, gap || !page->ok || page->more);
	if (page->ok) {
		h->last = page->last;
		h->known = true;
	}
	for (struct client *cl = h->first; cl; cl = cl->next)
		if (!cl->lags)
			cl->at = h->last;
	become_live(h);
	if (gap)
		reset_all(h);
}

static void hub_page(struct hw_hub *h, const struct hw_event_page *page)
{
	if (h->state == HUB_BEGINS) {
		hub_begins(h, page);
		return;
	}
	if (!page->ok || page->gone) {
		begin(h);
		return;
	}
	for (size_t i = 0; i < page->n; i++)
		report(h, &page->events[i]);
	h->last = page->last;
	if (page->more)
		ask_for_hub(h, h->c->ops->events_after(h->c->arg, h->last), HUB_CATCHES_UP);
	else
		become_live(h);
}

void hw_control_page(struct hw_control *c, const struct hw_event_page *page)
{
	struct hw_hub *h = c->hub;
	struct client *cl = h->asked_for;
	bool for_hub = h->asked_for_hub;
	if (!h->asked)
		return;
	h->asked = h->asked_for_hub = false;
	h->asked_for = NULL;
	if (for_hub)
		hub_page(h, page);
	else if (cl)
		give_page(cl, page);
	read_on(h);
	pump(h);
}

/* --- new clients */

static void on_comment(evutil_socket_t fd, short what, void *arg)
{
	struct hw_hub *h = arg;
	struct client *next;
	(void)fd;
	(void)what;
	for (struct client *cl = h->first; cl; cl = next) {
		next = cl->next;
		h->refused += !hw_stream_comment(&cl->stream);
	}
	pump(h); /* retries after a refusal by the store */
}

static struct client *client_new(struct hw_hub *h)
{
	struct timeval comment = {COMMENT_S, 0};
	struct client *cl = calloc(1, sizeof(*cl));
	if (!cl || (h->n_clients == 0 && event_add(h->comment, &comment) < 0)) {
		free(cl);
		return NULL;
	}
	cl->hub = h;
	cl->prev = h->tail;
	*h->tail = cl;
	h->tail = &cl->next;
	h->n_clients++;
	return cl;
}

void hw_serve_events(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct hw_hub *h = c->hub;
	struct hw_param p;
	const char *place, *why = hw_stream_place(req, &place, &p);
	struct client *cl = NULL;
	(void)rest;
	if (why) {
		hw_reply_error(req, HTTP_BADREQUEST, why);
		return;
	}
	if (hw_is_head(req)) {
		hw_stream_head(req);
		return;
	}
	flush(h); /* bytes of earlier transitions are not for this client */
	if (h->n_clients < CLIENTS_MAX)
		cl = client_new(h);
	if (!cl) {
		h->refused++;
		char full[64];
		snprintf(full, sizeof(full), "already %d clients read the events, which is the limit", CLIENTS_MAX);
		hw_reply_error(req, HTTP_SERVUNAVAIL, h->n_clients < CLIENTS_MAX ? "out of memory" : full);
		return;
	}
	cl->at = h->last;
	/* A client that resumes gets all pending events again, because it may have missed some. It recognises
	 * repetitions by id and seq. */
	cl->aside = place && *place ? 0 : hw_history_end(c->history);
	hw_stream_begin(&cl->stream, req, &stream_ops, cl);
	if (h->late)
		wake(h);
	if (h->sight.blind && !report_sight(cl))
		return;
	if (!place || !*place)
		return;
	struct hw_event_page gone = {.ok = false};
	if (hw_stream_id_parse(place, strlen(place), &cl->at) < 0)
		give_page(cl, &gone);
	else
		set_lags(cl, true); /* served when the head is sent */
}

unsigned hw_hub_cut_unadmitted(struct hw_hub *h)
{
	unsigned n = 0;
	for (struct client *cl = h->first, *next; cl; cl = next) {
		next = cl->next;
		if (hw_http_still_admits(&h->c->http, cl->stream.req))
			continue;
		n++;
		hw_stream_cut(&cl->stream); /* on_gone() frees the client */
	}
	return n;
}

struct hw_control_clients hw_control_clients(const struct hw_control *c)
{
	const struct hw_hub *h = c->hub;
	return (struct hw_control_clients){h->n_clients, h->n_lagging, h->refused};
}

struct hw_hub *hw_hub_new(struct hw_control *c)
{
	struct hw_hub *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->c = c;
	h->tail = &h->first;
	h->state = has_store(h) ? HUB_AWAY : HUB_LIVE;
	/* makes ids of different runs differ */
	h->begun_ms = c->ops ? (uint64_t)c->ops->now(c->arg).wall_ms : 1;
	h->fresh = evbuffer_new();
	h->flush = event_new(c->base, -1, 0, on_flush, h);
	h->comment = event_new(c->base, -1, EV_PERSIST, on_comment, h);
	if (!h->fresh || !h->flush || !h->comment) {
		hw_hub_free(h);
		return NULL;
	}
	return h;
}

void hw_hub_free(struct hw_hub *h)
{
	if (!h)
		return;
	if (h->flush)
		event_free(h->flush);
	if (h->comment)
		event_free(h->comment);
	if (h->fresh)
		evbuffer_free(h->fresh);
	free(h);
}
