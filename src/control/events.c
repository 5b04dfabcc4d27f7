/* SPDX-License-Identifier: MIT */
/*
 * GET /v1/events: transitions as server-sent events.
 *
 * A client follows or lags. Those who follow are sent what is new, once a turn of the loop, the same bytes to each. One
 * that does not take what it is sent, or that asks for what has been, lags: it reads the stream by itself, a page
 * whenever it has taken the page before, until there is no more; then it follows. So nothing is skipped in a mass
 * outage that is faster than a socket, and a client that never reads costs FOLLOW_MAX and a page until the write times
 * out.
 *
 * With a store, one page at a time is asked of it, and the hub's own come first: after the store was away it reads what
 * it has missed. Invariant: the store answers in the order in which it wrote, so who has read up to the end when a
 * page's answer arrives has everything that hw_control_event() has told so far, and nothing that it tells later.
 *
 * Of several nodes events are told as another connection reads them, which may be ahead of a page, or behind it: a page
 * that is behind is not the end, and what a page has beyond the hub's last is left to be told. A client that resumes
 * may have been told more at another node than this one has read: it waits until the hub has come as far.
 *
 * While the store is late, what has happened here and waits for it is told aside, as `pending`, which has no place: who
 * goes on behind the last place hears it once more, as a transition, when the store has it. Each client has a number
 * up to which it has been told, so that one that is slow is told later, or of the newest HW_HISTORY. What still waits
 * once nothing is owed to the store will never have a place, and is told nobody any more.
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
#define FOLLOW_MAX  (256 * 1024) /* what may wait to be sent to one who follows */
#define PAGE        200
#define COMMENT_S   15
#define ASIDE_MAX   (64 * 1024) /* what may wait to be sent to one who is told aside */

/* What was told last of whether the fleet is heard. */
struct sight_told {
	bool blind, starting, back; /* `back`: but for the time that devices are given to report */
	enum hw_cause cause;
};

enum hub_state { HUB_AWAY, HUB_BEGINS, HUB_CATCHES_UP, HUB_LIVE };

struct client {
	struct client *next, **prev;
	struct hw_hub *hub;
	struct hw_stream stream;
	struct hw_event_id at; /* the last that was sent to it, or before which it does not look */
	bool lags;
	bool waits;     /* ... and the hub has not come as far as `at` */
	uint64_t aside; /* the number of the first that it was not told aside */
};

struct hw_hub {
	struct hw_control *c;
	enum hub_state state;
	struct hw_event_id last;                 /* the newest place that is known */
	bool known;                              /* ... or it is known that there is none */
	struct hw_event_id told;                 /* the newest place that was told, also while it was not live */
	struct hw_event_id told_then, last_then; /* `told` and `last` when the page was asked for */
	uint64_t begun_ms, n;                    /* without a store: what places are made of */
	struct client *first, **tail;
	unsigned n_clients, n_lagging;
	uint64_t refused;
	bool asked;               /* the store, for a page that has not come */
	struct client *asked_for; /* NULL: for the hub, or for a client that has gone */
	bool asked_for_hub;
	struct evbuffer *fresh; /* to be sent to those who follow */
	bool unarmed;           /* `flush` could not be armed: hw_hub_tick() flushes */
	bool late;              /* the store: what waits for it is told aside */
	uint64_t settled;       /* the number up to which the store has what it will ever have */
	struct sight_told sight;
	struct event *flush, *comment;
};

static bool has_store(const struct hw_hub *h)
{
	return h->c->ops && h->c->ops->events_after != NULL;
}

/* --- writing */

/* What waits for the store has no place. */
static void write_event(const struct hw_hub *h, struct evbuffer *out, const char *name, const struct hw_event *e)
{
	char at[HW_EVENT_ID_TEXT];
	struct hw_json j;
	hw_event_id_text(e->at, at);
	hw_stream_event(out, name, e->at.ms || e->at.n ? at : NULL);
	hw_json_begin(&j, out);
	hw_json_open(&j, '{');
	hw_write_event(&j, h->c, e);
	hw_json_close(&j, '}');
	hw_json_end(&j);
	hw_stream_event_end(out);
}

