/* SPDX-License-Identifier: MIT */
/*
 * A real mosquitto on a free port of 127.0.0.1, in a directory of its own; a plain client for publishing; and functions
 * that wait for the events of a reader or a publisher. If one of these cannot do its work, the test fails.
 */
#ifndef HW_TEST_MQTT_BROKER_H
#define HW_TEST_MQTT_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mqtt/mqtt.h"

#define PATIENCE 30000 /* ms that anything may take on a busy machine */

/* All directories of a run are in this one: made and removed by main(), so that a failed test leaves nothing either. */
int test_mqtt_main(const char *name, void (*add)(void *suite));

struct broker {
	char dir[160];
	int port;
	pid_t pid;
};

/* A free port and a directory with a configuration: the listener, what `extra` says, and a log in DIR/log. */
void broker_init(struct broker *b, const char *extra);
void broker_start(struct broker *b);
void broker_stop(struct broker *b, int signal);
/* How often the log has `text`. */
unsigned broker_logged(const struct broker *b, const char *text);
/* DIR/NAME, in one of four buffers. */
const char *broker_file(const struct broker *b, const char *name);
void broker_write(const struct broker *b, const char *name, const char *text);
/* printf, then the shell, in the broker's directory. */
void broker_shell(const struct broker *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Waits until the broker sends no more to any client although it could not send all: receive buffers are full. */
void broker_blocked(const struct broker *b);

/* A socket on a free port of 127.0.0.1, for listen(). */
int bound_socket(int *port);
int64_t now_ms(void);

/* The configuration of readers and publishers; a test changes the keys that it is about. */
struct hw_mqtt_conf conf_for(const struct broker *b, int protocol, int qos, const char *client_id);

struct peer;
struct peer *peer_new(const struct broker *b);
void peer_free(struct peer *p);
/* Publishes; peer_settle() waits until the broker has taken all of it. */
void peer_publish(struct peer *p, const char *topic, const void *payload, size_t len, int qos, bool retain);
void peer_say(struct peer *p, const char *topic, const char *text);
void peer_settle(struct peer *p);

/* The next event within `ms`, or false. What it points to is good until the next call. */
bool reader_next(struct hw_reader *r, struct hw_reader_event *ev, int ms);
/* The next event of that kind; others are skipped. */
struct hw_reader_event reader_await(struct hw_reader *r, enum hw_reader_event_kind kind);
/* The next event must be a message on `topic` with `text`. */
struct hw_reader_event reader_expect(struct hw_reader *r, const char *topic, const char *text);
/* Starts one on a single filter and waits until it is up. */
struct hw_reader *reader_up(const struct hw_mqtt_conf *conf, const char *filter, bool replay);

bool publisher_next(struct hw_publisher *p, struct hw_publisher_event *ev, int ms);
struct hw_publisher_event publisher_await(struct hw_publisher *p, enum hw_publisher_event_kind kind);
struct hw_publisher *publisher_up(const struct hw_mqtt_conf *conf);
/* Hands over a message to be retained, with QoS 1, as statuses are. */
bool publisher_retain(struct hw_publisher *p, const char *topic, const void *payload, size_t len, uint64_t publish_id);
/* This process's only socket that is connected to that port of 127.0.0.1. */
int socket_to(int port);

#endif
