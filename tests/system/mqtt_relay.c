/* SPDX-License-Identifier: MIT */
/* See mqtt_relay.h. Its packets are small: a whole one always fits in a stream, and a send never has to wait long. */
#include "mqtt_relay.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PUBLISH 3
#define PUBACK  4

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
}

/* The size of the packet that begins at `at`, or 0: not all of it is there. */
static size_t whole_packet(const unsigned char *at, size_t have)
{
	size_t rest = 0;
	for (size_t i = 1; i < have && i < 5; i++) {
		rest |= (size_t)(at[i] & 0x7f) << 7 * (i - 1);
		if (!(at[i] & 0x80))
			return 1 + i + rest <= have ? 1 + i + rest : 0;
	}
	return 0;
}

/* False when that side has closed. */
static bool take_in(int fd, struct relay_stream *s)
{
	ssize_t n = recv(fd, s->bytes + s->have, sizeof(s->bytes) - s->have, 0);
	if (n > 0)
		s->have += (size_t)n;
	return n > 0;
}

/* Forwards the first `size` bytes. A side that has closed is noticed when it is read. */
static void hand_on(int fd, struct relay_stream *s, size_t size)
{
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(fd, s->bytes + sent, size - sent, MSG_NOSIGNAL);
		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	s->have -= size;
	memmove(s->bytes, s->bytes + size, s->have);
}

static void on_published(struct relay *r)
{
	unsigned n = atomic_load(&r->n_replies);
	atomic_fetch_add(&r->published, 1);
	if (r->released_ns && n < RELAY_REPLIES) {
		r->reply_ns[n] = now_ns() - r->released_ns;
		atomic_store(&r->n_replies, n + 1);
	}
	r->released_ns = 0;
	if (atomic_load(&r->pairs))
		atomic_fetch_add(&r->credit, 1);
}

static void to_server(struct relay *r)
{
	size_t done = 0, size;
	while ((size = whole_packet(r->up.bytes + done, r->up.have - done)) > 0) {
		if (r->up.bytes[done] >> 4 == PUBLISH)
			on_published(r);
		done += size;
	}
	hand_on(r->server, &r->up, done);
}

static void to_client(struct relay *r)
{
	size_t done = 0, size;
	unsigned kept = 0;
	while ((size = whole_packet(r->down.bytes + done, r->down.have - done)) > 0) {
		if (r->down.bytes[done] >> 4 == PUBACK && atomic_load(&r->holds)) {
			if (atomic_load(&r->credit) == 0)
				break;
			atomic_fetch_sub(&r->credit, 1);
			r->released_ns = now_ns();
		}
		done += size;
	}
	hand_on(r->client, &r->down, done);
	for (done = 0; (size = whole_packet(r->down.bytes + done, r->down.have - done)) > 0; done += size)
		kept += r->down.bytes[done] >> 4 == PUBACK;
	atomic_store(&r->kept, kept);
}

static void hang_up(struct relay *r)
{
	if (r->client >= 0)
		close(r->client);
	if (r->server >= 0)
		close(r->server);
	r->client = r->server = -1;
	r->up.have = r->down.have = 0;
	r->released_ns = 0;
}

static void take_call(struct relay *r)
{
	struct sockaddr_in a = loopback(r->broker_port);
	int yes = 1;
	r->client = accept(r->listen_fd, NULL, NULL);
	r->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (r->client < 0 || r->server < 0 || connect(r->server, (struct sockaddr *)&a, sizeof(a)))
		hang_up(r);
	setsockopt(r->client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	setsockopt(r->server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static void *run(void *arg)
{
	struct relay *r = arg;
	while (!atomic_load(&r->end)) {
		/* poll() passes over a descriptor of -1 */
		bool full = r->down.have == sizeof(r->down.bytes);
		struct pollfd fds[] = {{r->orders_fd, POLLIN, 0},
		                       {r->client < 0 ? r->listen_fd : -1, POLLIN, 0},
		                       {r->client, POLLIN, 0},
		                       {full ? -1 : r->server, POLLIN, 0}};
		uint64_t n;
		poll(fds, 4, -1);
		if (fds[0].revents && read(r->orders_fd, &n, sizeof(n)) < 0)
			break;
		if (fds[1].revents)
			take_call(r);
		if ((fds[2].revents && !take_in(r->client, &r->up)) ||
		    (fds[3].revents && !take_in(r->server, &r->down)))
			hang_up(r);
		if (r->client < 0)
			continue;
		to_server(r);
		to_client(r);
	}
	hang_up(r);
	return NULL;
}

static void order(struct relay *r)
{
	uint64_t one = 1;
	ck_assert_int_eq(write(r->orders_fd, &one, sizeof(one)), sizeof(one));
}

void relay_start(struct relay *r, const struct broker *b)
{
	struct sockaddr_in a = loopback(0);
	socklen_t len = sizeof(a);
	*r = (struct relay){.broker_port = b->port, .client = -1, .server = -1};
	r->orders_fd = eventfd(0, EFD_CLOEXEC);
	r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert(r->orders_fd >= 0 && r->listen_fd >= 0);
	ck_assert_int_eq(bind(r->listen_fd, (struct sockaddr *)&a, len), 0);
	ck_assert_int_eq(listen(r->listen_fd, 4), 0);
	ck_assert_int_eq(getsockname(r->listen_fd, (struct sockaddr *)&a, &len), 0);
	r->port = ntohs(a.sin_port);
	ck_assert_int_eq(pthread_create(&r->thread, NULL, run, r), 0);
}

void relay_stop(struct relay *r)
{
	atomic_store(&r->end, true);
	order(r);
	ck_assert_int_eq(pthread_join(r->thread, NULL), 0);
	close(r->listen_fd);
	close(r->orders_fd);
}

void relay_hold(struct relay *r, bool holds)
{
	atomic_store(&r->pairs, false);
	atomic_store(&r->credit, 0);
	atomic_store(&r->holds, holds);
	order(r);
}

void relay_let_one(struct relay *r, bool pairs)
{
	atomic_store(&r->pairs, pairs);
	atomic_fetch_add(&r->credit, 1);
	order(r);
}

void relay_await(struct relay *r, unsigned published, unsigned kept)
{
	int64_t until = now_ms() + PATIENCE;
	while (atomic_load(&r->published) < published || atomic_load(&r->kept) < kept) {
		ck_assert_msg(now_ms() < until, "%u of %u statuses came, and %u of %u acknowledgements",
		              atomic_load(&r->published), published, atomic_load(&r->kept), kept);
		poll(NULL, 0, 1);
	}
}
