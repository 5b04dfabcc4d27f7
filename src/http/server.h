/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server on the loop, by libevent's evhttp: on a unix socket, and for reading alone on an address. What bounds
 * a client: the size of its headers and body, what is read ahead of an answer, and 30 s without a byte.
 */
#ifndef HW_HTTP_SERVER_H
#define HW_HTTP_SERVER_H

#include <stdbool.h>

#include "http/router.h"
#include "http/socket.h"

struct event;
struct event_base;
struct evconnlistener;
struct evhttp;
struct hw_http;

/* A place where clients come in. */
struct hw_http_front {
	struct hw_http *h;
	struct evhttp *http;             /* owns the listener and the connections */
	struct evconnlistener *listener; /* borrowed from http */
	struct event *pending;           /* somebody connects: is there a descriptor for him? */
	struct event *again;             /* ends a pause of the listener */
	bool read_only;
	bool unarmed; /* `again` could not be armed: hw_http_tick() does it */
};

struct hw_http {
	struct event_base *base;           /* borrowed */
	const struct hw_http_table *table; /* borrowed */
	hw_http_admits *admits;            /* NULL; the program may set it */
	void *arg;                         /* of the handlers */
	struct hw_http_front local;        /* the unix socket */
	struct hw_http_front remote;       /* .http NULL: none */
	struct hw_socket socket;
};

/* Readies caller's storage; it listens nowhere yet. The process must ignore SIGPIPE: libevent writes to clients that
 * have gone. */
void hw_http_init(struct hw_http *h, struct event_base *base, const struct hw_http_table *table, void *arg);
/* Serves the unix socket `path`: see hw_socket_listen() for what it returns. */
int hw_http_listen(struct hw_http *h, const char *path, const char *group);
/* Serves what only reads on a TCP address as well: see hw_socket_listen_tcp(). */
int hw_http_listen_tcp(struct hw_http *h, const char *address, bool *local);
/* Each second: what a timer that found no memory has left undone. */
void hw_http_tick(struct hw_http *h);
/*
 * The listening sockets alone, for another server of this process, on another loop perhaps. Take them before
 * hw_http_fini(), which then leaves the socket file: whoever connects meanwhile waits. Both own nothing if they fail:
 * hw_http_keep() -errno, hw_http_resume() -ENOMEM.
 */
struct hw_http_kept {
	struct hw_socket socket;
	int remote; /* -1: there was none */
};
int hw_http_keep(struct hw_http *h, struct hw_http_kept *out);
int hw_http_resume(struct hw_http *h, struct hw_http_kept *kept);
/* Of one that was not taken over: closes them. */
void hw_http_kept_fini(struct hw_http_kept *kept);

/* Closes the listeners and every connection, and removes the socket. Not from a handler. */
void hw_http_fini(struct hw_http *h);

#endif
