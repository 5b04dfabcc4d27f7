/* SPDX-License-Identifier: MIT */
/*
 * The yardstick for a monitor: a subscriber with libmosquitto, written as its manual says, that only counts messages.
 * Each connection runs mosquitto_loop_forever() in a thread of its own. If there are several connections, they share
 * the subscription. The counts are in a file that other programs may map or read, so that reading them takes no time of
 * the counter. For each connection the file has a cache line with a 64-bit count, and a cache line with a number that
 * is 1 when the connection is subscribed.
 *
 *     counter PORT FILTER FILE CONNECTIONS
 */
#include <fcntl.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONNECTIONS_MAX 16
#define LINE            64

union count {
	struct {
		atomic_uint_least64_t n, subscribed;
	};
	char line[LINE];
};

struct connection {
	union count *count;
	const char *filter;
	int port;
	pthread_t thread;
};

static void on_message(struct mosquitto *m, void *arg, const struct mosquitto_message *msg)
{
	struct connection *c = arg;
	(void)m;
	(void)msg;
	uint64_t n = atomic_load_explicit(&c->count->n, memory_order_relaxed);
	atomic_store_explicit(&c->count->n, n + 1, memory_order_relaxed);
}

static void on_connect(struct mosquitto *m, void *arg, int reason)
{
	const struct connection *c = arg;
	if (reason || mosquitto_subscribe(m, NULL, c->filter, 0))
		exit(1);
}

static void on_subscribe(struct mosquitto *m, void *arg, int mid, int n, const int *codes)
{
	struct connection *c = arg;
	(void)m;
	(void)mid;
	if (n < 1 || codes[0] >= 0x80)
		exit(1);
	atomic_store(&c->count->subscribed, 1);
}

static void *run(void *arg)
{
	struct connection *c = arg;
	struct mosquitto *m = mosquitto_new(NULL, true, c);
	if (!m || mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5))
		exit(1);
	mosquitto_connect_callback_set(m, on_connect);
	mosquitto_subscribe_callback_set(m, on_subscribe);
	mosquitto_message_callback_set(m, on_message);
	if (mosquitto_connect(m, "127.0.0.1", c->port, 60))
		exit(1);
	mosquitto_loop_forever(m, -1, 1);
	exit(1);
}

int main(int argc, char **argv)
{
	static struct connection all[CONNECTIONS_MAX];
	static char shared[256];
	int n = argc == 5 ? atoi(argv[4]) : 0, fd = argc == 5 ? open(argv[3], O_RDWR | O_CREAT, 0644) : -1;
	if (n < 1 || n > CONNECTIONS_MAX || fd < 0 || ftruncate(fd, n * LINE)) {
		fprintf(stderr, "usage: %s PORT FILTER FILE CONNECTIONS\n", argv[0]);
		return 2;
	}
	union count *counts = mmap(NULL, (size_t)n * LINE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counts == MAP_FAILED || mosquitto_lib_init())
		return 1;
	snprintf(shared, sizeof(shared), "$share/counters/%s", argv[2]);
	for (int i = 0; i < n; i++) {
		all[i] = (struct connection){
			.count = &counts[i], .filter = n > 1 ? shared : argv[2], .port = atoi(argv[1])};
		if (pthread_create(&all[i].thread, NULL, run, &all[i]))
			return 1;
	}
	for (int i = 0; i < n; i++)
		pthread_join(all[i].thread, NULL);
	return 1;
}
