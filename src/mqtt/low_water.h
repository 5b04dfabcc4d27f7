/* SPDX-License-Identifier: MIT */
/*
 * How many bytes must wait at the publisher's socket before its thread wakes.
 *
 * While the window is full, half of it must be acknowledged before the thread wakes: a wake-up for each acknowledgement
 * takes the time of the broker, which then has one message to read where it could have had ten.
 *
 * A broker that has not set TCP_NODELAY (mosquitto as it comes) sends the second acknowledgement only when it knows
 * that the first has arrived, which it learns from the next message. With such a one nothing is to be gained: its
 * acknowledgements come in bunches by themselves.
 *
 * Nor with one that says nothing at all: to look for less than the mark all the while would be to wake for nothing,
 * until it is given up. Its first byte is waited for, and what follows that is gathered again.
 */
#ifndef HW_MQTT_LOW_WATER_H
#define HW_MQTT_LOW_WATER_H

#include <stdbool.h>
#include <stddef.h>

#define HW_LOW_WATER_MS 2 /* for the bytes that are waited for to come */

struct hw_low_water {
	int bytes;       /* the socket's mark: it is readable once so many wait. Nobody else sets it */
	bool gathers;    /* it is for acknowledgements to gather, and the wait is to be short */
	unsigned failed; /* how often fewer came in time, weighed */
	unsigned vain;   /* waits in a row in which nothing came */
};

/* A new connection. */
void hw_low_water_begin(struct hw_low_water *w);
/* Something was acknowledged: the broker says something. */
void hw_low_water_answered(struct hw_low_water *w);
/* Before the wait. `acks`: how many acknowledgements to gather; 0: whatever comes is to wake the thread, if it is
 * `least` bytes. */
void hw_low_water_set(struct hw_low_water *w, int fd, unsigned acks, size_t least);
/* After it: whether the socket became readable. */
void hw_low_water_judge(struct hw_low_water *w, int fd, bool came);

#endif
