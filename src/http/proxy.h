/* SPDX-License-Identifier: MIT */
/*
 * Forwards a request to another of our daemons over HTTP on a unix socket, and returns the answer as it arrives. An
 * answer may have any size, or be an event stream without an end. For each request at most HW_PROXY_WAITING bytes and
 * one read of libcurl are buffered. While the client does not read, the other daemon must wait.
 *
 * Forwarded: method, path, query, body, and the headers Accept, Content-Type, If-None-Match, Last-Event-ID and
 * X-Heartwheel-User, which is the admitted user (access.h). Returned: status, body, and the headers Content-Type,
 * Content-Length, Content-Disposition, ETag, Allow, Cache-Control, Content-Security-Policy, Retry-After,
 * Heartwheel-Next, Heartwheel-As-Of.
 */
#ifndef HW_HTTP_PROXY_H
#define HW_HTTP_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct evhttp_request;
struct hw_proxy;

#define HW_PROXY_MAX       64 /* open requests; a further request gets 503 */
#define HW_PROXY_READS_MAX 48 /* open GET requests */
#define HW_PROXY_HTTP_MAX                                                                                              \
	40                   /* open GET requests of [http] listen; what remains of HW_PROXY_READS_MAX is for the unix \
	                      * socket */
#define HW_PROXY_USER_MAX 16 /* open GET requests of one user of [http] listen */
#define HW_PROXY_WAITING  (256 * 1024)

struct hw_proxy_stats {
	unsigned now;     /* under way */
	uint64_t passed;  /* the other program answered, with any status */
	uint64_t failed;  /* how often 503 was answered: the other daemon does not run or is silent, or its answer
	                   * was incomplete */
	uint64_t refused; /* 503: one of these limits */
};

/*
 * Connects at the first request. `patience_ms`: for how long the other daemon may be silent, before and during its
 * answer. Both texts are copied. Returns NULL if there is no memory.
 */
struct hw_proxy *hw_proxy_new(struct event_base *base, const char *name, const char *socket, long patience_ms);
/* Call after hw_http_fini(), when no request is open. */
void hw_proxy_free(struct hw_proxy *p);

/* Whether the other daemon's socket exists. This does not prove that the daemon answers. */
bool hw_proxy_is_there(const struct hw_proxy *p);

/* Answers the request with the other daemon's answer, or with 503 {"error":"NAME ..."}. */
void hw_proxy_forward(struct hw_proxy *p, struct evhttp_request *req);

/* Ends the open answers for whose requests `keeps` returns false. Returns their number. */
unsigned hw_proxy_break_off(struct hw_proxy *p, bool (*keeps)(const void *arg, struct evhttp_request *req),
                            const void *arg);

const struct hw_proxy_stats *hw_proxy_stats(const struct hw_proxy *p);

#endif
