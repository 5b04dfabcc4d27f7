/* SPDX-License-Identifier: MIT */
/*
 * The nodes' presences at the broker, as reader 0 reads them: heartwheel/+/status and heartwheel/+/known. Any client
 * may publish there, so only presences of present and former members count. Others are counted and dropped. If such a
 * sender turns out to be a member, all retained messages are read again.
 *
 * A broker may send retained messages before the answer to the subscription, and src/nodes starts again at that answer.
 * So claims read before the answer are kept, and passed to src/nodes again after it. Other brokers send retained
 * messages after later messages. So a barrier counts only if no retained presence was read since the barrier was sent.
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
	bool reading;                   /* src/nodes knows that reader 0 is subscribed */
	bool asked, again;              /* the retained messages were requested again; another request follows */
	struct hw_mono since;           /* the time of that request, or the end of the last lossless blindness */
	struct hw_cluster_early *early; /* owned: presences that were read while `reading` was false */
	size_t n, cap;
	uint64_t own_status, own_known; /* the greatest sequence numbers read of this node's own presences */
	bool retained;                  /* a retained message was read on this connection */
	bool asked_for;                 /* ... since none had arrived, they were requested again */
	uint64_t early_barrier;         /* the last barrier before a retained presence: it proves nothing */
	bool disorder_reported;
	char stranger[HW_NODE_ID_MAX + 1]; /* the last sender that is no member */
};

/* Called once a turn: reads the retained messages again if a member's presence was dropped. */
void hw_app_cluster_peers_turn(struct hw_app *a, struct hw_now now);

void hw_app_cluster_peers_free(struct hw_app *a);

#endif
