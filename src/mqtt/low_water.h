/* SPDX-License-Identifier: MIT */
/*
 * Decides how many bytes the publisher's socket must contain before its thread wakes up.
 *
 * While the window is full, half of it must be acknowledged before the thread wakes up. If each acknowledgement woke
 * the thread, the broker would find one message to read instead of ten, and would be slower.
 *
 * A broker without TCP_NODELAY (mosquitto's default) sends the second acknowledgement only when the next message shows
 * that the first one has arrived. Waiting gains nothing there, because the acknowledgements arrive in batches anyway.
 *
 * While the broker is silent, waiting is useless too: each wait would end in a useless wake-up. So after VAIN_MOST such
 * waits, the first byte wakes the thread. After that, bytes are gathered again.
 */
#ifndef HW_MQTT_LOW_WATER_H
#define HW_MQTT_LOW_WATER_H

#include <stdbool.h>
#include <stddef.h>

#define HW_LOW_WATER_MS 2 /* how long to wait for the bytes */

struct hw_low_water {
	int bytes;       /* SO_RCVLOWAT of the socket. No other code sets it */
	bool gathers;    /* the wait is short, to gather acknowledgements */
	unsigned failed; /* weighted count of waits in which too few bytes came */
	unsigned vain;   /* consecutive waits in which no byte came */
};

/* Called for each new connection. */
void hw_low_water_begin(struct hw_low_water *w);
/* Called when a status was acknowledged: the broker is not silent. */
void hw_low_water_answered(struct hw_low_water *w);
/* Called before the wait. `acks`: the number of acknowledgements to gather; 0: any data of at least `least` bytes
 * wakes the thread. */
void hw_low_water_set(struct hw_low_water *w, int fd, unsigned acks, size_t least);
/* Called after the wait. Records for hw_low_water_set() whether the wait for several acknowledgements was worthwhile.
 * `came`: poll() reported an event on the socket. */
void hw_low_water_judge(struct hw_low_water *w, int fd, bool came);

#endif
