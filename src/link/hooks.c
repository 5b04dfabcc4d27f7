/* SPDX-License-Identifier: MIT */
/* See hooks.h. */
#include "link/hooks.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

struct hooks {
	redisAsyncContext *ac;
	struct event *read, *write;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	redisAsyncHandleRead(((struct hooks *)arg)->ac);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	redisAsyncHandleWrite(((struct hooks *)arg)->ac);
}

static void add_read(void *arg)
{
	event_add(((struct hooks *)arg)->read, NULL);
}

static void del_read(void *arg)
{
	event_del(((struct hooks *)arg)->read);
}

static void add_write(void *arg)
{
	event_add(((struct hooks *)arg)->write, NULL);
}

static void del_write(void *arg)
{
	event_del(((struct hooks *)arg)->write);
}

static void clean_up(void *arg)
{
	struct hooks *h = arg;
	if (h->read)
		event_free(h->read);
	if (h->write)
		event_free(h->write);
	free(h);
}

int hw_hooks_attach(redisAsyncContext *ac, struct event_base *base)
{
	struct hooks *h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->ac = ac;
	h->read = event_new(base, ac->c.fd, EV_READ | EV_PERSIST, on_readable, h);
	h->write = event_new(base, ac->c.fd, EV_WRITE | EV_PERSIST, on_writable, h);
	if (!h->read || !h->write) {
		clean_up(h);
		return -ENOMEM;
	}
	ac->ev.addRead = add_read;
	ac->ev.delRead = del_read;
	ac->ev.addWrite = add_write;
	ac->ev.delWrite = del_write;
	ac->ev.cleanup = clean_up;
	ac->ev.data = h;
	return 0;
}
