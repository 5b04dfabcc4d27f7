/* SPDX-License-Identifier: MIT */
/*
 * Inside of the control API: what its files share. A handler is given a request whose path and method matched its line
 * of the route table in control.c, and answers it with one hw_reply*(), now or on a later turn of the loop.
 */
#ifndef HW_CONTROL_SERVER_H
#define HW_CONTROL_SERVER_H

#include <event2/util.h>

#include "control/control.h"
#include "control/socket.h"

struct event;
struct evbuffer;
struct evhttp;
struct evhttp_request;
struct evconnlistener;
struct hw_control;
struct hw_history;
struct hw_hub;
struct hw_json;
struct hw_pager;
struct hw_samples;

/* A place where clients come in. */
struct hw_front {
	struct hw_control *c;
	struct evhttp *http;             /* owns the listener and the connections */
	struct evconnlistener *listener; /* borrowed from http */
	struct event *pending;           /* somebody connects: is there a descriptor for him? */
	struct event *again;             /* ends a pause of the listener */
	bool read_only;
};

struct hw_control {
	struct event_base *base; /* borrowed */
	struct hw_front local;   /* the unix socket */
	struct hw_front remote;  /* http.listen; .http NULL: none */
	struct hw_socket socket;
	struct hw_pager *pager;
	struct hw_hub *hub;
	struct hw_history *history;
	struct hw_samples *samples;
	const struct hw_monitor *monitor; /* borrowed */
	const struct hw_control_ops *ops;
	void *arg;
};

/* `rest`: what follows the route's path, still percent-encoded; "" where the route ends with its path. */
typedef void hw_handler(struct hw_control *c, struct evhttp_request *req, const char *rest);

/* Answers with a JSON body, which is freed. NULL: no body. */
void hw_reply(struct evhttp_request *req, int code, struct evbuffer *body);
/* As hw_reply(), with a content type of its own. */
void hw_reply_as(struct evhttp_request *req, int code, const char *content_type, struct evbuffer *body);
/* Answers {"error":"why"}. */
void hw_reply_error(struct evhttp_request *req, int code, const char *why);

/* An answer under construction: its body, begun with '{'. hw_answer_end() closes that and sends it. */
struct evbuffer *hw_answer_begin(struct evhttp_request *req, struct hw_json *j);
void hw_answer_end(struct evhttp_request *req, struct hw_json *j, struct evbuffer *body);
/* A number of a query, from 1 to `max`: NULL and *out, or what is wrong. */
const char *hw_query_limit(const char *text, size_t len, unsigned max, unsigned *out);

/* observe.c: the daemon as a whole. */
hw_handler hw_serve_status, hw_serve_groups, hw_serve_health, hw_serve_ready, hw_serve_metrics, hw_serve_wheel;

/* devices.c: single devices. */
hw_handler hw_serve_device, hw_serve_forget;
/* Whether the outside knows of it: not provisional, not forgotten. */
bool hw_device_visible(const struct hw_device *d);
/* The members of a device. */
void hw_write_device(struct hw_json *j, const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);
/* The members of a device as they were after a transition. */
void hw_write_event(struct hw_json *j, const struct hw_monitor *m, const struct hw_event *e);

/* list.c: the list, which is written over several turns of the loop. */
hw_handler hw_serve_list;
struct hw_pager *hw_pager_new(struct hw_control *c);
/* Once all connections are closed. */
void hw_pager_free(struct hw_pager *p);

/* history.c: the last transitions, in memory. */
#define HW_HISTORY 10000
hw_handler hw_serve_transitions, hw_serve_device_events;
struct hw_history *hw_history_new(void);
void hw_history_free(struct hw_history *h);
/* Remembers a transition; the oldest gives way. Without memory it is left out. */
void hw_history_add(struct hw_history *h, const struct hw_event *e);
/* What is behind a place, at most `cap` of it, into `page` and `events`. Valid until the next hw_history_add(). */
void hw_history_after(const struct hw_history *h, struct hw_event_id at, struct hw_event *events, size_t cap,
                      struct hw_event_page *page);

/* events.c: the event stream's clients. */
hw_handler hw_serve_events;
struct hw_hub *hw_hub_new(struct hw_control *c);
/* Once all connections are closed. */
void hw_hub_free(struct hw_hub *h);

/* samples.c: the last hour. */
hw_handler hw_serve_samples;
struct hw_samples *hw_samples_new(void);
void hw_samples_free(struct hw_samples *s);
/* Heartbeats a second, over the last few; transitions in the last minute. */
double hw_samples_rate(const struct hw_samples *s);

/* web.c: the dashboard's files. `rest`: a file's name, "" for the page. */
hw_handler hw_serve_web;

#endif
