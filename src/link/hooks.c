/* SPDX-License-Identifier: MIT */
/* See hooks.h. */
#include "link/hooks.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

#include "heartwheel/print.h"

struct hooks {
	redisAsyncContext *ac;
	struct event *read, *write;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	redisAsyncHandleRead(((struct hooks *)arg)->ac);
}

/* Makes hiredis give the connection up: if an error is set, hiredis neither reads nor writes, and closes the
 * connection. */
static void set_error(redisAsyncContext *ac)
{
	ac->c.err = REDIS_ERR_OOM;
	hw_print(ac->c.errstr, sizeof(ac->c.errstr), "out of memory");
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	redisAsyncContext *ac = ((struct hooks *)arg)->ac;
	(void)fd, (void)what;
	if (!ac->c.obuf)
		set_error(ac);
	redisAsyncHandleWrite(ac);
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

void hw_hooks_give_up(redisAsyncContext *ac)
{
	set_error(ac);
	ac->ev.addWrite(ac->ev.data);
}

bool hw_hooks_can_send(redisAsyncContext *ac)
{
	if (ac->c.obuf)
		return true;
	hw_hooks_give_up(ac);
	return false;
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
