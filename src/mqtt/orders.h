/* SPDX-License-Identifier: MIT */
/* Orders from the loop to a thread: bits that are set until the thread takes them, and an eventfd that wakes the
 * thread. Header only. */
#ifndef HW_MQTT_ORDERS_H
#define HW_MQTT_ORDERS_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "mqtt/wake_fd.h"

enum {
	HW_ORDER_STOP = 1,      /* stays set */
	HW_ORDER_RETRY = 2,     /* connect again at once */
	HW_ORDER_RECONNECT = 4, /* close the connection, and open it again */
	HW_ORDER_DRAIN = 8,     /* report when the socket is empty */
	HW_ORDER_REPLAY = 16,   /* request retained messages again */
	HW_ORDER_RENEW = 32     /* the same on the filters with `renew` only */
};

struct hw_orders {
	int fd; /* readable when an order was given */
	atomic_uint given;
};

/* 0, or -1 without a descriptor. */
static inline int hw_orders_init(struct hw_orders *o)
{
	atomic_init(&o->given, 0);
	o->fd = hw_wake_fd_new();
	return o->fd >= 0 ? 0 : -1;
}

static inline void hw_orders_fini(struct hw_orders *o)
{
	if (o->fd >= 0)
		close(o->fd);
}

/* The loop's side: gives orders. 0 only wakes the thread. */
static inline void hw_orders_give(struct hw_orders *o, unsigned what)
{
	atomic_fetch_or(&o->given, what);
	hw_wake_fd_signal(o->fd);
}

/* The thread's side: takes the orders that were given since the last call. */
static inline unsigned hw_orders_take(struct hw_orders *o)
{
	return atomic_fetch_and(&o->given, HW_ORDER_STOP);
}

static inline bool hw_orders_stop(const struct hw_orders *o)
{
	return atomic_load(&o->given) & HW_ORDER_STOP;
}

/* Waits until an order comes, `fd` is readable (-1: none), or the timeout ends (-1: never). */
static inline void hw_orders_wait(struct hw_orders *o, int fd, int timeout_ms)
{
	struct pollfd fds[] = {{o->fd, POLLIN, 0}, {fd, POLLIN, 0}};
	poll(fds, 2, timeout_ms);
	hw_wake_fd_clear(o->fd);
}

#endif