static void write_reset(const struct hw_hub *h, struct evbuffer *out)
{
	char at[HW_EVENT_ID_TEXT];
	hw_event_id_text(h->last, at);
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
static bool tell_aside(struct client *cl);

static void on_drained(void *arg)
{
	struct client *cl = arg;
	struct hw_hub *h = cl->hub;
	if (h->late && !tell_aside(cl))
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

/* --- whether the fleet is heard */

static struct sight_told sight_now(const struct hw_hub *h)
{
	struct hw_blindness b = hw_monitor_blindness(h->c->monitor);
	if (hw_stands_by(h->c) || !b.blind)
		return (struct sight_told){0};
	return (struct sight_told){.blind = true,
	                           .starting = hw_is_starting(h->c),
	                           .back = hw_monitor_in_grace(h->c->monitor),
	                           .cause = b.cause};
}

/* False: the client is gone. */
static bool tell_sight(struct client *cl)
{
	const struct sight_told *s = &cl->hub->sight;
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
	struct sight_told is = sight_now(h);
	struct client *next;
	bool same = is.back == h->sight.back && is.blind == h->sight.blind && is.cause == h->sight.cause &&
	            is.starting == h->sight.starting;
	if (!same)
		h->sight = is;
	for (struct client *cl = same ? NULL : h->first; cl; cl = next) {
		next = cl->next;
		tell_sight(cl);
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

/* A page of what waits for the store. False: the client is gone. */
static bool tell_aside(struct client *cl)
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

static void tell_all_aside(struct hw_hub *h)
{
	struct client *next;
	for (struct client *cl = h->late ? h->first : NULL; cl; cl = next) {
		next = cl->next;
		tell_aside(cl);
	}
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush(arg);
	tell_all_aside(arg);
	pump(arg);
}

/* A transition that is new to the hub. */
static void tell(struct hw_hub *h, const struct hw_event *e)
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

/* Whoever follows starts anew: what the stream had between is not to be had. */
static void reset_all(struct hw_hub *h)
{
	if (h->n_clients == h->n_lagging)
		return;
	write_reset(h, h->fresh);
	flush(h);
}

/* --- those who lag */

/* Its turn is over: the others first. */
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

/* Whether it was told more, at another node, than the hub has. */
static bool is_ahead(const struct client *cl)
{
	return hw_event_id_compare(cl->at, cl->hub->last) > 0;
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
	int ahead = has_store(h) ? hw_event_id_compare(page->last, h->last) : 0;
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
			if (ahead <= 0 || hw_event_id_compare(page->events[i].at, h->last) <= 0)
				write_event(h, body, "transition", &page->events[i]);
		cl->at = ahead > 0 ? h->last : page->last;
	}
	/* What was told since it was asked for is missing on it. */
	bool behind = ahead < 0 && hw_event_id_compare(h->last, h->last_then) > 0;
	if (lost || ahead > 0 || (!page->more && !behind)) {
		flush(h); /* it has this already */
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

/* A page out of memory for one client; for others when the flush event comes. */
static void serve_from_memory(struct hw_hub *h, struct client *cl)
{
	struct hw_event events[PAGE];
	struct hw_event_page page;
	hw_history_after(h->c->history, cl->at, events, PAGE, &page);
	give_page(cl, &page);
	if (next_lagging(h))
		event_active(h->flush, EV_TIMEOUT, 0);
}

/* Serves one who lags and has taken what it was sent. */
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

/* --- the hub itself */

static void ask_for_hub(struct hw_hub *h, int rc, enum hub_state state)
{
	h->asked = h->asked_for_hub = rc == 0;
	h->asked_for = NULL;
	h->told_then = h->told;
	h->state = rc == 0 ? state : HUB_LIVE;
}

/* The store may be another one, which never comes so far: its pages say so. */
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
		numbered.at = (struct hw_event_id){h->begun_ms, ++h->n};
		tell(h, &numbered);
		return;
	}
	h->told = e->at;
	if (h->state == HUB_LIVE && hw_event_id_compare(e->at, h->last) > 0)
		tell(h, e);
	/* otherwise it was read already, or is in the stream, and will be read */
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

/* What was told while it read, or was not told at all, it has not read yet. */
static void read_on(struct hw_hub *h)
{
	if (h->state == HUB_LIVE && !h->asked && hw_event_id_compare(h->told, h->last) > 0)
		ask_for_hub(h, h->c->ops->events_after(h->c->arg, h->last), HUB_CATCHES_UP);
}

void hw_control_missed(struct hw_control *c, struct hw_event_id upto)
{
	c->hub->told = upto;
	read_on(c->hub);
}

/* Whatever was told before the page was asked for is on it, or is not in the stream any more. */
static void become_live(struct hw_hub *h)
{
	h->state = HUB_LIVE;
	if (hw_event_id_compare(h->told, h->told_then) == 0)
		h->told = h->last;
}

/* The end of the stream, at the first connect or after a gap. */
static void hub_begins(struct hw_hub *h, const struct hw_event_page *page)
{
	bool gap = h->known;
	end_waits(h);
	for (size_t i = 0; page->ok && i < page->n; i++)
		if (hw_event_id_compare(page->events[i].at, h->last) > 0)
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
		tell(h, &page->events[i]);
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

/* --- coming in */

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
	pump(h); /* should the store have refused once */
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
	flush(h); /* what is told by now is not for this one */
	if (h->n_clients < CLIENTS_MAX)
		cl = client_new(h);
	if (!cl) {
		h->refused++;
		char full[64];
		snprintf(full, sizeof(full), "%d clients read the events already", CLIENTS_MAX);
		hw_reply_error(req, HTTP_SERVUNAVAIL, h->n_clients < CLIENTS_MAX ? "out of memory" : full);
		return;
	}
	cl->at = h->last;
	/* Who comes back is told again: it may have missed some, and knows what it has heard by id and seq. */
	cl->aside = place && *place ? 0 : hw_history_end(c->history);
	hw_stream_begin(&cl->stream, req, &stream_ops, cl);
	if (h->late)
		wake(h);
	if (h->sight.blind && !tell_sight(cl))
		return;
	if (!place || !*place)
		return;
	struct hw_event_page gone = {.ok = false};
	if (hw_event_id_parse(place, strlen(place), &cl->at) < 0)
		give_page(cl, &gone);
	else
		set_lags(cl, true); /* it is served when the head is out */
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
	/* So that a place of another run is not taken for one of this. */
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
