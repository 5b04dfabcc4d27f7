/* SPDX-License-Identifier: MIT */
/* See server.h. Invariant: every request that evhttp hands over is answered exactly once. */
#include "http/server.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/refusal.h"

#define HEADERS_MAX (16 * 1024)
#define BODY_MAX    (64 * 1024)
/* evhttp wants a whole body in its input; beyond that it reads requests that have not been asked for yet. */
#define READ_AHEAD_MAX (BODY_MAX + 2 * HEADERS_MAX)
#define TIMEOUT_S      30

static void on_request(struct evhttp_request *req, void *arg)
{
	const struct hw_http_front *front = arg;
	hw_http_route(front->h->table, front->h->admits, front->read_only, req, front->h->arg);
}

/*
 * As evhttp would make it, but with a bound: evhttp goes on reading while it writes an answer, and would keep all that
 * a client pours in meanwhile.
 */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
	(void)arg;
	if (!bev)
		return NULL; /* evhttp tries once more by itself */
	bufferevent_setwatermark(bev, EV_READ, 0, READ_AHEAD_MAX);
	hw_refusal_watch(bev);
	return bev;
}

/*
 * Somebody connects. Without a descriptor for him the listening socket stays readable and the loop would spin: stop
 * listening for a second. (This runs before the listener's own callback; its error callback is not told whose it is.)
 */
static void on_pending(evutil_socket_t fd, short what, void *arg)
{
	struct hw_http_front *front = arg;
	struct timeval second = {1, 0};
	int spare = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* as much as accept() takes */
	(void)fd;
	(void)what;
	if (spare >= 0) {
		close(spare);
		return;
	}
	if (event_add(front->again, &second) < 0)
		return;
	evconnlistener_disable(front->listener);
	event_del(front->pending);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	struct hw_http_front *front = arg;
	struct timeval second = {1, 0};
	(void)fd;
	(void)what;
	if (evconnlistener_enable(front->listener) < 0 || event_add(front->pending, NULL) < 0)
		front->unarmed = event_add(front->again, &second) != 0;
}

static void tick(struct hw_http_front *front)
{
	if (front->unarmed)
		event_active(front->again, EV_TIMEOUT, 0);
	front->unarmed = false;
}

void hw_http_tick(struct hw_http *h)
{
	tick(&h->local);
	tick(&h->remote);
}

static int start_http(struct hw_http_front *front)
{
	front->http = evhttp_new(front->h->base);
	if (!front->http)
		return -ENOMEM;
	evhttp_set_max_headers_size(front->http, HEADERS_MAX);
	evhttp_set_max_body_size(front->http, BODY_MAX);
	/* A body that is too large is read and thrown away: a client that is still sending would not see the answer. */
	evhttp_set_flags(front->http, EVHTTP_SERVER_LINGERING_CLOSE);
	evhttp_set_timeout(front->http, TIMEOUT_S);
	evhttp_set_allowed_methods(front->http, 0xffff); /* on_request() refuses, in JSON */
	evhttp_set_bevcb(front->http, on_connection, front);
	evhttp_set_gencb(front->http, on_request, front);
	return 0;
}

/* Serves a listening socket, which it owns in any case. */
static int start_front(struct hw_http_front *front, int fd)
{
	const unsigned flags = LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE;
	int rc = start_http(front);
	front->listener = rc == 0 ? evconnlistener_new(front->h->base, NULL, NULL, flags, 0, fd) : NULL;
	if (!front->listener) {
		close(fd);
		return -ENOMEM;
	}
	if (!evhttp_bind_listener(front->http, front->listener)) {
		evconnlistener_free(front->listener);
		return -ENOMEM;
	}
	front->pending = event_new(front->h->base, fd, EV_READ | EV_PERSIST, on_pending, front);
	front->again = event_new(front->h->base, -1, 0, on_again, front);
	if (!front->pending || !front->again || event_add(front->pending, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static void stop_front(struct hw_http_front *front)
{
	/* Before the descriptor that it watches is closed. */
	if (front->pending)
		event_free(front->pending);
	if (front->again)
		event_free(front->again);
	if (front->http)
		evhttp_free(front->http);
	*front = (struct hw_http_front){.h = front->h, .read_only = front->read_only};
}

void hw_http_init(struct hw_http *h, struct event_base *base, const struct hw_http_table *table, void *arg)
{
	*h = (struct hw_http){.base = base, .table = table, .arg = arg, .socket = {.fd = -1}};
	h->local.h = h->remote.h = h;
	h->remote.read_only = true;
}

int hw_http_listen(struct hw_http *h, const char *path, const char *group)
{
	int rc = hw_socket_listen(&h->socket, path, group);
	if (rc < 0)
		return rc;
	int fd = h->socket.fd;
	h->socket.fd = -1;
	return start_front(&h->local, fd);
}

int hw_http_listen_tcp(struct hw_http *h, const char *address, bool *local)
{
	int fd = hw_socket_listen_tcp(address, local);
	if (fd < 0)
		return fd;
	int rc = start_front(&h->remote, fd);
	if (rc < 0)
		stop_front(&h->remote);
	return rc;
}

static int second(const struct hw_http_front *front)
{
	int fd = front->http ? fcntl(evconnlistener_get_fd(front->listener), F_DUPFD_CLOEXEC, 0) : -1;
	return fd < 0 && front->http ? -errno : fd;
}

int hw_http_keep(struct hw_http *h, struct hw_http_kept *out)
{
	*out = (struct hw_http_kept){.socket = h->socket, .remote = second(&h->remote)};
	out->socket.fd = second(&h->local);
	h->socket = (struct hw_socket){.fd = -1};
	int rc = out->socket.fd < 0 ? out->socket.fd : out->remote < -1 ? out->remote : 0;
	if (rc < 0)
		hw_http_kept_fini(out);
	return rc;
}

int hw_http_resume(struct hw_http *h, struct hw_http_kept *kept)
{
	int fd = kept->socket.fd, remote = kept->remote;
	h->socket = kept->socket;
	h->socket.fd = -1;
	*kept = (struct hw_http_kept){.socket = {.fd = -1}, .remote = -1};
	int rc = start_front(&h->local, fd);
	if (rc < 0 && remote >= 0)
		close(remote);
	return rc < 0 || remote < 0 ? rc : start_front(&h->remote, remote);
}

void hw_http_kept_fini(struct hw_http_kept *kept)
{
	if (kept->remote >= 0)
		close(kept->remote);
	hw_socket_fini(&kept->socket);
	kept->remote = -1;
}

void hw_http_fini(struct hw_http *h)
{
	stop_front(&h->remote);
	stop_front(&h->local);
	hw_socket_fini(&h->socket);
}
