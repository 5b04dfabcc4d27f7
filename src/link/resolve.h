/* SPDX-License-Identifier: MIT */
/*
 * Resolves one host name in a thread, so that the loop does not wait. It uses getaddrinfo(), so nsswitch.conf applies.
 * The thread shares the request and may outlive its caller.
 */
#ifndef HW_LINK_RESOLVE_H
#define HW_LINK_RESOLVE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#define HW_ADDRESS_TEXT  (INET6_ADDRSTRLEN + 20) /* an address with its scope */
#define HW_ADDRESSES_MAX 8

struct event_base;
struct hw_resolve;

/* Called once, from the loop, with the result. `error` NULL: n > 0 addresses. Otherwise `error` is the reason of the
 * failure (static text). */
typedef void hw_resolved(void *arg, const char (*addresses)[HW_ADDRESS_TEXT], size_t n, const char *error);

/* Whether `host` is a numeric address. */
bool hw_resolve_literal(const char *host);

/* Starts a look-up. Returns NULL if that fails. The request ends when `fn` was called or when it is cancelled. */
struct hw_resolve *hw_resolve_start(struct event_base *base, const char *host, hw_resolved *fn, void *arg);
void hw_resolve_cancel(struct hw_resolve *q);

#endif
