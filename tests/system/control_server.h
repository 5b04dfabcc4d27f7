/* SPDX-License-Identifier: MIT */
/*
 * The control API in a test's own process: a real core, a real unix socket, and a loop that the test turns while it
 * waits. One thread, so a test may change devices between any two turns.
 */
#ifndef HW_TEST_CONTROL_SERVER_H
#define HW_TEST_CONTROL_SERVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "control/control.h"
#include "control/nodes.h"

struct server {
	char dir[64], path[96];
	struct event_base *base;
	struct hw_monitor *monitor;
	struct hw_control *control;
	struct hw_now now;
	struct hw_control_status status;
	int reload_code;
	const char *reload_body;
	unsigned forgets;
	/* Of a server with a store: what was requested from the store, and how often. */
	unsigned asked_after, asked_last;
	struct hw_stream_id after;
	bool store_fails;
	/* Of one of several nodes: what it knows, who owns all devices ("": nobody), and what a request was given. */
	struct hw_control_nodes nodes;
	const char *owner;
	uint64_t ticket;
};

/* Groups "default" (30 s) and "fast" (2 s); ids of "fast" get the prefix "f/". */
void server_start(struct server *s, bool loading);
/* Like server_start(), but keys are watched, those of the group "default". */
void server_start_with_keys(struct server *s);
/* Like server_start(), but a store keeps the event stream. It is not connected at first; the test acts as the store. */
void server_start_with_store(struct server *s);
/* Like server_start(), but as node "a" of two; "b" is blind, and "c" is lost. "a" owns all devices until `owner` is
 * set. */
void server_start_with_nodes(struct server *s);
void server_stop(struct server *s);

/* One turn of the loop, which does not wait. */
void server_turn(struct server *s);
/* Lets the core do what is due. */
void server_core(struct server *s);
/* Ends the blindness of the start. */
void server_see(struct server *s);

/* A heartbeat, with a payload or NULL. `group`: 0 default, 1 fast. */
void server_beat(struct server *s, unsigned group, const char *id, const char *payload);
/* Another program has written a device's key, with a time to live. */
void server_key(struct server *s, const char *id, int64_t ttl_ms);
void server_forget(struct server *s, const char *id);

/* Milliseconds of a monotonic clock, and whether a deadline of 30 s that began at `since` has passed. */
long long clock_ms(void);
bool too_late(long long since);

/* A client's socket, nonblocking. */
int client_connect(const struct server *s);
/* Sends all of it, turning the loop; false if the server closed before. */
bool client_send(struct server *s, int fd, const char *bytes, size_t n);

struct reply {
	int code;   /* 0: no answer */
	char *head; /* status line and headers */
	char *body; /* without chunks */
	size_t body_len;
	char *rest; /* what came behind this answer, NUL-terminated */
};
/* Reads one whole answer, turning the loop. `already`: bytes that came before (a reply's .rest), or NULL. */
void client_read(struct server *s, int fd, const char *already, struct reply *r);
/* Reads until the server closes; .body is all that follows the first head. */
void client_read_all(struct server *s, int fd, struct reply *r);
void reply_fini(struct reply *r);

/* One request on a connection of its own; `more` are further header lines and the body. Whether all was sent. */
bool ask(struct server *s, const char *method, const char *target, const char *more, struct reply *r);
/* The same for GET; returns the status. */
int get(struct server *s, const char *target, struct reply *r);

#endif
