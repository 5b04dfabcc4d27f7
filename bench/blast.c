/* SPDX-License-Identifier: MIT */
/*
 * A small MQTT server that shows how many messages a subscriber can take. It answers its clients, and writes PUBLISH
 * packets that were encoded before, as fast as the sockets take them. One thread, MQTT 3.1.1 and 5.
 *
 * A client that subscribes to a topic that ends in /heartbeat is a target. If there are several targets, each gets its
 * own share of the devices, as with a shared subscription. The server acknowledges what a client publishes. If the
 * topic ends in /barrier, the server sends the message to all clients that subscribe to such a topic, after everything
 * that it wrote to them before. If the topic ends in /share, it sends the message to one of them. It passes no other
 * message on.
 *
 *     blast PORT DEVICES PAYLOAD
 *
 * Commands come on stdin, one in a line. When a command is done, blast answers with `sent N began S` (CLOCK_MONOTONIC):
 *     TARGETS once         every device once, in order
 *     TARGETS for SECONDS  in random order, again and again
 * Before a command begins, blast waits for that many targets. It ends at the end of stdin.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"

#define CLIENTS_MAX 32
#define ROOM        65536
#define WRITE_MAX   65536 /* the most bytes of packets in one write; a barrier never waits for more than these */
#define SEND_BUFFER (256 << 10)

enum { CONNECT = 1, CONNACK, PUBLISH, PUBACK, SUBSCRIBE = 8, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP };

struct client {
	int fd;
	bool v5, target, barriers, shares;
	unsigned char in[ROOM], out[ROOM]; /* out: answers and barriers, written between two packets */
	size_t in_len, out_len;
	size_t from, to; /* its share of the frames */
	size_t at;       /* bytes written of this round through the share */
	size_t last;     /* where this round ends */
	uint64_t sent;
};

struct blast {
	struct frames frames;
	struct client *clients[CLIENTS_MAX];
	unsigned n;
	int listener;
	unsigned want; /* number of targets; 0: no command */
	double for_s;  /* SECONDS of the command; 0: `once` */
	double began;  /* time at which the command began; 0: not yet */
	bool shuffled, ending, done;
};

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- answers */

static void say(struct client *c, const void *bytes, size_t len)
{
	if (len > ROOM - c->out_len)
		return; /* the client does not read; each client in the bench reads */
	memcpy(c->out + c->out_len, bytes, len);
	c->out_len += len;
}

/* Reads the variable byte integer at `*at`, and moves `*at` past it. */
static size_t length(const unsigned char *p, size_t *at)
{
	size_t n = 0;
	for (unsigned shift = 0; shift < 28; shift += 7) {
		unsigned char b = p[(*at)++];
		n |= (size_t)(b & 127) << shift;
		if (!(b & 128))
			break;
	}
	return n;
}

static void skip_properties(const struct client *c, const unsigned char *p, size_t *at)
{
	if (c->v5) {
		size_t n = length(p, at);
		*at += n;
	}
}

static bool ends_in(const unsigned char *s, size_t len, const char *end)
{
	size_t n = strlen(end);
	return len >= n && memcmp(s + len - n, end, n) == 0;
}

/* Writes a packet whose body is at most 127 bytes long. */
static void small(struct client *c, unsigned kind, const void *body, size_t len)
{
	unsigned char head[2] = {(unsigned char)(kind << 4), (unsigned char)len};
	say(c, head, 2);
	say(c, body, len);
}

static void on_connect(struct client *c, const unsigned char *p)
{
	static const unsigned char granted[3];
	c->v5 = p[6] == 5;
	small(c, CONNACK, granted, c->v5 ? 3 : 2);
}

/* Answers SUBSCRIBE, or UNSUBSCRIBE, which has no options after each filter. */
static void on_filters(struct client *c, const unsigned char *p, size_t len, bool subscribe)
{
	unsigned char answer[127] = {p[0], p[1]};
	size_t at = 2, n = 2;
	skip_properties(c, p, &at);
	n += c->v5; /* no properties */
	while (at + 2 < len && n < sizeof(answer)) {
		size_t filter_len = (size_t)p[at] << 8 | p[at + 1];
		const unsigned char *filter = p + at + 2;
		at += 2 + filter_len + subscribe;
		c->target = ends_in(filter, filter_len, "/heartbeat") ? subscribe : c->target;
		c->barriers = ends_in(filter, filter_len, "/barrier") ? subscribe : c->barriers;
		c->shares = ends_in(filter, filter_len, "/share") ? subscribe : c->shares;
		answer[n++] = 0;
	}
	small(c, subscribe ? SUBACK : UNSUBACK, answer, subscribe || c->v5 ? n : 2);
}

