/* SPDX-License-Identifier: MIT */
/*
 * A client of server-sent events. Handles the head of the answer, the events, a limit on unread bytes, and the end by
 * either side. The program decides what is sent, and after which event a client continues.
 */
#ifndef HW_HTTP_STREAM_H
#define HW_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "http/query.h"

struct evbuffer;
struct evhttp_request;

/* The most bytes that may wait for a client; with more, it is disconnected. */
#define HW_STREAM_WAITING_MAX (1024 * 1024)
#define HW_STREAM_TIMEOUT_S   10 /* how long a client may read nothing */

struct hw_stream_ops {
	void (*on_drained)(void *arg); /* the client has read everything */
	void (*on_gone)(void *arg);    /* called when the client or the server has closed the connection; may free
	                                * the stream */
};

struct hw_stream {
	struct evhttp_request *req;
	const struct hw_stream_ops *ops;
	void *arg;
};

/*
 * Finds the id after which the client wants to continue: in the header Last-Event-ID, which browsers send when they
 * reconnect, or in `after` of the query. Sets *text, which points into `p`; NULL: there is no id. Returns what is wrong
 * with the query, or NULL.
 */
const char *hw_stream_place(struct evhttp_request *req, const char **text, struct hw_param *p);
/* Answers HEAD. */
void hw_stream_head(struct evhttp_request *req);

/* Initialises the caller's storage and sends the head. */
void hw_stream_begin(struct hw_stream *s, struct evhttp_request *req, const struct hw_stream_ops *ops, void *arg);
/* Bytes that the client has not read yet. */
size_t hw_stream_waiting(const struct hw_stream *s);
/* Sends `body` and empties it. Returns false if too many bytes wait: the client is then disconnected, and the stream is
 * freed. */
bool hw_stream_send(struct hw_stream *s, struct evbuffer *body);
/* Like hw_stream_send(), for a text; does nothing if there is no memory. */
bool hw_stream_send_text(struct hw_stream *s, const char *text, size_t len);
/* Sends a comment. Regular comments keep proxies and firewalls from closing a quiet connection, and show whether the
 * client has disconnected. Returns false if it has. */
bool hw_stream_comment(struct hw_stream *s);
/* Disconnects the client; on_gone() is called. */
void hw_stream_cut(struct hw_stream *s);

/* Writes the beginning of an event. The caller appends the data without a line feed, then calls hw_stream_event_end().
 * `id` NULL: a client that reconnects continues after the last event with an id. */
void hw_stream_event(struct evbuffer *out, const char *name, const char *id);
void hw_stream_event_end(struct evbuffer *out);

#endif
