/* SPDX-License-Identifier: MIT */
/*
 * A relay between a publisher and its broker, in a thread of its own. It forwards the packets of both sides, and can
 * hold the broker's acknowledgements back to release them in small numbers. It has one connection at a time. Any error
 * fails the test.
 */
#ifndef HW_TEST_MQTT_RELAY_H
#define HW_TEST_MQTT_RELAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mqtt_broker.h"

#define RELAY_REPLIES 256

/* What came from one side and is not forwarded yet. */
struct relay_stream {
	unsigned char bytes[8192];
	size_t have;
};

struct relay {
	int port, broker_port;
	int listen_fd, orders_fd, client, server;
	pthread_t thread;
	struct relay_stream up, down;
	int64_t released_ns;

	/* orders; any thread */
	atomic_bool end, holds, pairs;
	atomic_uint credit; /* acknowledgements that may pass although the relay holds them */

	/* for any thread to read */
	atomic_uint published; /* PUBLISH packets that came from the client */
	atomic_uint kept;      /* acknowledgements that wait here */
	/* How long after an acknowledgement that was let go alone the next PUBLISH came, in order. */
	atomic_uint n_replies;
	int64_t reply_ns[RELAY_REPLIES];
};

void relay_start(struct relay *r, const struct broker *b);
void relay_stop(struct relay *r);
/* Holds acknowledgements from now on; false: releases all. */
void relay_hold(struct relay *r, bool holds);
/* Releases one. With `pairs`, each PUBLISH that comes releases the next one. */
void relay_let_one(struct relay *r, bool pairs);
/* Waits until the relay has this many PUBLISH packets from the client in all, and this many acknowledgements. */
void relay_await(struct relay *r, unsigned published, unsigned kept);

#endif