/* Sends a message with QoS 0 to each subscriber of barriers, or to one of those that share the subscription. */
static void loop_back(struct blast *b, const unsigned char *topic, size_t topic_len, const unsigned char *payload,
                      size_t len)
{
	unsigned char body[127];
	bool shared = ends_in(topic, topic_len, "/share");
	if (topic_len + len > 120)
		return;
	for (unsigned i = 0; i < b->n; i++) {
		struct client *c = b->clients[i];
		size_t n = 2 + topic_len;
		if (!(shared ? c->shares : c->barriers))
			continue;
		body[0] = 0;
		body[1] = (unsigned char)topic_len;
		memcpy(body + 2, topic, topic_len);
		if (c->v5)
			body[n++] = 0;
		memcpy(body + n, payload, len);
		small(c, PUBLISH, body, n + len);
		if (shared)
			return;
	}
}

static void on_publish(struct blast *b, struct client *c, unsigned flags, const unsigned char *p, size_t len)
{
	size_t topic_len = (size_t)p[0] << 8 | p[1], at = 2 + topic_len;
	if (flags >> 1 & 3) {
		small(c, PUBACK, p + at, 2);
		at += 2;
	}
	skip_properties(c, p, &at);
	if (at <= len && (ends_in(p + 2, topic_len, "/barrier") || ends_in(p + 2, topic_len, "/share")))
		loop_back(b, p + 2, topic_len, p + at, len - at);
}

static void on_packet(struct blast *b, struct client *c, unsigned char head, const unsigned char *p, size_t len)
{
	switch (head >> 4) {
	case CONNECT:
		on_connect(c, p);
		break;
	case PUBLISH:
		on_publish(b, c, head & 15, p, len);
		break;
	case SUBSCRIBE:
	case UNSUBSCRIBE:
		on_filters(c, p, len, head >> 4 == SUBSCRIBE);
		break;
	case PINGREQ:
		small(c, PINGRESP, NULL, 0);
	}
}

/* Returns false at the end of the connection. */
static bool hear(struct blast *b, struct client *c)
{
	ssize_t n = read(c->fd, c->in + c->in_len, ROOM - c->in_len);
	size_t done = 0;
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	c->in_len += (size_t)n;
	while (c->in_len - done >= 2) {
		size_t at = 1, have = c->in_len - done;
		const unsigned char *p = c->in + done;
		if ((p[1] & 128) && (have < 4 || ((p[2] & 128) && have < 5)))
			break;
		size_t len = length(p, &at);
		if (have - at < len)
			break;
		on_packet(b, c, p[0], p + at, len);
		done += at + len;
	}
	memmove(c->in, c->in + done, c->in_len - done);
	c->in_len -= done;
	return c->in_len < ROOM;
}

/* --- packets */

static bool busy(const struct client *c)
{
	return c->out_len > 0 || c->at < c->last;
}

static void answers(struct client *c)
{
	ssize_t n = write(c->fd, c->out, c->out_len);
	if (n <= 0)
		return;
	c->out_len -= (size_t)n;
	memmove(c->out, c->out + n, c->out_len);
}

/* Writes packets to the end of the round. If answers wait, writes only to the end of the packet that is under way. */
static void packets(struct blast *b, struct client *c)
{
	size_t len = b->frames.len, part = c->at % len, n = c->last - c->at;
	if (c->out_len > 0 && n > len - part)
		n = len - part;
	else if (n > WRITE_MAX)
		n = WRITE_MAX;
	ssize_t written = write(c->fd, b->frames.all + c->from * len + c->at, n);
	if (written <= 0)
		return;
	c->sent += (part + (size_t)written) / len;
	c->at += (size_t)written;
	if (b->for_s > 0 && !b->ending && c->at == c->last)
		c->at = 0;
}

static void speak(struct blast *b, struct client *c)
{
	if (c->out_len > 0 && c->at % b->frames.len == 0)
		answers(c);
	else if (c->at < c->last)
		packets(b, c);
}

