/* SPDX-License-Identifier: MIT */
/* Maps a request's method and path to a handler, by the program's table. */
#ifndef HW_HTTP_ROUTER_H
#define HW_HTTP_ROUTER_H

#include <event2/http.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Answers a request, at once or in a later turn of the loop. `arg`: the program's argument. `rest`: the level of the
 * path that the route leaves open, still percent-encoded; "" if the route has none. Valid during the call.
 */
typedef void hw_http_handler(void *arg, struct evhttp_request *req, const char *rest);

struct hw_http_route {
	enum evhttp_cmd_type method; /* EVHTTP_REQ_GET includes HEAD */
	const char *path;            /* the exact path; after a final '/', one more level and then `tail` must follow */
	const char *tail;            /* NULL: matches the path and everything below it */
	hw_http_handler *serve;
};

struct hw_http_table {
	const struct hw_http_route *routes;
	size_t n;
	const char *const *open; /* paths that need no API token, matched like routes; ends with NULL; NULL: none */
};

/* Whether the path needs no token. */
bool hw_http_is_open(const struct hw_http_table *t, const char *path);

/* Whether the handler of a route may run now. If not, this function has answered the request. */
typedef bool hw_http_admits(void *arg, struct evhttp_request *req, const struct hw_http_route *route);

/* Calls the handler, or answers 404 or 405. `read_only`: only routes for GET count. `admits` NULL: every request is
 * admitted. */
void hw_http_route(const struct hw_http_table *t, hw_http_admits *admits, bool read_only, struct evhttp_request *req,
                   void *arg);

#endif
