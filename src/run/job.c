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
	int bell_fd;
	struct event *bell;
	pthread_t thread;
	bool runs;
};

static void *run(void *arg)
{
	struct hw_job *j = arg;
	uint64_t one = 1;
	j->work(j->arg);
	ssize_t n = write(j->bell_fd, &one, sizeof(one));
	(void)n; /* the counter cannot be full */
	return NULL;
}

static void on_bell(evutil_socket_t fd, short what, void *arg)
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
	j->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	j->bell = j->bell_fd >= 0 ? event_new(base, j->bell_fd, EV_READ | EV_PERSIST, on_bell, j) : NULL;
	if (j->bell && event_add(j->bell, NULL) == 0)
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
	if (j->bell)
		event_free(j->bell);
	if (j->bell_fd >= 0)
		close(j->bell_fd);
	free(j);
}