/* --- orders */

static void begin(struct blast *b)
{
	unsigned targets = 0, number = 0;
	for (unsigned i = 0; i < b->n; i++)
		targets += b->clients[i]->target;
	if (targets < b->want)
		return;
	if (b->for_s > 0 && !b->shuffled)
		frames_shuffle(&b->frames);
	b->shuffled |= b->for_s > 0;
	for (unsigned i = 0; i < b->n; i++) {
		struct client *c = b->clients[i];
		c->sent = c->at = c->last = 0;
		if (!c->target)
			continue;
		c->from = b->frames.n * number / targets;
		c->to = b->frames.n * ++number / targets;
		c->last = (c->to - c->from) * b->frames.len;
	}
	b->ending = false;
	b->began = now_s();
}

static void look_after_orders(struct blast *b)
{
	uint64_t sent = 0;
	if (b->want > 0 && b->began <= 0)
		begin(b);
	if (b->want == 0 || b->began <= 0)
		return;
	if (!b->ending && b->for_s > 0 && now_s() - b->began >= b->for_s) {
		b->ending = true;
		for (unsigned i = 0; i < b->n; i++) {
			struct client *c = b->clients[i];
			c->last = (c->at + b->frames.len - 1) / b->frames.len * b->frames.len;
		}
	}
	for (unsigned i = 0; i < b->n; i++) {
		if (b->clients[i]->at < b->clients[i]->last)
			return;
		sent += b->clients[i]->sent;
	}
	printf("sent %llu began %.6f\n", (unsigned long long)sent, b->began);
	fflush(stdout);
	b->want = 0;
}

static void on_order(struct blast *b)
{
	char line[128], word[16];
	double seconds = 0;
	ssize_t n = read(STDIN_FILENO, line, sizeof(line) - 1);
	if (n <= 0) {
		b->done = true;
		return;
	}
	line[n] = '\0';
	if (sscanf(line, "%u %15s %lf", &b->want, word, &seconds) < 2)
		b->done = true;
	b->for_s = seconds;
	b->began = 0;
}

/* --- connections */

static void welcome(struct blast *b)
{
	int one = 1, bytes = SEND_BUFFER, fd = accept4(b->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *c = fd >= 0 && b->n < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	c->fd = fd;
	b->clients[b->n++] = c;
}

static void farewell(struct blast *b, unsigned i)
{
	close(b->clients[i]->fd);
	free(b->clients[i]);
	b->clients[i] = b->clients[--b->n];
}

static void turn(struct blast *b)
{
	enum { ORDERS, LISTENER, CLIENTS };
	struct pollfd fds[CLIENTS + CLIENTS_MAX] = {{STDIN_FILENO, POLLIN, 0}, {b->listener, POLLIN, 0}};
	unsigned n = b->n;
	for (unsigned i = 0; i < n; i++)
		fds[CLIENTS + i] =
			(struct pollfd){b->clients[i]->fd, (short)(POLLIN | (busy(b->clients[i]) ? POLLOUT : 0)), 0};
	poll(fds, CLIENTS + n, 100);
	for (unsigned i = n; i-- > 0;) {
		if ((fds[CLIENTS + i].revents & (POLLIN | POLLHUP | POLLERR)) && !hear(b, b->clients[i]))
			farewell(b, i);
		else if (fds[CLIENTS + i].revents & POLLOUT)
			speak(b, b->clients[i]);
	}
	if (fds[LISTENER].revents)
		welcome(b);
	if (fds[ORDERS].revents)
		on_order(b);
	look_after_orders(b);
}

static int listener(int port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 16))
		return -1;
	return fd;
}

int main(int argc, char **argv)
{
	static struct blast b;
	if (argc != 4 || atoi(argv[2]) < 1) {
		fprintf(stderr, "usage: %s PORT DEVICES PAYLOAD\n", argv[0]);
		return 2;
	}
	b.listener = listener(atoi(argv[1]));
	if (b.listener < 0 || frames_make(&b.frames, (size_t)atoi(argv[2]), argv[3])) {
		perror("blast");
		return 1;
	}
	while (!b.done)
		turn(&b);
	while (b.n > 0)
		farewell(&b, 0);
	free(b.frames.all);
	return 0;
}
