/* SPDX-License-Identifier: MIT */
/*
 * Retained statuses without a monitor: as fast as libmosquitto publishes them with QoS 1, and who watches them arrive.
 *
 *     publisher send PORT PROTOCOL WINDOW FIRST COUNT ROOT   publishes the status of devices dFIRST and on, with at
 *                                                            most WINDOW unacknowledged; prints their rate
 *     publisher watch PORT ROOT DEVICES TIMEOUT_S [WORD]     subscribes to ROOT/+/status and prints `ready`; then of
 *                                                            how many devices a status had the WORD (default: that of
 *                                                            one that is offline), when the first, and when the last
 *                                                            (monotonic, s); ends when all were
 *
 * `send` publishes from the callback of the acknowledgement, in the thread that reads: the fastest form that was found.
 * `watch` speaks MQTT itself and reads much at a time, so that it costs the machine next to nothing.
 */
#include <arpa/inet.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES (1 << 18)

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "publisher: %s\n", what);
	exit(1);
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- send -------------------------------------------------------------------------------------------------------- */

struct sender {
	const char *root;
	unsigned window, first, count, sent, acked;
	bool failed;
};

static void publish_next(struct mosquitto *m, struct sender *s)
{
	char topic[100], payload[256];
	snprintf(topic, sizeof(topic), "%s/d%u/status", s->root, s->first + s->sent);
	int len = snprintf(payload, sizeof(payload),
	                   "{\"time\":1700000000,\"online\":false,\"reason\":\"timeout\",\"last_seen\":1700000000,"
	                   "\"by\":\"bench\",\"seq\":1700000000000}");
	s->failed |= mosquitto_publish(m, NULL, topic, len, payload, 1, true) != MOSQ_ERR_SUCCESS;
	s->sent++;
}

static void on_publish(struct mosquitto *m, void *arg, int mid)
{
	struct sender *s = arg;
	(void)mid;
	s->acked++;
	if (s->sent < s->count)
		publish_next(m, s);
}

static void on_connect(struct mosquitto *m, void *arg, int reason)
{
	struct sender *s = arg;
	s->failed = reason != 0;
	while (!s->failed && s->sent < s->window && s->sent < s->count)
		publish_next(m, s);
}

static int send_all(int port, int protocol, struct sender *s)
{
	mosquitto_lib_init();
	struct mosquitto *m = mosquitto_new(NULL, true, s);
	if (!m)
		die("out of memory");
	mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, protocol == 5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311);
	mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
	mosquitto_max_inflight_messages_set(m, s->window);
	mosquitto_connect_callback_set(m, on_connect);
	mosquitto_publish_callback_set(m, on_publish);
	if (mosquitto_connect(m, "127.0.0.1", port, 60))
		die("cannot connect");
	double began = now_s();
	while (s->acked < s->count && !s->failed)
		s->failed |= mosquitto_loop(m, 1000, 1) != MOSQ_ERR_SUCCESS;
	if (s->failed)
		die("the connection failed");
	printf("rate %.0f\n", s->count / (now_s() - began));
	mosquitto_disconnect(m);
	mosquitto_destroy(m);
	return 0;
}

/* --- watch ------------------------------------------------------------------------------------------------------- */

struct watch {
	const char *word;
	size_t root_len;
	unsigned devices, seen;
	uint8_t *is_seen;
	double first_s, last_s;
};

static int connect_to(int port)
{
	static const unsigned char hello[] = {0x10, 17, 0, 4, 'M', 'Q', 'T', 'T', 4,  2,
	                                      0,    0,  0, 5, 'w', 'a', 't', 'c', 'h'};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), room = 8 << 20;
	unsigned char ack[4];
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || write(fd, hello, sizeof(hello)) != sizeof(hello) ||
	    recv(fd, ack, 4, MSG_WAITALL) != 4 || ack[3])
		die("cannot connect");
	return fd;
}

