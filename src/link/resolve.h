/* SPDX-License-Identifier: MIT */
/*
 * One look-up of a host name, off the loop: getaddrinfo() (so whatever nsswitch.conf says holds) in a thread that owns
 * half of the request and may outlive its asker.
 */
#ifndef HW_LINK_RESOLVE_H
#define HW_LINK_RESOLVE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#define HW_ADDRESS_TEXT  (INET6_ADDRSTRLEN + 20) /* with a scope */
#define HW_ADDRESSES_MAX 8

struct event_base;
struct hw_resolve;

/* `error` is NULL and n > 0, or `error` says why there is none (static). Called once, from the loop. */
typedef void hw_resolved(void *arg, const char (*addresses)[HW_ADDRESS_TEXT], size_t n, const char *error);

/* Whether `host` is an address already. */
bool hw_resolve_literal(const char *host);

/* Starts a look-up. NULL if it cannot be started. The request is over once `fn` is called or it is cancelled. */
struct hw_resolve *hw_resolve_start(struct event_base *base, const char *host, hw_resolved *fn, void *arg);
void hw_resolve_cancel(struct hw_resolve *q);

#endif
