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
struct hw_pager;

struct hw_control {
	struct event_base *base;         /* borrowed */
	struct evhttp *http;             /* owns the listener and the connections */
	struct evconnlistener *listener; /* borrowed from http */
	struct event *pending;           /* somebody connects: is there a descriptor for him? */
	struct event *again;             /* ends a pause of the listener */
	struct hw_socket socket;
	struct hw_pager *pager;
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

/* observe.c: the daemon as a whole. */
hw_handler hw_serve_status, hw_serve_health, hw_serve_ready, hw_serve_metrics;

/* devices.c: the list, which is written over several turns of the loop, and single devices. */
hw_handler hw_serve_list, hw_serve_device, hw_serve_forget;
struct hw_pager *hw_pager_new(struct hw_control *c);
/* Once all connections are closed. */
void hw_pager_free(struct hw_pager *p);

#endif
