/* SPDX-License-Identifier: MIT */
/* See stream.h. Invariant: on_gone() is called exactly once. The request is freed before that call, or by evhttp. */
#include "http/stream.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <string.h>
#include <sys/time.h>

#include "http/reply.h"

const char *hw_stream_place(struct evhttp_request *req, const char **text, struct hw_param *p)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	int rc;
	*text = evhttp_find_header(evhttp_request_get_input_headers(req), "Last-Event-ID");
	for (query = query ? query : ""; (rc = hw_query_next(&query, p)) != 0;) {
		if (rc < 0)
			return "the query is malformed";
		if (strcmp(p->key, "after") != 0)
			return "unknown key in the query: the only key is after";
		if (!*text)
			*text = p->value;
	}
	return NULL;
}

void hw_stream_head(struct evhttp_request *req)
{
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "text/event-stream");
	hw_reply_as(req, HTTP_OK, NULL, NULL);
}

/* Called when the client has disconnected or was too slow, or when the server stops. */
static void on_close(struct evhttp_connection *conn, void *arg)
{
	struct hw_stream *s = arg;
	(void)conn;
	/* evhttp frees a request that still has its connection. A request that evhttp has detached from its
	 * connection is freed here. */
	if (!evhttp_request_get_connection(s->req))
		evhttp_request_free(s->req);
	s->ops->on_gone(s->arg);
}

static void on_drained(struct evhttp_connection *conn, void *arg)
{
	struct hw_stream *s = arg;
	(void)conn;
	s->ops->on_drained(s->arg);
}

void hw_stream_begin(struct hw_stream *s, struct evhttp_request *req, const struct hw_stream_ops *ops, void *arg)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	struct timeval patience = {HW_STREAM_TIMEOUT_S, 0};
	*s = (struct hw_stream){req, ops, arg};
	evhttp_connection_set_closecb(conn, on_close, s);
	evhttp_add_header(headers, "Content-Type", "text/event-stream");
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "X-Accel-Buffering", "no");
	/* HTTP/1.0 has no chunks: the end of the connection ends the answer, even if keep-alive was requested. */
	if (req->major == 1 && req->minor == 0)
		evhttp_remove_header(evhttp_request_get_input_headers(req), "Connection");
	evhttp_send_reply_start(req, HTTP_OK, NULL);
	/* The client sends nothing while it reads the stream. */
	bufferevent_set_timeouts(evhttp_connection_get_bufferevent(conn), NULL, &patience);
	hw_stream_send_text(s, "retry: 2000\n\n", 13);
}

size_t hw_stream_waiting(const struct hw_stream *s)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(s->req);
	return evbuffer_get_length(bufferevent_get_output(evhttp_connection_get_bufferevent(conn)));
}

bool hw_stream_send(struct hw_stream *s, struct evbuffer *body)
{
	bool fits = hw_stream_waiting(s) + evbuffer_get_length(body) <= HW_STREAM_WAITING_MAX;
	if (fits)
		evhttp_send_reply_chunk_with_cb(s->req, body, on_drained, s);
	else
		hw_stream_cut(s);
	return fits;
}

bool hw_stream_send_text(struct hw_stream *s, const char *text, size_t len)
{
	struct evbuffer *body = evbuffer_new();
	bool there = true;
	if (!body)
		return true;
	if (evbuffer_add(body, text, len) == 0)
		there = hw_stream_send(s, body);
	evbuffer_free(body);
	return there;
}

bool hw_stream_comment(struct hw_stream *s)
{
	return hw_stream_waiting(s) > 0 || hw_stream_send_text(s, ":\n\n", 3);
}

void hw_stream_cut(struct hw_stream *s)
{
	evhttp_connection_free(evhttp_request_get_connection(s->req)); /* calls on_close() */
}

void hw_stream_event(struct evbuffer *out, const char *name, const char *id)
{
	evbuffer_add_printf(out, "event: %s\n", name);
	if (id)
		evbuffer_add_printf(out, "id: %s\n", id);
	evbuffer_add_printf(out, "data: ");
}

void hw_stream_event_end(struct evbuffer *out)
{
	evbuffer_add(out, "\n\n", 2);
}
