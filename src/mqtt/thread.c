/* SPDX-License-Identifier: MIT */
#include "mqtt/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "mqtt/clock.h"

int hw_thread_start(pthread_t *t, void *(*main)(void *), void *arg, const char *name)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(t, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_setname_np(*t, name);
	return -rc;
}

int hw_thread_end(pthread_t t, int64_t timeout_ms)
{
	int64_t until = hw_mqtt_clock_ns() + timeout_ms * HW_NS_PER_MS;
	struct timespec at = {.tv_sec = until / HW_NS_PER_S, .tv_nsec = until % HW_NS_PER_S};
	int rc = pthread_clockjoin_np(t, NULL, CLOCK_MONOTONIC, &at);
	if (rc == ETIMEDOUT)
		pthread_detach(t);
	return -rc;
}
