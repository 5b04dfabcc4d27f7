/* SPDX-License-Identifier: MIT */
/*
 * Passing a request on to another program that speaks HTTP on a unix socket, and its answer back, as it comes: an
 * answer may be of any size, or an event stream that never ends. What is held of one is at most HW_PROXY_WAITING bytes
 * and what libcurl has read at once; the other program waits while the client does not read.
 *
 * Passed on: the method, path and query, the body, and the headers Accept, Content-Type, If-None-Match, Last-Event-ID
 * and X-Heartwheel-User: who was admitted (access.h). Passed back: the status, the body, and Content-Type,
 * Content-Length, Content-Disposition, ETag, Allow, Cache-Control, Content-Security-Policy, Retry-After.
 */
#ifndef HW_HTTP_PROXY_H
#define HW_HTTP_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct evhttp_request;
struct hw_proxy;

#define HW_PROXY_MAX       64 /* requests under way; one more is answered with 503 */
#define HW_PROXY_READS_MAX 48 /* of these that only read */
#define HW_PROXY_WAITING   (256 * 1024)

struct hw_proxy_stats {
	unsigned now;     /* under way */
	uint64_t passed;  /* answered by the other program, whatever it said */
	uint64_t failed;  /* 503: not there, silent, or broken off in the middle */
	uint64_t refused; /* 503: HW_PROXY_MAX */
};

/*
 * Nothing is connected before the first request. `patience_ms` is how long the other program may be silent, before its
 * answer and in it. NULL without memory. Both texts are copied.
 */
struct hw_proxy *hw_proxy_new(struct event_base *base, const char *name, const char *socket, long patience_ms);
/* Requests that are under way must be gone: after hw_http_fini(). */
void hw_proxy_free(struct hw_proxy *p);

/* Whether the other program has a socket: not that it answers. */
bool hw_proxy_is_there(const struct hw_proxy *p);

/* Answers the request by what the other program says; 503 {"error":"NAME ..."} where it says nothing. */
void hw_proxy_forward(struct hw_proxy *p, struct evhttp_request *req);

/* Breaks off the answers under way whose request `keeps` refuses. Returns how many there were. */
unsigned hw_proxy_break_off(struct hw_proxy *p, bool (*keeps)(const void *arg, struct evhttp_request *req),
                            const void *arg);

const struct hw_proxy_stats *hw_proxy_stats(const struct hw_proxy *p);

#endif
