/* SPDX-License-Identifier: MIT */
/*
 * One client of server-sent events: the head of the answer, events as they come, a bound on what waits for a client
 * that does not take it, and the end, whichever side makes it. What is sent, to whom, and where a client goes on, is
 * the program's.
 */
#ifndef HW_HTTP_STREAM_H
#define HW_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "http/query.h"

struct evbuffer;
struct evhttp_request;

#define HW_STREAM_WAITING_MAX (1024 * 1024) /* bytes that may wait for one client; then it is cut off */
#define HW_STREAM_TIMEOUT_S   10            /* how long a client may take nothing at all */

struct hw_stream_ops {
	void (*on_drained)(void *arg); /* all that was sent has been taken */
	void (*on_gone)(void *arg);    /* the client went away, was cut off, or the server stops; may free the stream */
};

struct hw_stream {
	struct evhttp_request *req;
	const struct hw_stream_ops *ops;
	void *arg;
};

/*
 * Where the client wants to go on: the header Last-Event-ID, as browsers send when they come back, or `after` in the
 * query; *text NULL if it does not say. `p` holds the text. Returns what is wrong with the query, or NULL.
 */
const char *hw_stream_place(struct evhttp_request *req, const char **text, struct hw_param *p);
/* Answers HEAD. */
void hw_stream_head(struct evhttp_request *req);

/* Readies caller's storage, and sends the head. */
void hw_stream_begin(struct hw_stream *s, struct evhttp_request *req, const struct hw_stream_ops *ops, void *arg);
/* Bytes that wait for the client to take them. */
size_t hw_stream_waiting(const struct hw_stream *s);
/* Sends what is in `body`, which is emptied. False: it was too much, and the client is gone. */
bool hw_stream_send(struct hw_stream *s, struct evbuffer *body);
/* The same for a text; without memory nothing is sent. */
bool hw_stream_send_text(struct hw_stream *s, const char *text, size_t len);
/* A comment now and then keeps what is between from closing a quiet connection, and finds out who has gone. False: the
 * client is gone. */
bool hw_stream_comment(struct hw_stream *s);
/* Ends it; on_gone() is called. */
void hw_stream_cut(struct hw_stream *s);

/* Writes the lines of an event up to its data: the caller appends that, without a line feed, and hw_stream_event_end().
 * `id` NULL: it has no place, and who comes back goes on behind the last that has one. */
void hw_stream_event(struct evbuffer *out, const char *name, const char *id);
void hw_stream_event_end(struct evbuffer *out);

#endif
