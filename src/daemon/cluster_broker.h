/* SPDX-License-Identifier: MIT */
/*
 * Several nodes at the broker (design 10.5): presence, barriers, evictions, and which statuses may go out. What the
 * other nodes say there is cluster_peers.h's.
 */
#ifndef HW_CLUSTER_BROKER_H
#define HW_CLUSTER_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster_evict.h"
#include "cluster_peers.h"
#include "heartwheel/monitor.h"
#include "heartwheel/registry.h"
#include "heartwheel/time.h"
#include "nodes/nodes.h"

struct hw_app;
struct hw_app_reader;
struct hw_publisher_event;

/* More than the number of any barrier of the core's, less than those behind a share's message (HW_FENCE). */
#define HW_CLUSTER_BARRIER (UINT64_C(1) << 62)

/* Both tokens of a presence that src/nodes ordered; what is said without an order has token 0. */
#define HW_CLUSTER_TOKEN UINT64_C(0xc000000000000000)

#define HW_CLUSTER_SAID 8

struct hw_cluster_broker {
	uint64_t due;    /* serial of the presence that was ordered and not said yet; 0: none */
	uint64_t serial; /* of the one that was said last */
	struct {
		uint64_t serial, seq;
	} said[HW_CLUSTER_SAID]; /* the last ones: their own numbers are what they come back with */
	uint64_t acked_status, acked_known, acked;
	uint64_t acked_seq;
	int64_t refused_ms; /* monotonic: one of them was refused; 0: none was */
	bool refused_told;

	uint64_t barrier;              /* the last one's number */
	uint64_t barrier_seq;          /* a presence with this number is to be read before it */
	uint64_t back[HW_READERS_MAX]; /* the greatest that came back */
	uint64_t back_told;
	uint64_t out; /* a barrier that is awaited, to know whether the ways to and from the broker work; 0: none */
	struct hw_mono sent;  /* it was */
	struct hw_mono heard; /* the last such barrier that came back on every reader was sent then; 0: none since the
	                         links are up */
	bool proven;          /* since reader 0 asked for what is retained, a barrier counted */
	bool unread_told, unretained_told;

	struct hw_partitions passes; /* whose statuses may go out, as the sinks know */
	struct hw_cluster_peers peers;
	struct hw_cluster_evictions evictions;
};

void hw_app_cluster_broker_free(struct hw_app *a);

/* PRESENCE, BARRIER, EVICT. */
void hw_app_cluster_say(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o);
/* A session of the publisher begins, or is lost. */
void hw_app_cluster_session(struct hw_app *a, struct hw_now now, bool up);
/* The connection of barriers is there again: a barrier that it lost, or never had, is sent once more. */
void hw_app_cluster_barriers_up(struct hw_app *a, struct hw_now now);
/* The publisher's answer to a token with HW_CLUSTER_TOKEN: acknowledged, or refused. */
void hw_app_cluster_answered(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev);
/* A barrier of ours is back, with its number less HW_CLUSTER_BARRIER. */
void hw_app_cluster_back(struct hw_app_reader *r, struct hw_now now, uint64_t number);
/* Sends a barrier from time to time, and returns whether one of the last ones is back on every reader: its ways to and
 * from the broker work. For a node whose core sends none because it stands by. */
bool hw_app_cluster_broker_answers(struct hw_app *a, struct hw_now now);
/* The monitor sees again; after a lossy blindness presences are read anew. */
void hw_app_cluster_sees(struct hw_app *a, struct hw_now now, bool lossy);

/* Whether a presence is to be said because src/nodes ordered it. */
bool hw_app_cluster_presence_due(const struct hw_app *a, struct hw_now now);
/* Says what is known, ahead of a presence with this number; *token is the presence's. False: there is no room for it.
 */
bool hw_app_cluster_say_known(struct hw_app *a, uint64_t seq, uint64_t *token);
/* ... which was said. */
void hw_app_cluster_said(struct hw_app *a, uint64_t seq, uint64_t token);
/* Its own part of a presence, with a NUL: ,"cluster":… Returns its length; 0 where mode = off; -1 if it does not fit.
 */
int hw_app_cluster_presence(const struct hw_app *a, bool online, char *buf, size_t cap);
#define HW_CLUSTER_PRESENCE_MAX (HW_PARTITIONS * 25 + 512)

/* Once a turn, after the orders: lets out what may go now. */
void hw_app_cluster_open(struct hw_app *a);
/* Whether statuses of this device may go out now; true where mode = off. */
bool hw_app_may_publish(const struct hw_app *a, const struct hw_device *d);

#endif
