/* SPDX-License-Identifier: MIT */
/*
 * GET requests to another of our daemons, over HTTP on a unix socket. Limits: HW_FETCH_MAX requests at a time, a
 * timeout, and the size of an answer.
 */
#ifndef HW_HTTP_FETCH_H
#define HW_HTTP_FETCH_H

#include <stddef.h>

struct event_base;
struct hw_fetch;

#define HW_FETCH_MAX 8

/* Called when a request has ended. `status` 0: there was no complete answer within the timeout, or it was too long.
 * Otherwise `body` is the answer with a NUL at its end; it is valid during the call. Called from the loop, never
 * from hw_fetch_get(). May call hw_fetch_get(). */
typedef void hw_fetch_done(void *arg, long status, const char *body, size_t len);

/* Connects at the first request. `socket` is copied. Returns NULL if there is no memory. */
struct hw_fetch *hw_fetch_new(struct event_base *base, const char *socket, long timeout_ms, size_t max_bytes);
/* Cancels the open requests without calling done(). `f` may be NULL. */
void hw_fetch_free(struct hw_fetch *f);

/* Returns 0, -EBUSY if HW_FETCH_MAX is reached, or -ENOMEM. */
int hw_fetch_get(struct hw_fetch *f, const char *path, hw_fetch_done *done, void *arg);

#endif
