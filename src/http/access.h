/* SPDX-License-Identifier: MIT */
/*
 * Whether a request that came in over an address is admitted: by its token, which stands in `Authorization: Bearer
 * TOKEN`, or is the password of Basic beside the user's name. A request without one is answered with 401. An address
 * that guesses is closed: its wrong tokens are answered with 429, and a right token is admitted all the same. A token
 * has 256 random bits, so closing only bounds what guesses cost.
 */
#ifndef HW_HTTP_ACCESS_H
#define HW_HTTP_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/accounts.h"
#include "http/attempts.h"
#include "http/proxies.h"

struct evhttp_request;

#define HW_USER_HEADER "X-Heartwheel-User" /* who was admitted, for the program that a request is passed on to */

struct hw_access_stats {
	uint64_t admitted;
	uint64_t without; /* 401: no token, or one that has expired */
	uint64_t wrong;   /* 401: nobody's token */
	uint64_t closed;  /* 429: from an address that is closed */
	uint64_t may_not; /* 403: the role does not allow it */
};

struct hw_access {
	struct hw_accounts accounts; /* owned */
	struct hw_proxies proxies;   /* whose X-Forwarded-For is believed */
	struct hw_attempts attempts;
	struct hw_access_stats stats;
	int64_t expired_s;    /* until then tokens have been looked at that expire */
	uint64_t closings;    /* how often an address was closed */
	char last_closed[64]; /* the last of them */
};

/* Whether it is admitted; otherwise it has been answered. `mono_ms`: a monotonic clock; `wall_s`: Unix time. */
bool hw_access_admit(struct hw_access *a, struct evhttp_request *req, int64_t mono_ms, int64_t wall_s);
/* Whether a request that was admitted would be admitted now. It is not answered, and not counted. */
bool hw_access_still_admits(const struct hw_access *a, struct evhttp_request *req, int64_t wall_s);

#endif
