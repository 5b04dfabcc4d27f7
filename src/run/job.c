/* SPDX-License-Identifier: MIT */
/* See job.h. The thread ends after its work, and wakes the loop with an eventfd. The loop joins it then. */
#include "run/job.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct hw_job {
	hw_job_fn *work, *done;
	void *arg;
	int wake_fd;
	struct event *wake;
	pthread_t thread;
	bool runs;
};

static void *run(void *arg)
{
	struct hw_job *j = arg;
	uint64_t one = 1;
	j->work(j->arg);
	ssize_t n = write(j->wake_fd, &one, sizeof(one));
	(void)n; /* the counter cannot be full */
	return NULL;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct hw_job *j = arg;
	uint64_t n;
	(void)what;
	if (read(fd, &n, sizeof(n)) != sizeof(n) || !j->runs)
		return;
	pthread_join(j->thread, NULL);
	j->runs = false;
	j->done(j->arg);
}

struct hw_job *hw_job_new(struct event_base *base, hw_job_fn *done, void *arg)
{
	struct hw_job *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->done = done;
	j->arg = arg;
	j->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	j->wake = j->wake_fd >= 0 ? event_new(base, j->wake_fd, EV_READ | EV_PERSIST, on_wake, j) : NULL;
	if (j->wake && event_add(j->wake, NULL) == 0)
		return j;
	hw_job_free(j);
	return NULL;
}

int hw_job_start(struct hw_job *j, hw_job_fn *work)
{
	sigset_t all, before;
	j->work = work;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* the loop handles the signals */
	j->runs = pthread_create(&j->thread, NULL, run, j) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return j->runs ? 0 : -EAGAIN;
}

void hw_job_free(struct hw_job *j)
{
	if (!j)
		return;
	if (j->runs)
		pthread_join(j->thread, NULL);
	if (j->wake)
		event_free(j->wake);
	if (j->wake_fd >= 0)
		close(j->wake_fd);
	free(j);
}
