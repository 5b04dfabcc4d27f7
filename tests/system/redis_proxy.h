/* SPDX-License-Identifier: MIT */
/*
 * A proxy between the tested object and its redis-server, on the test's own loop. It can hold back what one side sends
 * to itself while both connections stay open. Any error fails the test.
 */
#ifndef REDIS_PROXY_H
#define REDIS_PROXY_H

#include <event2/event.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdint.h>

#define PROXY_SCANS 256

struct pipe_pair;

struct proxy {
	struct event_base *base;
	struct evconnlistener *listener;
	int port, server_port;
	struct pipe_pair *pairs;
	bool swallow; /* what is published does not reach subscribers */
	unsigned swallowed;
	struct {
		int64_t ns;
		bool first;   /* from cursor 0 */
	} scans[PROXY_SCANS]; /* that were sent to the server, oldest first */
	unsigned n_scans;
	unsigned publishes, publishes_at_look; /* messages that were sent; their number when the flags were last
	                                        * requested */
	unsigned flag_looks;                   /* answers to that */
};

void proxy_start(struct proxy *p, struct event_base *base, int server_port);
void proxy_stop(struct proxy *p);
/* Nothing that is sent on connections that have not subscribed reaches the server, until it is let go. */
void proxy_hold(struct proxy *p, bool hold);

#endif
