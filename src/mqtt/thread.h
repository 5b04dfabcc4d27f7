/* SPDX-License-Identifier: MIT */
/* The threads of the readers and the publisher: started by the loop, and left behind when they do not end in time. */
#ifndef HW_MQTT_THREAD_H
#define HW_MQTT_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Starts a thread that blocks all signals. 0 or -errno. */
int hw_thread_start(pthread_t *t, void *(*main)(void *), void *arg, const char *name);
/* Joins, or leaves the thread to itself when it has not ended after `timeout_ms`: then -ETIMEDOUT. */
int hw_thread_end(pthread_t t, int64_t timeout_ms);

#endif