static void subscribe(int fd, const char *root)
{
	unsigned char packet[160] = {0x82, 0, 0, 1, 0}, ack[5];
	int len = snprintf((char *)packet + 6, sizeof(packet) - 6, "%s/+/status", root);
	if (len > 100)
		die("the root is too long");
	packet[1] = (unsigned char)(len + 5);
	packet[5] = (unsigned char)len;
	packet[6 + len] = 0;
	if (write(fd, packet, (size_t)len + 7) != len + 7 || recv(fd, ack, 5, MSG_WAITALL) != 5 || ack[4] > 2)
		die("cannot subscribe");
	puts("ready");
	fflush(stdout);
}

/* A PUBLISH of QoS 0: two bytes of length, the topic, the payload. */
static void on_status(struct watch *w, const char *body, size_t len)
{
	size_t topic_len = len > 2 ? (size_t)(unsigned char)body[0] << 8 | (unsigned char)body[1] : 0;
	if (len < 2 + topic_len || topic_len < w->root_len + 3)
		return;
	unsigned long device = strtoul(body + 2 + w->root_len + 2, NULL, 10);
	if (device >= w->devices || !memmem(body + 2 + topic_len, len - 2 - topic_len, w->word, strlen(w->word)))
		return;
	w->last_s = now_s();
	w->first_s = w->seen ? w->first_s : w->last_s;
	w->seen += !w->is_seen[device];
	w->is_seen[device] = 1;
}

/* Takes whole packets; returns how many bytes they were. */
static size_t parse(struct watch *w, const char *at, size_t len)
{
	size_t done = 0;
	for (;;) {
		size_t rest = 0, head = 1, shift = 0;
		unsigned char byte = 0x80;
		for (; byte & 0x80 && done + head < len; shift += 7) {
			byte = (unsigned char)at[done + head++];
			rest |= (size_t)(byte & 0x7f) << shift;
		}
		if (byte & 0x80 || done + head + rest > len)
			return done;
		if (((unsigned char)at[done] & 0xf1) == 0x30) /* not a retained one */
			on_status(w, at + done + head, rest);
		done += head + rest;
	}
}

static int watch_all(int port, const char *root, unsigned devices, double timeout_s, const char *word)
{
	static char buffer[READ_BYTES + 1];
	struct watch w = {.word = word, .root_len = strlen(root), .devices = devices, .is_seen = calloc(devices, 1)};
	int fd = connect_to(port);
	double until = now_s() + timeout_s;
	size_t have = 0;
	if (!w.is_seen)
		die("out of memory");
	subscribe(fd, root);
	while (w.seen < devices && now_s() < until) {
		struct pollfd p = {fd, POLLIN, 0};
		if (poll(&p, 1, 200) <= 0)
			continue;
		poll(NULL, 0, 2); /* more comes: a wake-up for each would take the broker's time */
		ssize_t n = read(fd, buffer + have, READ_BYTES - have);
		if (n <= 0)
			die("the broker has closed the connection");
		have += (size_t)n;
		size_t done = parse(&w, buffer, have);
		have -= done;
		memmove(buffer, buffer + done, have);
	}
	printf("seen %u\nfirst %.6f\nlast %.6f\n", w.seen, w.first_s, w.last_s);
	free(w.is_seen);
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 8 && strcmp(argv[1], "send") == 0) {
		struct sender s = {.root = argv[7],
		                   .window = (unsigned)atoi(argv[4]),
		                   .first = (unsigned)atoi(argv[5]),
		                   .count = (unsigned)atoi(argv[6])};
		return send_all(atoi(argv[2]), atoi(argv[3]), &s);
	}
	if ((argc == 6 || argc == 7) && strcmp(argv[1], "watch") == 0)
		return watch_all(atoi(argv[2]), argv[3], (unsigned)atoi(argv[4]), atof(argv[5]),
		                 argc == 7 ? argv[6] : "\"online\":false");
	fprintf(stderr, "usage: see the head of bench/publisher.c\n");
	return 2;
}
