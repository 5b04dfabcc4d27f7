/* SPDX-License-Identifier: MIT */
/*
 * Heartbeats of many devices as MQTT 5 PUBLISH packets of QoS 0. They are encoded once and all have the same length, so
 * a load generator only has to write them.
 */
#ifndef HW_BENCH_FRAMES_H
#define HW_BENCH_FRAMES_H

#include <stddef.h>

struct frames {
	unsigned char *all; /* n * len bytes */
	size_t n, len;
};

/* Encodes heartbeats with the topics nodes/sensor-0000000/heartbeat and so on, in this order. Returns 0 or -ENOMEM.
 * The caller frees `all`. */
int frames_make(struct frames *f, size_t n, const char *payload);
/* Shuffles the frames into a random order, which is always the same: devices do not send heartbeats in the order in
 * which they were first heard. */
void frames_shuffle(struct frames *f);

#endif
