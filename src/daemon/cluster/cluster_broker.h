/* SPDX-License-Identifier: MIT */
/* Several nodes at the broker: presence, barriers, evictions, and which statuses may be published. cluster_peers.h
 * reads the messages of the other nodes. */
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
struct hw_publisher_event;

#define HW_CLUSTER_PUBLISHED 8

struct hw_cluster_broker {
	uint64_t due;    /* serial of the ordered presence that is still to be published; 0: there is none */
	uint64_t serial; /* serial of the last published presence */
	struct {
		uint64_t serial, seq;
	} published[HW_CLUSTER_PUBLISHED]; /* the last published presences: `serial` of the order of src/nodes, and
	                                      `seq`, the presence's number */
	uint64_t acked_status, acked_known, acked;
	uint64_t acked_seq;
	int64_t refused_ms; /* when the broker refused a presence, monotonic; 0: it has not refused one */
	bool refused_reported;

	uint64_t barrier;     /* number of the last barrier */
	uint64_t barrier_seq; /* the number of this node's presence that must be read before `barrier` is back */
	uint64_t back[HW_READERS_MAX]; /* per reader: the greatest number that was received */
	uint64_t back_reported;
	uint64_t out;        /* a barrier on its way, which tests the connections to and from the broker; 0: there is
	                      * none */
	struct hw_mono sent; /* the time at which `out` was sent */
	/* When the newest barrier that came back on every reader was sent; 0: none came back since the connections
	 * are up. */
	struct hw_mono heard;
	bool proven; /* since reader 0 requested the retained messages, src/nodes has accepted a barrier that came back
	              */
	bool unread_reported, unretained_reported;

	struct hw_partitions passes; /* partitions whose statuses may be published, as last passed to the sinks */
	struct hw_cluster_peers peers;
	struct hw_cluster_evictions evictions;
};

void hw_app_cluster_broker_free(struct hw_app *a);

/* Executes the orders PRESENCE, BARRIER and EVICT. */
void hw_app_cluster_carry_out(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o);
/* Sends a barrier at intervals on a node that stands by, whose core sends none. Returns whether a recent barrier is
 * back on every reader, which shows that the connections to and from the broker work. */
bool hw_app_cluster_broker_answers(struct hw_app *a, struct hw_now now);

/* Called once a turn, after the orders. If the partitions whose statuses may be published have changed, wakes the
 * sinks. */
void hw_app_cluster_open(struct hw_app *a);

#endif
