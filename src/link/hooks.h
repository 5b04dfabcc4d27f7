/* SPDX-License-Identifier: MIT */
/* Connects hiredis to libevent. hiredis' own adapter does not check its allocations. */
#ifndef HW_LINK_HOOKS_H
#define HW_LINK_HOOKS_H

#include <hiredis/async.h>
#include <stdbool.h>

struct event_base;

/* Lets the loop serve a new context. Returns 0 or -ENOMEM. If memory runs out later, the connection gets no more
 * events, so its owner needs a timeout. */
int hw_hooks_attach(redisAsyncContext *ac, struct event_base *base);

/* Whether a command can be sent. Must return true before each command. hiredis 0.14 does not check the allocation of
 * its output buffer, and uses the buffer at the next command or write. If there is no buffer, this function returns
 * false, and gives the connection up in the next turn of the loop. */
bool hw_hooks_can_send(redisAsyncContext *ac);

/* Gives the connection up in the next turn of the loop, because there is no memory. */
void hw_hooks_give_up(redisAsyncContext *ac);

#endif
