/* SPDX-License-Identifier: MIT */
/*
 * What nodes say of themselves at the broker, as reader 0 reads it: heartwheel/+/status and heartwheel/+/known. Anybody
 * may publish there, so only members count, or those that were: what another sender says is counted and dropped. If
 * such a sender turns out to be a member, all that is retained is read again.
 *
 * A broker may send what is retained ahead of the answer to the subscription, and src/nodes begins anew with that
 * answer: so what was claimed until then is kept, and said once more behind it. Others send it behind later messages:
 * a barrier counts only if no such presence was read since it was sent.
 */
#ifndef HW_CLUSTER_PEERS_H
#define HW_CLUSTER_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/token.h"

struct hw_app;
struct hw_app_reader;
struct hw_reader_event;

struct hw_cluster_early {
	char node[HW_NODE_ID_MAX + 1];
	uint64_t claims[HW_PARTITIONS];
};

struct hw_cluster_peers {
	bool reading;                   /* src/nodes was told that reader 0 is subscribed */
	bool asked, again;              /* what is retained was asked for once more; and is to be again behind that */
	struct hw_mono since;           /* what is retained was asked for; or nothing was lost until then */
	struct hw_cluster_early *early; /* owned: read since `reading` was false */
	size_t n, cap;
	uint64_t own_status, own_known; /* the greatest numbers of our own that were read */
	bool retained;                  /* in this connection something was read that the broker had retained */
	bool asked_for;                 /* it was asked for again, since nothing had */
	uint64_t early_barrier;         /* the last that was sent when such a presence was read: it proves nothing */
	bool disorder_told;
	char stranger[HW_NODE_ID_MAX + 1]; /* the last node that is no member and said something */
};

/* A reader is subscribed, or lost. */
void hw_app_cluster_reader(struct hw_app_reader *r, struct hw_now now, bool up);
/* What is retained was sent once more. */
void hw_app_cluster_replayed(struct hw_app_reader *r, struct hw_now now);
/* This reader may have lost messages. */
void hw_app_cluster_lossy(struct hw_app_reader *r, struct hw_now now);
/* Whether a message is a node's word of itself, which then is no heartbeat; takes it, if it is. */
bool hw_app_cluster_message(struct hw_app_reader *r, struct hw_now now, const struct hw_reader_event *ev);

/* Once a turn: reads again what is retained, if something of a member was passed over. */
void hw_app_cluster_peers_turn(struct hw_app *a, struct hw_now now);
/* The last node that said something and is no member; NULL: it has joined meanwhile. */
const char *hw_app_cluster_stranger(const struct hw_app *a);

void hw_app_cluster_peers_free(struct hw_app *a);

#endif
