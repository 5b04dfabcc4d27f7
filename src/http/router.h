/* SPDX-License-Identifier: MIT */
/* From a request's method and path to its handler, by a table that the program brings. */
#ifndef HW_HTTP_ROUTER_H
#define HW_HTTP_ROUTER_H

#include <event2/http.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Answers a request, now or on a later turn of the loop. `arg`: the program's, of its table. `rest`: what the path has
 * in the place of the route's open level, still percent-encoded; "" where the route has none. Valid for the call.
 */
typedef void hw_http_handler(void *arg, struct evhttp_request *req, const char *rest);

struct hw_http_route {
	enum evhttp_cmd_type method; /* EVHTTP_REQ_GET is HEAD too */
	const char *path;            /* one that ends in '/' takes one more level, then `tail`; any other only itself */
	const char *tail;            /* NULL: the path itself, and whatever stands below it */
	hw_http_handler *serve;
};

struct hw_http_table {
	const struct hw_http_route *routes;
	size_t n;
	const char *const
		*open; /* paths, as in a route without a tail, that need no token; NULL ends them; NULL: none */
};

/* Whether whoever reaches the server may have what is there. */
bool hw_http_is_open(const struct hw_http_table *t, const char *path);

/* Whether a request is for its route's handler now; otherwise it has been answered. */
typedef bool hw_http_admits(void *arg, struct evhttp_request *req, const struct hw_http_route *route);

/* Calls the handler, or answers 404 or 405. `read_only`: only GET has handlers. `admits`: NULL, all are admitted. */
void hw_http_route(const struct hw_http_table *t, hw_http_admits *admits, bool read_only, struct evhttp_request *req,
                   void *arg);

#endif
