/* SPDX-License-Identifier: MIT */
/* hiredis' hooks on libevent: its own adapter checks no allocation. */
#ifndef HW_LINK_HOOKS_H
#define HW_LINK_HOOKS_H

#include <hiredis/async.h>

struct event_base;

/* A context that was just made is served by the loop from now on. 0 or -ENOMEM. A later lack of memory leaves the
 * connection silent: whoever owns it has to have a bound for that. */
int hw_hooks_attach(redisAsyncContext *ac, struct event_base *base);

#endif
