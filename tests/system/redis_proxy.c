/* SPDX-License-Identifier: MIT */
/* See redis_proxy.h. Commands and messages are told by their text in what was read at once: they are small, and come
 * one by one. */
#include "redis_proxy.h"

#include <arpa/inet.h>
#include <check.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "link/clock.h"

struct pipe_pair {
	struct proxy *p;
	struct bufferevent *client, *server;
	bool hears;
	struct pipe_pair *next;
};

static bool has(struct bufferevent *from, const char *text)
{
	return evbuffer_search(bufferevent_get_input(from), text, strlen(text), NULL).pos >= 0;
}

static void on_client(struct bufferevent *from, void *arg)
{
	struct pipe_pair *pair = arg;
	struct proxy *p = pair->p;
	pair->hears |= has(from, "SUBSCRIBE\r\n");
	if (has(from, "SCAN\r\n") && p->n_scans < PROXY_SCANS) {
		p->scans[p->n_scans].ns = hw_clock_mono().ns;
		p->scans[p->n_scans++].first = has(from, "SCAN\r\n$1\r\n0\r\n");
	}
	if (has(from, "CONFIG\r\n$3\r\nGET\r\n"))
		p->publishes_at_look = p->publishes;
	p->publishes += has(from, "PUBLISH\r\n");
	ck_assert_int_eq(bufferevent_write_buffer(pair->server, bufferevent_get_input(from)), 0);
}

static void on_server(struct bufferevent *from, void *arg)
{
	struct pipe_pair *pair = arg;
	struct evbuffer *said = bufferevent_get_input(from);
	if (pair->hears && pair->p->swallow && has(from, "message\r\n")) {
		pair->p->swallowed++;
		evbuffer_drain(said, evbuffer_get_length(said));
		return;
	}
	pair->p->flag_looks += has(from, "notify-keyspace-events\r\n");
	ck_assert_int_eq(bufferevent_write_buffer(pair->client, said), 0);
}

static void drop(struct pipe_pair *pair)
{
	struct pipe_pair **at = &pair->p->pairs;
	while (*at != pair)
		at = &(*at)->next;
	*at = pair->next;
	bufferevent_free(pair->client);
	bufferevent_free(pair->server);
	free(pair);
}

/* Without this option each answer waits for an acknowledgement: 40 ms. */
static void at_once(evutil_socket_t fd)
{
	int yes = 1;
	ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)), 0);
}

static void on_end(struct bufferevent *from, short what, void *arg)
{
	(void)from;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		drop(arg);
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int from_len, void *arg)
{
	struct proxy *p = arg;
	struct pipe_pair *pair = calloc(1, sizeof(*pair));
	struct sockaddr_in a = {.sin_family = AF_INET,
	                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	                        .sin_port = htons((uint16_t)p->server_port)};
	(void)l, (void)from, (void)from_len;
	ck_assert_ptr_nonnull(pair);
	*pair = (struct pipe_pair){.p = p, .next = p->pairs};
	p->pairs = pair;
	pair->client = bufferevent_socket_new(p->base, fd, BEV_OPT_CLOSE_ON_FREE);
	pair->server = bufferevent_socket_new(p->base, -1, BEV_OPT_CLOSE_ON_FREE);
	ck_assert(pair->client && pair->server);
	bufferevent_setcb(pair->client, on_client, NULL, on_end, pair);
	bufferevent_setcb(pair->server, on_server, NULL, on_end, pair);
	ck_assert_int_eq(bufferevent_enable(pair->client, EV_READ), 0);
	ck_assert_int_eq(bufferevent_enable(pair->server, EV_READ), 0);
	ck_assert_int_eq(bufferevent_socket_connect(pair->server, (struct sockaddr *)&a, sizeof(a)), 0);
	at_once(fd);
	at_once(bufferevent_getfd(pair->server));
}

void proxy_start(struct proxy *p, struct event_base *base, int server_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	*p = (struct proxy){.base = base, .server_port = server_port};
	p->listener =
		evconnlistener_new_bind(base, on_accept, p, LEV_OPT_CLOSE_ON_FREE, 8, (struct sockaddr *)&a, sizeof(a));
	ck_assert_ptr_nonnull(p->listener);
	ck_assert_int_eq(getsockname(evconnlistener_get_fd(p->listener), (struct sockaddr *)&a, &len), 0);
	p->port = ntohs(a.sin_port);
}

void proxy_stop(struct proxy *p)
{
	while (p->pairs)
		drop(p->pairs);
	evconnlistener_free(p->listener);
}

void proxy_hold(struct proxy *p, bool hold)
{
	for (struct pipe_pair *pair = p->pairs; pair; pair = pair->next)
		if (!pair->hears)
			ck_assert_int_eq((hold ? bufferevent_disable : bufferevent_enable)(pair->client, EV_READ), 0);
}
