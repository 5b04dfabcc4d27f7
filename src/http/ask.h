/* SPDX-License-Identifier: MIT */
/*
 * GET requests to others' web servers, of which nothing but the status counts. Bounded: HW_ASK_MAX under way at a time,
 * each for so long at most.
 */
#ifndef HW_HTTP_ASK_H
#define HW_HTTP_ASK_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct hw_ask;

#define HW_ASK_MAX 64

/* One has ended. `status` 0: no whole answer came in time. Called from the loop, never from hw_ask_get(); may ask. */
typedef void hw_ask_done(void *arg, uint64_t token, long status);

/* NULL without memory. */
struct hw_ask *hw_ask_new(struct event_base *base, long timeout_ms, hw_ask_done *done, void *arg);
/* Gives up what is under way; done() is not called. NULL may be given. */
void hw_ask_free(struct hw_ask *a);

/* How many more may be asked now. */
unsigned hw_ask_room(const struct hw_ask *a);
/* `token` comes back with done(). 0, -EBUSY without room, or -ENOMEM. */
int hw_ask_get(struct hw_ask *a, const char *url, uint64_t token);

#endif
