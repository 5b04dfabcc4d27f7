/* SPDX-License-Identifier: MIT */
/*
 * Forgets a device. If another node owns the device, this node asks the owner, and the client waits up to two seconds
 * for the owner's answer. Cost: a look-up, and a timer for each client that waits.
 */
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/parts.h"

#define PATIENCE_S 2
#define ASKS_MAX   64

/* A client's request that waits for another node. The list owns it. */
struct ask {
	struct ask *next, **prev;
	struct hw_asks *asks;
	struct evhttp_request *req;
	struct event *patience;
	uint64_t ticket;
	char owner[256]; /* for messages */
};

struct hw_asks {
	struct hw_control *c;
	struct ask *first;
	unsigned n;
	uint64_t tickets;
};

static void end(struct ask *a)
{
	if (a->next)
		a->next->prev = a->prev;
	*a->prev = a->next;
	a->asks->n--;
	if (a->patience)
		event_free(a->patience);
	free(a);
}

/* The client disconnected, or the server stops. */
static void on_close(struct evhttp_connection *conn, void *arg)
{
	struct ask *a = arg;
	struct evhttp_request *req = a->req;
	(void)conn;
	end(a);
	/* evhttp frees a request that still has its connection. A request that evhttp has detached from its
	 * connection is freed here. */
	if (!evhttp_request_get_connection(req))
		evhttp_request_free(req);
}

static void reply(struct evhttp_request *req, enum hw_forgotten what, const char *owner)
{
	char why[512];
	if (what == HW_FORGOTTEN) {
		hw_reply(req, HTTP_NOCONTENT, NULL);
	} else if (what == HW_FORGOTTEN_UNKNOWN) {
		hw_reply_error(req, HTTP_NOTFOUND, "no such device");
	} else if (what == HW_FORGOTTEN_UNOWNED) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "no node owns this device now: try again");
	} else {
		snprintf(why, sizeof(why), "node '%s' owns this device and does not answer", owner);
		hw_reply_error(req, HTTP_SERVUNAVAIL, why);
	}
}

static void answer(struct ask *a, enum hw_forgotten what)
{
	struct evhttp_request *req = a->req;
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	char owner[sizeof(a->owner)];
	memcpy(owner, a->owner, sizeof(owner));
	if (conn)
		evhttp_connection_set_closecb(conn, NULL, NULL);
	end(a);
	reply(req, what, owner);
}

static void on_impatient(evutil_socket_t fd, short events, void *arg)
{
	(void)fd, (void)events;
	answer(arg, HW_FORGOTTEN_SILENT);
}

static struct ask *ask_new(struct hw_asks *all, struct evhttp_request *req)
{
	static const struct timeval patience = {PATIENCE_S, 0};
	struct ask *a = all->n < ASKS_MAX ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return NULL;
	*a = (struct ask){.next = all->first, .prev = &all->first, .asks = all, .req = req};
	a->ticket = ++all->tickets;
	if (all->first)
		all->first->prev = &a->next;
	all->first = a;
	all->n++;
	a->patience = event_new(all->c->base, -1, 0, on_impatient, a);
	if (a->patience && event_add(a->patience, &patience) == 0)
		return a;
	end(a);
	return NULL;
}

static void forget_with_others(struct hw_control *c, struct evhttp_request *req, const struct hw_device *d,
                               const char *id, size_t len)
{
	struct ask *a = ask_new(c->asks, req);
	if (!a) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "too many requests are waiting for other nodes");
		return;
	}
	const char *owner = c->ops->owner(c->arg, d);
	snprintf(a->owner, sizeof(a->owner), "%s", owner ? owner : "");
	enum hw_forgotten what = c->ops->forget(c->arg, a->ticket, id, len);
	if (what != HW_FORGOTTEN_ASKED)
		answer(a, what);
	else
		evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, a);
}

void hw_serve_forget(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	uint32_t index;
	struct hw_device *d = hw_find_device(c, req, rest, &index);
	if (!d)
		return;
	struct hw_id named = hw_device_id(d);
	char id[HW_ID_MAX];
	memcpy(id, named.text, named.len);
	if (!c->ops->owner)
		reply(req, c->ops->forget(c->arg, 0, id, named.len), "");
	else
		forget_with_others(c, req, d, id, named.len);
}

void hw_control_forgotten(struct hw_control *c, uint64_t ticket, enum hw_forgotten what)
{
	struct ask *a = c->asks->first;
	while (a && a->ticket != ticket)
		a = a->next;
	if (a)
		answer(a, what);
}

struct hw_asks *hw_asks_new(struct hw_control *c)
{
	struct hw_asks *all = calloc(1, sizeof(*all));
	if (all)
		all->c = c;
	return all;
}

void hw_asks_free(struct hw_asks *all)
{
	free(all);
}
