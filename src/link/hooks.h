/* SPDX-License-Identifier: MIT */
/* Connects hiredis to libevent. The adapter of hiredis itself checks no allocation. */
#ifndef HW_LINK_HOOKS_H
#define HW_LINK_HOOKS_H

#include <hiredis/async.h>
#include <stdbool.h>

struct event_base;

/* Lets the loop serve a new context. Returns 0 or -ENOMEM. If memory runs out later, the connection gets no more
 * events, so its owner needs a timeout. */
int hw_hooks_attach(redisAsyncContext *ac, struct event_base *base);

/* Must be true before each command. hiredis 0.14 does not check the allocation of its output buffer, and reads the
 * buffer at the next command or write. If the buffer is missing, this returns false, and the connection is lost in the
 * next turn of the loop. */
bool hw_hooks_can_send(redisAsyncContext *ac);

/* Gives the connection up for lack of memory, in the next turn of the loop. */
void hw_hooks_give_up(redisAsyncContext *ac);

#endif
