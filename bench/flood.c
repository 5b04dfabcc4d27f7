/* SPDX-License-Identifier: MIT */
/*
 * Publishes heartbeats of many devices to a broker, exactly as fast as one subscriber takes them: a closed loop.
 *
 * If a subscriber is slow, a broker drops messages with QoS 0 without a notice. So an open flood would measure how many
 * messages are dropped. Here at most WINDOW messages are under way. The kernel knows how far the subscriber has read
 * (sock_diag: the bytes that its socket received, less those that still wait there). A packet has the same length for
 * the subscriber as for this program. So all subscribers are measured in the same way, and none has to answer.
 *
 *     flood PORT CONNECTIONS DEVICES SECONDS WINDOW PAYLOAD [each] SUBSCRIBER_PORT...
 *
 * SUBSCRIBER_PORT: the ports at the subscriber's end of its connections to the broker. The connections share the
 * messages. With `each`, they are those of several subscribers, each of which gets all messages; then the slowest one
 * counts. SECONDS 0: every device once, in order. Prints `sent N`, `seconds S` (from the first write until the last
 * message was read) and `unread N` (greater than 0: messages were lost).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"

#define CONNECTIONS_MAX 64
#define PORTS_MAX       16
#define BURST           256 /* how many messages are written before the subscriber's progress is read again */
#define PATIENCE_S      2   /* without progress of the subscriber */
#define TCP_NODELAY     1

struct flood {
	struct frames frames;
	uint16_t port;
	unsigned n_connections, n_ports;
	int fd[CONNECTIONS_MAX], diag;
	uint16_t subscriber[PORTS_MAX];
	bool each;
	uint64_t read_before[PORTS_MAX]; /* bytes */
	uint64_t window, sent;           /* messages */
	size_t at;                       /* the next frame */
	unsigned turn;                   /* the next connection */
};

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* --- how far the subscriber is */

/* Returns how many bytes one socket has read: those that the kernel received, less those that still wait in the
 * socket. */
static uint64_t read_by(const struct nlmsghdr *h)
{
	const struct inet_diag_msg *d = (const struct inet_diag_msg *)NLMSG_DATA(h);
	unsigned left = h->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof(*d));
	for (struct rtattr *a = (struct rtattr *)(uintptr_t)(d + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		struct tcp_info info = {0};
		if (a->rta_type != INET_DIAG_INFO)
			continue;
		memcpy(&info, RTA_DATA(a), RTA_PAYLOAD(a) < sizeof(info) ? RTA_PAYLOAD(a) : sizeof(info));
		return info.tcpi_bytes_received - d->idiag_rqueue;
	}
	errno = ENODATA;
	die("sock_diag");
	return 0;
}

static uint64_t ask(const struct flood *f, uint16_t port)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = {.h = {.nlmsg_len = sizeof(q), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
	       .r = {.sdiag_family = AF_INET,
	             .sdiag_protocol = IPPROTO_TCP,
	             .idiag_ext = 1 << (INET_DIAG_INFO - 1),
	             .idiag_states = UINT32_MAX,
	             .id = {.idiag_sport = htons(port),
	                    .idiag_dport = htons(f->port),
	                    .idiag_src = {htonl(INADDR_LOOPBACK)},
	                    .idiag_dst = {htonl(INADDR_LOOPBACK)},
	                    .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
	union {
		struct nlmsghdr h;
		char room[4096];
	} answer;
	if (send(f->diag, &q, sizeof(q), 0) < 0)
		die("sock_diag");
	ssize_t n = recv(f->diag, &answer, sizeof(answer), 0);
	if (n < (ssize_t)sizeof(answer.h) || answer.h.nlmsg_type != SOCK_DIAG_BY_FAMILY) {
		fprintf(stderr, "no connection from port %u to port %u\n", port, f->port);
		exit(1);
	}
	return read_by(&answer.h);
}

/* Returns how many bytes all subscribers together have read. If each gets every message, returns the bytes of the
 * slowest one. */
static uint64_t read_so_far(const struct flood *f)
{
	uint64_t sum = 0, least = UINT64_MAX;
	for (unsigned i = 0; i < f->n_ports; i++) {
		uint64_t bytes = ask(f, f->subscriber[i]) - f->read_before[i];
		sum += bytes;
		least = bytes < least ? bytes : least;
	}
	return f->each ? least : sum;
}

/* Returns the number of messages under way. The subscriber also reads answers and barriers, but these are so few
 * bytes that the number is never negative. */
static uint64_t under_way(const struct flood *f)
{
	uint64_t read = read_so_far(f) / f->frames.len;
	return read < f->sent ? f->sent - read : 0;
}

/* --- publishing */

static void write_all(int fd, const unsigned char *from, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, from, len);
		if (n < 0)
			die("the broker");
		from += n;
		len -= (size_t)n;
	}
}

static int connected(uint16_t port, unsigned number)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	/* CONNECT: MQTT 5, clean start, no keepalive, no properties, a client id of seven bytes */
	unsigned char hello[32] = {0x10, 20, 0, 4, 'M', 'Q', 'T', 'T', 5, 2, 0, 0, 0, 0, 7}, answer[256];
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf((char *)hello + 15, 8, "flood%02u", number % 100);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	write_all(fd, hello, 22);
	ssize_t n = read(fd, answer, sizeof(answer));
	if (n < 4 || answer[0] != 0x20 || answer[3] != 0) {
		fprintf(stderr, "refused by the broker\n");
		exit(1);
	}
	return fd;
}

