/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server on the loop, with libevent's evhttp: on a unix socket, whose file mode controls access, and on an
 * address. The address is read-only unless users with API tokens are configured. TLS is optional. Limits for each
 * client: the size of headers and body, the bytes that are read before an answer is sent, and 30 s without a byte.
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

/* A listening socket of the server. */
struct hw_http_front {
	struct hw_http *h;
	struct evhttp *http;             /* owns the listener and the connections */
	struct evconnlistener *listener; /* borrowed from http */
	struct event *pending; /* a client is about to connect: this event runs before the listener accepts, and
	                        * checks for a free descriptor */
	struct event *again;   /* ends a pause of the listener */
	bool remote;           /* this is the address (not the unix socket): read-only unless users are configured,
	                        * perhaps with TLS */
	bool any;              /* the address stands for all addresses of the machine */
	bool unarmed;          /* event_add of `again` failed: hw_http_tick() repeats it */
};

#define HW_HTTP_TIMEOUT_S 30

#define HW_HTTP_BODY_MAX (64 * 1024) /* bytes of a request's body; default of body_max */

struct hw_http {
	struct event_base *base;           /* borrowed */
	const struct hw_http_table *table; /* borrowed */
	hw_http_admits *admits;            /* may be NULL; set by the program */
	void *arg;                         /* of the handlers */
	size_t body_max;                   /* may be set before the server listens */
	size_t body_max_local;             /* the same for the unix socket alone; 0: body_max */
	/* whether HW_USER_HEADER is accepted from a client of the unix socket that runs as this process's user or as
	 * root, as the daemon that forwards requests. Set by the program */
	bool believes_family;
	bool keeps_reserve;          /* whether clients of the unix socket may not use the reserved descriptors either
	                              * (capacity.h). Set by a program whose other connections are more important
	                              */
	struct hw_http_front local;  /* the unix socket */
	struct hw_http_front remote; /* .http NULL: no address */
	struct hw_socket socket;
	struct hw_access *access; /* owned; NULL: each client of the address may read */
	char *names;              /* owned; names of this server's host, for hw_origin_is_host(); NULL: none */
	uint64_t crowded;         /* how many connections of the address were closed to make room */
	uint64_t foreign;         /* requests with a foreign Host or Origin */
	struct hw_tls *tls;       /* owned; NULL: TLS was never configured */
	bool encrypted;           /* new connections of the address use TLS */
};

/* Initialises the caller's storage; does not listen yet. The process must ignore SIGPIPE, because libevent may write to
 * a closed connection. */
void hw_http_init(struct hw_http *h, struct event_base *base, const struct hw_http_table *table, void *arg);
/* Serves the unix socket `path`. Returns as hw_socket_listen(). */
int hw_http_listen(struct hw_http *h, const char *path, const char *group);
/* Also serves a TCP address, read-only unless users are configured. Returns as hw_socket_listen_tcp(). */
int hw_http_listen_tcp(struct hw_http *h, const char *address, bool *local);

/* Users and TLS of the address: paths of files and lists; "": none. */
struct hw_http_safety {
	const char *users;              /* see accounts.h */
	const char *tls_cert, *tls_key; /* both or none */
	const char *names;              /* see origin.h */
	const char *trusted_proxies;    /* see proxies.h */
};
/* Reports an error: the key of [http], the line in that key's file (0: the whole file), and what is wrong. */
typedef void hw_http_wrong(void *arg, const char *key, unsigned line, const char *what);
/* The content of these files, all owned. Zeroed: empty. */
struct hw_http_plan {
	struct hw_access *access;
	char *names;
	struct hw_tls *tls; /* set if the server had none before */
	struct ssl_ctx_st *files;
};
/*
 * hw_http_plan() reads these files, and returns 0, or -errno after each error was reported. hw_http_take() applies the
 * plan to later requests and connections, and cannot fail. It writes which users differ to `users` (`cap`: at least
 * 32), as hw_accounts_diff() does. hw_http_plan_fini() must be called in any case.
 */
int hw_http_plan(struct hw_http *h, const struct hw_http_safety *s, struct hw_http_plan *out, hw_http_wrong *wrong,
                 void *arg);
void hw_http_take(struct hw_http *h, struct hw_http_plan *p, char *users, size_t cap);
void hw_http_plan_fini(struct hw_http_plan *p);
/* Whether a request that a handler is answering would still be admitted. Used during long answers, because the user may
 * lose the right meanwhile. */
bool hw_http_still_admits(const struct hw_http *h, struct evhttp_request *req);
/* Whether the request came on a unix socket. */
bool hw_http_is_local(struct evhttp_request *req);
/* Whether the client of this request may also send requests that change something. */
bool hw_http_may_write(const struct hw_http *h, struct evhttp_request *req);
/* Both steps at once, before hw_http_listen_tcp(). */
int hw_http_secure(struct hw_http *h, const struct hw_http_safety *s, hw_http_wrong *wrong, void *arg);

/* What the address has refused since the start. */
struct hw_http_refused {
	uint64_t without, wrong, closed, may_not; /* see struct hw_access_stats */
	uint64_t foreign, crowded;                /* see struct hw_http */
	uint64_t handshakes_cut, handshakes;      /* see struct hw_tls_stats */
	uint64_t closings;                        /* how often an address was closed because of wrong tokens */
	const char *last_closed;                  /* the address of the last closing; "": none */
};
struct hw_http_refused hw_http_refused(const struct hw_http *h);

/* Whether a token has expired since the last call. */
bool hw_http_api_token_expired(struct hw_http *h);
/* Called once a second. Ends slow handshakes, and repeats an event_add() that failed. */
void hw_http_tick(struct hw_http *h);
/*
 * Passes the listening sockets to another server in this process, perhaps on another loop. hw_http_keep() is called
 * before hw_http_fini(), which then does not remove the socket file. Clients that connect meanwhile wait. After an
 * error the sockets stay where they are: hw_http_keep() returns -errno, hw_http_resume() returns -ENOMEM.
 */
struct hw_http_kept {
	struct hw_socket socket;
	int remote;               /* -1: no address */
	struct hw_access *access; /* as in struct hw_http */
	char *names;
	struct hw_tls *tls;
	bool encrypted;
};
int hw_http_keep(struct hw_http *h, struct hw_http_kept *out);
int hw_http_resume(struct hw_http *h, struct hw_http_kept *kept);
/* Closes sockets that no server has taken over. */
void hw_http_kept_fini(struct hw_http_kept *kept);

/* Closes the listeners and all connections, and removes the socket file. Must not be called from a handler. */
void hw_http_fini(struct hw_http *h);

#endif
