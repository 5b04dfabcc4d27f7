/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server on the loop, by libevent's evhttp: on a unix socket, whose mode says who may use it, and on an
 * address: there for reading alone, or for users by their tokens, and with TLS where that is set. What bounds a client:
 * the size of its headers and body, what is read ahead of an answer, and 30 s without a byte.
 */
#ifndef HW_HTTP_SERVER_H
#define HW_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/router.h"
#include "http/socket.h"

struct event;
struct event_base;
struct evconnlistener;
struct evhttp;
struct hw_access;
struct hw_http;
struct hw_tls;

/* A place where clients come in. */
struct hw_http_front {
	struct hw_http *h;
	struct evhttp *http;             /* owns the listener and the connections */
	struct evconnlistener *listener; /* borrowed from http */
	struct event *pending;           /* somebody connects: is there a descriptor for him? */
	struct event *again;             /* ends a pause of the listener */
	bool remote;  /* an address: for reading alone unless there are users, and with TLS where that is set */
	bool any;     /* an address that stands for every address of the machine */
	bool unarmed; /* `again` could not be armed: hw_http_tick() does it */
};

#define HW_HTTP_TIMEOUT_S 30

#define HW_HTTP_BODY_MAX (64 * 1024) /* bytes of a request's body, unless the program says otherwise */

struct hw_http {
	struct event_base *base;           /* borrowed */
	const struct hw_http_table *table; /* borrowed */
	hw_http_admits *admits;            /* NULL; the program may set it */
	void *arg;                         /* of the handlers */
	size_t body_max;                   /* the program may set it before it listens */
	/* HW_USER_HEADER is believed of a client of the unix socket that runs as this process does, or as root: of the
	 * daemon that passes requests on. The program may set it. */
	bool believes_family;
	struct hw_http_front local;  /* the unix socket */
	struct hw_http_front remote; /* .http NULL: none */
	struct hw_socket socket;
	struct hw_access *access; /* owned; NULL: whoever reaches the address may read */
	char *names;              /* owned; host names of the address, as hw_origin_is_host() takes them; NULL: none */
	uint64_t crowded;         /* connections of the address that were closed to make room */
	uint64_t foreign;         /* requests that named another host, or came from a page of another origin */
	struct hw_tls *tls;       /* owned; NULL: there never was any */
	bool encrypted;           /* TLS on the address, from now on */
};

/* Readies caller's storage; it listens nowhere yet. The process must ignore SIGPIPE: libevent writes to clients that
 * have gone. */
void hw_http_init(struct hw_http *h, struct event_base *base, const struct hw_http_table *table, void *arg);
/* Serves the unix socket `path`: see hw_socket_listen() for what it returns. */
int hw_http_listen(struct hw_http *h, const char *path, const char *group);
/* Serves a TCP address as well, for reading alone unless it has users: see hw_socket_listen_tcp(). */
int hw_http_listen_tcp(struct hw_http *h, const char *address, bool *local);

/* Whom the address admits, and how it is spoken to there: files, "" for none. */
struct hw_http_safety {
	const char *users;              /* see accounts.h */
	const char *tls_cert, *tls_key; /* both or none */
	const char *names;              /* see origin.h */
	const char *trusted_proxies;    /* see proxies.h */
};
/* Told of what is wrong: the key of [http], the line of the file it names (0: the file as a whole), and what. */
typedef void hw_http_wrong(void *arg, const char *key, unsigned line, const char *what);
/* What these files say. Zeroed: nothing; all of it is owned. */
struct hw_http_plan {
	struct hw_access *access;
	char *names;
	struct hw_tls *tls; /* where there was none before */
	struct ssl_ctx_st *files;
};
/*
 * Reads these files. 0, or -errno when each thing that is wrong was told. Nothing changes before hw_http_take(), which
 * cannot fail: for requests and connections from then on. It writes into `users`, of `cap` bytes (at least 32), which
 * users differ, as hw_accounts_diff() does. hw_http_plan_fini() in any case.
 */
int hw_http_plan(struct hw_http *h, const struct hw_http_safety *s, struct hw_http_plan *out, hw_http_wrong *wrong,
                 void *arg);
void hw_http_take(struct hw_http *h, struct hw_http_plan *p, char *users, size_t cap);
void hw_http_plan_fini(struct hw_http_plan *p);
/* Whether a request that was handed to a handler would be handed to it now: its user may have lost the right. For
 * answers that last. */
bool hw_http_still_admits(const struct hw_http *h, struct evhttp_request *req);
/* Both at once, before hw_http_listen_tcp(). */
int hw_http_secure(struct hw_http *h, const struct hw_http_safety *s, hw_http_wrong *wrong, void *arg);

/* What was not admitted at the address since the start. */
struct hw_http_refused {
	uint64_t without, wrong, closed, may_not; /* see struct hw_access_stats */
	uint64_t foreign, crowded;                /* see struct hw_http */
	uint64_t handshakes_cut, handshakes;      /* see struct hw_tls_stats */
	uint64_t closings;                        /* how often an address was closed for its wrong tokens */
	const char *last_closed;                  /* the last of them; "": none */
};
struct hw_http_refused hw_http_refused(const struct hw_http *h);

/* Whether a token has expired since the last call. */
bool hw_http_token_expired(struct hw_http *h);
/* Each second: handshakes that take too long, and what a timer that found no memory has left undone. */
void hw_http_tick(struct hw_http *h);
/*
 * The listening sockets alone, for another server of this process, on another loop perhaps. Take them before
 * hw_http_fini(), which then leaves the socket file: whoever connects meanwhile waits. Both own nothing if they fail:
 * hw_http_keep() -errno, hw_http_resume() -ENOMEM.
 */
struct hw_http_kept {
	struct hw_socket socket;
	int remote;               /* -1: there was none */
	struct hw_access *access; /* as in struct hw_http, of which they are taken */
	char *names;
	struct hw_tls *tls;
	bool encrypted;
};
int hw_http_keep(struct hw_http *h, struct hw_http_kept *out);
int hw_http_resume(struct hw_http *h, struct hw_http_kept *kept);
/* Of one that was not taken over: closes them. */
void hw_http_kept_fini(struct hw_http_kept *kept);

/* Closes the listeners and every connection, and removes the socket. Not from a handler. */
void hw_http_fini(struct hw_http *h);

#endif
