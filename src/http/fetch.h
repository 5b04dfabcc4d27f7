/* SPDX-License-Identifier: MIT */
/*
 * GET requests to another program that speaks HTTP on a unix socket, whose answers are taken whole. Bounded:
 * HW_FETCH_MAX under way at a time, each for so long at most, an answer of so many bytes at most.
 */
#ifndef HW_HTTP_FETCH_H
#define HW_HTTP_FETCH_H

#include <stddef.h>

struct event_base;
struct hw_fetch;

#define HW_FETCH_MAX 8

/* One has ended. `status` 0: no whole answer came in time, or it was too long; else `body` is what came, with a NUL
 * behind it, until this returns. Called from the loop, never from hw_fetch_get(); may ask. */
typedef void hw_fetch_done(void *arg, long status, const char *body, size_t len);

/* Nothing is connected before the first request. The text is copied. NULL without memory. */
struct hw_fetch *hw_fetch_new(struct event_base *base, const char *socket, long timeout_ms, size_t max_bytes);
/* Gives up what is under way; done() is not called. NULL may be given. */
void hw_fetch_free(struct hw_fetch *f);

/* 0, -EBUSY without room, or -ENOMEM. */
int hw_fetch_get(struct hw_fetch *f, const char *path, hw_fetch_done *done, void *arg);

#endif
