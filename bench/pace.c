/* SPDX-License-Identifier: MIT */
/*
 * A fleet that takes almost no processor time: heartbeats at a steady rate, as QoS 0 PUBLISH packets that were encoded
 * before.
 *
 *     pace PORT ROOT DEVICES INTERVAL_MS CONNECTIONS [ROUNDS [PAYLOAD]]
 *
 * Device i (topic ROOT/dI/heartbeat) sends a heartbeat at start + i * INTERVAL / DEVICES, and then each INTERVAL. The
 * program ends on SIGTERM, or when each device has sent ROUNDS heartbeats (0: no limit), however long the broker takes.
 * It then prints how many heartbeats it has sent, and the longest delay of one. Device i uses connection i %
 * CONNECTIONS, so that devices that send at nearly the same time do not share a packet. The program checks each
 * millisecond which heartbeats are due.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define SLICE_NS  NS_PER_MS
#define PAYLOAD   "{\"time\":1800000000}"
#define CONNS_MAX 256
#define FRAME_MAX 16383 /* bytes after the fixed header: the most that a length of two bytes can express */

/* The devices of one connection: their frames, one after the other, and which one is next. */
struct conn {
	int fd;
	char *frames;
	size_t *at; /* where each begins; one more for the end */
	unsigned n, next;
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "pace: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("write");
		data += n;
		len -= (size_t)n;
	}
}

/* CONNECT of MQTT 3.1.1, clean, without a keepalive. */
static int open_conn(uint16_t port, unsigned number)
{
	char id[32], packet[64] = {0x10, 0, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0}, ack[4];
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0),
	    len = snprintf(id, sizeof(id), "pace-%d-%u", (int)getpid(), number);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	packet[1] = (char)(12 + len);
	packet[13] = (char)len;
	memcpy(packet + 14, id, (size_t)len);
	send_all(fd, packet, 14 + (size_t)len);
	if (recv(fd, ack, sizeof(ack), MSG_WAITALL) != sizeof(ack) || ack[0] != 0x20 || ack[3] != 0)
		die("CONNACK");
	return fd;
}

static size_t frame(char *to, const char *root, unsigned device, const char *payload)
{
	char topic[100], *begin = to;
	int len = snprintf(topic, sizeof(topic), "%s/d%u/heartbeat", root, device);
	size_t rest = 2 + (size_t)len + strlen(payload);
	*to++ = 0x30;
	if (rest > 127)
		*to++ = (char)((rest & 127) | 128);
	*to++ = (char)(rest > 127 ? rest >> 7 : rest);
	*to++ = 0;
	*to++ = (char)len;
	to = (char *)memcpy(to, topic, (size_t)len) + len;
	to = (char *)memcpy(to, payload, strlen(payload)) + strlen(payload);
	return (size_t)(to - begin);
}

static void make(struct conn *c, uint16_t port, const char *root, unsigned devices, unsigned number, unsigned conns,
                 const char *payload)
{
	c->n = (devices - number + conns - 1) / conns;
	c->next = 0;
	c->fd = open_conn(port, number);
	c->frames = malloc(c->n * (strlen(payload) + 105));
	c->at = malloc((c->n + 1) * sizeof(*c->at));
	if (!c->frames || !c->at)
		die("malloc");
	c->at[0] = 0;
	for (unsigned k = 0; k < c->n; k++)
		c->at[k + 1] = c->at[k] + frame(c->frames + c->at[k], root, number + k * conns, payload);
}

/* Sends the next `n` heartbeats of a connection. If the round of devices ends in between, this takes two writes. */
static void send_next(struct conn *c, unsigned n)
{
	while (n > 0) {
		unsigned some = c->n - c->next < n ? c->n - c->next : n;
		send_all(c->fd, c->frames + c->at[c->next], c->at[c->next + some] - c->at[c->next]);
		c->next = (c->next + some) % c->n;
		n -= some;
	}
}

/* Returns how many of the first `total` heartbeats of all devices belong to connection `number`. Each round of
 * `devices` heartbeats is dealt out to the connections in turn. */
static int64_t share(int64_t total, unsigned devices, unsigned number, unsigned conns)
{
	int64_t rest = total % devices, dealt = rest > number ? (rest - number + conns - 1) / conns : 0;
	return total / devices * ((devices - number + conns - 1) / conns) + dealt;
}

/* `most`: the number of heartbeats after which the program ends; 0: no limit. */
static void run(struct conn *conns, unsigned n, unsigned devices, int64_t interval_ns, int64_t most)
{
	int64_t start = now_ns(), sent = 0, late_ns = 0, woken = start;
	while (!stopped && (most == 0 || sent < most)) {
		int64_t now = now_ns();
		late_ns = now - woken > late_ns ? now - woken : late_ns;
		int64_t due = (int64_t)((double)(now - start) * devices / (double)interval_ns);
		due = most > 0 && due > most ? most : due;
		for (unsigned i = 0; i < n && due > sent; i++)
			send_next(&conns[i], (unsigned)(share(due, devices, i, n) - share(sent, devices, i, n)));
		sent = due;
		woken += SLICE_NS;
		struct timespec at = {woken / NS_PER_S, woken % NS_PER_S};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	printf("sent %" PRId64 "\nlate_ms %.1f\n", sent, (double)late_ns / 1e6);
}

int main(int argc, char **argv)
{
	static struct conn conns[CONNS_MAX];
	if (argc < 6 || argc > 8) {
		fprintf(stderr, "usage: pace PORT ROOT DEVICES INTERVAL_MS CONNECTIONS [ROUNDS [PAYLOAD]]\n");
		return 2;
	}
	const char *payload = argc == 8 ? argv[7] : PAYLOAD;
	unsigned devices = (unsigned)atoi(argv[3]), n = (unsigned)atoi(argv[5]);
	if (n < 1 || n > CONNS_MAX || devices < n || strlen(argv[2]) > 40 || atoi(argv[4]) < 1 ||
	    strlen(payload) > FRAME_MAX - 102)
		return 2;
	struct sigaction stop = {.sa_handler = on_signal};
	sigaction(SIGTERM, &stop, NULL);
	for (unsigned i = 0; i < n; i++)
		make(&conns[i], (uint16_t)atoi(argv[1]), argv[2], devices, i, n, payload);
	run(conns, n, devices, atoi(argv[4]) * NS_PER_MS, argc > 6 ? (int64_t)atoi(argv[6]) * devices : 0);
	for (unsigned i = 0; i < n; i++) {
		close(conns[i].fd);
		free(conns[i].frames);
		free(conns[i].at);
	}
	return 0;
}
