/* SPDX-License-Identifier: MIT */
/* Starts and ends the threads of the readers and the publisher. A thread that does not end in time is detached, and the
 * daemon goes on without it. */
#ifndef HW_MQTT_THREAD_H
#define HW_MQTT_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Starts a thread that blocks all signals. 0 or -errno. */
int hw_thread_start(pthread_t *t, void *(*main)(void *), void *arg, const char *name);
/* Joins the thread. If it has not ended after `timeout_ms`, detaches it and returns -ETIMEDOUT. */
int hw_thread_end(pthread_t t, int64_t timeout_ms);

#endif
