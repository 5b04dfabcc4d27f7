/* SPDX-License-Identifier: MIT */
/*
 * The presences of the nodes at the broker, which reader 0 reads: heartwheel/+/status and heartwheel/+/known. Any
 * client may publish there, so only messages of present and former members count. Other messages are counted and
 * dropped. If the sender of a dropped message later proves to be a member, all retained messages are read again.
 *
 * A broker may send retained messages before its answer to the subscription, but for src/nodes the reading begins with
 * that answer. So claims that are read before the answer are kept, and are passed to src/nodes after it. Other brokers
 * send retained messages late, after newer messages. So a barrier counts only if no retained presence was read after
 * the barrier was sent.
 */
#ifndef HW_CLUSTER_PEERS_H
#define HW_CLUSTER_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/fencing_token.h"

struct hw_app;
struct hw_reader_event;

struct hw_cluster_early {
	char node[HW_NODE_ID_MAX + 1];
	uint64_t claims[HW_PARTITIONS];
};

struct hw_cluster_peers {
	bool reading;         /* src/nodes knows that reader 0 is subscribed */
	bool asked, again;    /* asked: the retained messages were requested again; again: another request is necessary
	                         after this one */
	struct hw_mono since; /* when the retained messages were requested, or when the last lossless blindness ended */
	struct hw_cluster_early *early; /* owned: presences that were read while `reading` was false */
	size_t n, cap;
	uint64_t own_status, own_known; /* the greatest numbers of this node's own presence and known tokens that
	                                 * were read */
	bool retained;                  /* a retained message was read on this connection */
	bool asked_for;                 /* ... since none had arrived, they were requested again */
	uint64_t early_barrier;         /* the last barrier that was sent before a retained presence was read; this
	                                 * barrier proves nothing */
	bool disorder_reported;
	char stranger[HW_NODE_ID_MAX + 1]; /* the last sender that is no member */
};

/* Called once a turn. If this node has dropped the presence of a member, it reads the retained messages again. */
void hw_app_cluster_peers_turn(struct hw_app *a, struct hw_now now);

void hw_app_cluster_peers_free(struct hw_app *a);

#endif