/* Sends a few messages over the next connection. */
static void burst(struct flood *f, uint64_t n)
{
	if (n > BURST)
		n = BURST;
	if (n > f->frames.n - f->at)
		n = f->frames.n - f->at;
	write_all(f->fd[f->turn], f->frames.all + f->at * f->frames.len, n * f->frames.len);
	f->at = (f->at + n) % f->frames.n;
	f->turn = (f->turn + 1) % f->n_connections;
	f->sent += n;
}

static void pause_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void publish(struct flood *f, double seconds)
{
	double until = now_s() + seconds;
	while (seconds > 0 ? now_s() < until : f->sent < f->frames.n) {
		uint64_t n = under_way(f);
		if (n + BURST <= f->window)
			burst(f, f->window - n);
		else
			pause_us(200);
	}
}

/* Returns the time at which the last message was read. Stops waiting when no more messages arrive. */
static double wait_for_the_last(const struct flood *f)
{
	uint64_t before = UINT64_MAX, n;
	double since = now_s();
	while ((n = under_way(f)) > 0 && now_s() - since < PATIENCE_S) {
		if (n != before)
			since = now_s();
		before = n;
		pause_us(200);
	}
	return n ? since : now_s();
}

int main(int argc, char **argv)
{
	static struct flood f;
	f.each = argc > 7 && strcmp(argv[7], "each") == 0;
	int first = f.each ? 8 : 7;
	if (argc <= first || argc - first > PORTS_MAX || atoi(argv[2]) < 1 || atoi(argv[2]) > CONNECTIONS_MAX ||
	    atoi(argv[3]) < 1) {
		fprintf(stderr, "usage: %s PORT CONNECTIONS DEVICES SECONDS WINDOW PAYLOAD [each] SUBSCRIBER_PORT...\n",
		        argv[0]);
		return 2;
	}
	f.port = (uint16_t)atoi(argv[1]);
	f.n_connections = (unsigned)atoi(argv[2]);
	double seconds = atof(argv[4]);
	f.window = strtoull(argv[5], NULL, 10);
	f.n_ports = (unsigned)(argc - first);
	for (unsigned i = 0; i < f.n_ports; i++)
		f.subscriber[i] = (uint16_t)atoi(argv[first + (int)i]);
	if (frames_make(&f.frames, (size_t)atoi(argv[3]), argv[6]))
		die("frames");
	if (seconds > 0)
		frames_shuffle(&f.frames);
	f.diag = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (f.diag < 0)
		die("sock_diag");
	for (unsigned i = 0; i < f.n_connections; i++)
		f.fd[i] = connected(f.port, i);
	for (unsigned i = 0; i < f.n_ports; i++)
		f.read_before[i] = ask(&f, f.subscriber[i]);
	double began = now_s();
	publish(&f, seconds);
	double ended = wait_for_the_last(&f);
	printf("sent %llu\nseconds %.6f\nunread %llu\n", (unsigned long long)f.sent, ended - began,
	       (unsigned long long)under_way(&f));
	free(f.frames.all);
	return 0;
}
