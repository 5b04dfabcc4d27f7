/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a request at an address is admitted. The API token is in `Authorization: Bearer TOKEN`, or is the
 * password of Basic together with the user's name. A request without a token gets 401. If a client address sends many
 * wrong tokens, heartwheel closes this address: further wrong tokens get 429, but a right token is still admitted.
 * Tokens have 256 random bits and cannot be guessed; closing only limits the load.
 */
#ifndef HW_HTTP_ACCESS_H
#define HW_HTTP_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/accounts.h"
#include "http/attempts.h"
#include "http/proxies.h"

struct evhttp_request;

/* The header with the admitted user's name, for the program that gets the request. */
#define HW_USER_HEADER "X-Heartwheel-User"

struct hw_access_stats {
	uint64_t admitted;
	uint64_t without; /* 401: no token, or an expired one */
	uint64_t wrong;   /* 401: a token of no user */
	uint64_t closed;  /* 429: wrong token from a closed address */
	uint64_t may_not; /* 403: the role does not allow it */
};

struct hw_access {
	struct hw_accounts accounts; /* owned */
	struct hw_proxies proxies;   /* proxies whose X-Forwarded-For is trusted */
	struct hw_attempts attempts;
	struct hw_access_stats stats;
	int64_t expired_s;    /* Unix time up to which expired tokens were looked for */
	uint64_t closings;    /* how often an address was closed */
	char last_closed[64]; /* address of the last closing */
};

/* Whether the request is admitted. If not, answers the request. `mono_ms`: a monotonic clock; `wall_s`: Unix time. */
bool hw_access_admit(struct hw_access *a, struct evhttp_request *req, int64_t mono_ms, int64_t wall_s);
/* Whether a request that was admitted before would still be admitted now. Neither answers the request nor counts it. */
bool hw_access_still_admits(const struct hw_access *a, struct evhttp_request *req, int64_t wall_s);
/* Whether the role of the admitted request's user allows requests that change something. */
bool hw_access_may_write(const struct hw_access *a, struct evhttp_request *req);

#endif
