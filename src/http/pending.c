/* SPDX-License-Identifier: MIT */
/* See pending.h. */
#include "http/pending.h"

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <stddef.h>

#include "http/server.h"

/* The client disconnected, or the server stops. */
static void on_close(struct evhttp_connection *conn, void *arg)
{
	struct hw_pending *p = arg;
	struct evhttp_request *req = p->req;
	(void)conn;
	p->req = NULL;
	/* evhttp frees a request that still has its connection. A request that evhttp has detached from its
	 * connection is freed here. */
	if (!evhttp_request_get_connection(req))
		evhttp_request_free(req);
	if (p->on_gone)
		p->on_gone(p->arg);
}

void hw_pending_begin(struct hw_pending *p, struct evhttp_request *req, void (*on_gone)(void *arg), void *arg)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	*p = (struct hw_pending){req, on_gone, arg};
	bufferevent_set_timeouts(evhttp_connection_get_bufferevent(conn), NULL, NULL);
	evhttp_connection_set_closecb(conn, on_close, p);
}

struct evhttp_request *hw_pending_take(struct hw_pending *p)
{
	struct evhttp_request *req = p->req;
	struct evhttp_connection *conn = req ? evhttp_request_get_connection(req) : NULL;
	p->req = NULL;
	if (conn) {
		evhttp_connection_set_closecb(conn, NULL, NULL);
		evhttp_connection_set_timeout(conn, HW_HTTP_TIMEOUT_S);
	}
	return req;
}
