/* SPDX-License-Identifier: MIT */
/*
 * See resolve.h. The loop and the thread share a request; the last of the two that releases the request frees it. The
 * thread reports its end with one byte on a socket pair. If the request was cancelled, MSG_NOSIGNAL makes the write
 * harmless.
 */
#include "link/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct hw_resolve {
	atomic_int owners;
	int asker, worker; /* the two ends of the socket pair */
	char *host;
	char addresses[HW_ADDRESSES_MAX][HW_ADDRESS_TEXT];
	size_t n;
	const char *error;
	/* used by the loop only */
	struct event *ev;
	hw_resolved *fn;
	void *arg;
};

bool hw_resolve_literal(const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	char plain[INET6_ADDRSTRLEN];
	size_t len = strcspn(host, "%");
	if (inet_pton(AF_INET, host, bytes) == 1)
		return true;
	if (len >= sizeof(plain))
		return false;
	memcpy(plain, host, len);
	plain[len] = '\0';
	return inet_pton(AF_INET6, plain, bytes) == 1;
}

static void let_go(struct hw_resolve *q)
{
	if (atomic_fetch_sub(&q->owners, 1) != 1)
		return;
	if (q->asker >= 0)
		close(q->asker);
	if (q->worker >= 0)
		close(q->worker);
	free(q->host);
	free(q);
}

static void look_up(struct hw_resolve *q)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
	int rc = getaddrinfo(q->host, NULL, &hints, &list);
	if (rc != 0) {
		q->error = gai_strerror(rc);
		return;
	}
	for (struct addrinfo *a = list; a && q->n < HW_ADDRESSES_MAX; a = a->ai_next)
		if (getnameinfo(a->ai_addr, a->ai_addrlen, q->addresses[q->n], HW_ADDRESS_TEXT, NULL, 0,
		                NI_NUMERICHOST) == 0)
			q->n++;
	freeaddrinfo(list);
	if (q->n == 0)
		q->error = "no usable address";
}

static void *run(void *arg)
{
	struct hw_resolve *q = arg;
	look_up(q);
	ssize_t sent = send(q->worker, "", 1, MSG_NOSIGNAL);
	(void)sent; /* a failure means that the request was cancelled */
	let_go(q);
	return NULL;
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct hw_resolve *q = arg;
	char byte;
	(void)what;
	if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	q->fn(q->arg, (const char(*)[HW_ADDRESS_TEXT])q->addresses, q->n, q->error);
	event_free(q->ev);
	let_go(q);
}

/* Starts the thread, which blocks all signals, because the loop handles them. */
static int start_thread(struct hw_resolve *q)
{
	pthread_t thread;
	pthread_attr_t attr;
	sigset_t all, before;
	if (pthread_attr_init(&attr) != 0)
		return -ENOMEM;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, &attr, run, q);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

struct hw_resolve *hw_resolve_start(struct event_base *base, const char *host, hw_resolved *fn, void *arg)
{
	struct hw_resolve *q = calloc(1, sizeof(*q));
	int ends[2] = {-1, -1};
	if (!q)
		return NULL;
	atomic_init(&q->owners, 1);
	q->fn = fn;
	q->arg = arg;
	q->host = strdup(host);
	int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
	q->asker = ends[0];
	q->worker = ends[1];
	if (!q->host || rc != 0)
		goto fail;
	q->ev = event_new(base, q->asker, EV_READ | EV_PERSIST, on_answer, q);
	if (!q->ev || event_add(q->ev, NULL) != 0)
		goto fail;
	atomic_store(&q->owners, 2);
	if (start_thread(q) == 0)
		return q;
	atomic_store(&q->owners, 1);
fail:
	if (q->ev)
		event_free(q->ev);
	let_go(q);
	return NULL;
}

void hw_resolve_cancel(struct hw_resolve *q)
{
	event_free(q->ev);
	let_go(q);
}
