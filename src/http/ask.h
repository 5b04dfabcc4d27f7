/* SPDX-License-Identifier: MIT */
/*
 * GET requests to other web servers, of whose answers only the status is used. Limits: HW_ASK_MAX requests at a time,
 * and a timeout for each.
 */
#ifndef HW_HTTP_ASK_H
#define HW_HTTP_ASK_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct hw_ask;

#define HW_ASK_MAX 64

/* Called when a request has ended. `status` 0: there was no complete answer within the timeout. Called from the
 * loop, never from hw_ask_get(). May call hw_ask_get(). */
typedef void hw_ask_done(void *arg, uint64_t request_id, long status);

/* Returns NULL if there is no memory. */
struct hw_ask *hw_ask_new(struct event_base *base, long timeout_ms, hw_ask_done *done, void *arg);
/* Cancels the open requests without calling done(). `a` may be NULL. */
void hw_ask_free(struct hw_ask *a);

/* How many more requests are possible now. */
unsigned hw_ask_room(const struct hw_ask *a);
/* Starts a request. `request_id` is passed to done(). Returns 0, -EBUSY if HW_ASK_MAX is reached, or -ENOMEM. */
int hw_ask_get(struct hw_ask *a, const char *url, uint64_t request_id);

#endif
