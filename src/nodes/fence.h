/* SPDX-License-Identifier: MIT */
/*
 * The fence at the broker: decides for which partitions statuses may be published in the present session of the
 * publisher.
 *
 * The broker compares no tokens. But the broker keeps the order of messages, and only one connection at a time has a
 * client id. So a status of partition p is published only if all of these hold in this session:
 *
 * 1. The broker has acknowledged the presence that claims p. A barrier was sent after that, and is back on every
 *    reader.
 * 2. A renewal was confirmed that was sent after the session began.
 * 3. No message or answer has shown a greater token for p. (If one does, the caller withdraws the claim:
 *    hw_fence_claim().)
 * 4. No other node's presence that was read before that barrier claims p with a lesser token. If one does, this node
 *    waits until that peer withdraws its claim or is evicted.
 *
 * So at most one of two owners publishes statuses of p. The presence of one of them reaches the broker first. The other
 * owner reads this presence before its own barrier is back. If that presence has a greater token than its own, the
 * other owner withdraws its claim. If the token is lesser, the other owner evicts that node.
 *
 * After a session has met these conditions, statuses are published whatever happens to Redis. If the session is lost,
 * all conditions must be proven again. If reader 0 was lost or may have lost messages, a new renewal is not needed, but
 * a new barrier is.
 *
 * Cost: reading a presence and checking the conditions are linear in the partitions. hw_fence_passes() and
 * hw_fence_passing() take constant time.
 */
#ifndef HW_NODES_FENCE_H
#define HW_NODES_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/fencing_token.h"

#define HW_PEERS_MAX 64 /* peers with claims; bits of `before` */

struct hw_peer {
	char node[HW_NODE_ID_MAX + 1]; /* "": free */
	uint64_t claims[HW_PARTITIONS];
	unsigned blocks;        /* number of this node's partitions that wait until this peer withdraws its claims */
	struct hw_mono since;   /* since when the first of them waits */
	struct hw_mono evicted; /* when its eviction was last ordered; INT64_MIN: never */
	struct hw_mono refused; /* when the broker refused the eviction; INT64_MIN: never */
};

enum hw_proof {
	HW_PROOF_NONE,
	HW_PROOF_ACK,  /* waits for the acknowledgement of the presence */
	HW_PROOF_SEND, /* waits for a barrier to be sent */
	HW_PROOF_BACK  /* waits for that barrier, or a later one, to be back */
};

struct hw_fence {
	char node[HW_NODE_ID_MAX + 1];
	bool session, reader; /* the publisher is connected; reader 0 is subscribed */
	bool confirmed;       /* condition 2 */
	uint64_t sessions;    /* number of the present session, or of the last one */
	uint64_t begun;       /* how often the proof has started again; if unchanged, reader 0 has missed no presence */
	uint64_t claims[HW_PARTITIONS];

	bool recalled; /* the tokens that an earlier run published were read: see hw_fence_recalled() */

	uint64_t published, acked; /* numbers of the last presence of the session: published, and acknowledged */
	bool stale;                /* the claims have changed since the last presence */
	uint64_t published_claims[HW_PARTITIONS];

	enum hw_proof proof;
	uint64_t proof_published, proof_barrier;
	struct hw_mono asked; /* when a barrier was last requested; INT64_MIN: never */
	uint64_t proof_claims[HW_PARTITIONS];

	bool proven[HW_PARTITIONS];
	uint64_t before[HW_PARTITIONS]; /* condition 4: a bit for each peer */
	struct hw_partitions open;      /* proven, and `before` is empty */
	struct hw_peer peer[HW_PEERS_MAX];
	bool overflow; /* too many peers have claims: no status is published until reader 0 has read all presences
	                * again */
};

/* Initialises a fence, without a session, a reader or a claim. `node`: the name of this node; borrowed for the call. */
void hw_fence_init(struct hw_fence *f, const char *node);

/* Sets the epoch with which this node claims p from now on. 0: the node no longer claims p. */
void hw_fence_claim(struct hw_fence *f, unsigned p, uint64_t epoch);

/* Called when a session begins or ends. A new session ends the previous one. */
void hw_fence_session(struct hw_fence *f, bool up);
/* Called when reader 0 changes. up: reader 0 is subscribed to presences, and the retained ones follow. down: reader
 * 0 is lost, or may have lost messages. */
void hw_fence_reader(struct hw_fence *f, bool up);
/* Called when a renewal was confirmed. `sessions`: the value of f->sessions when the renewal was sent. */
void hw_fence_confirm(struct hw_fence *f, uint64_t sessions);

/*
 * Whether this node may publish its known tokens.
 *
 * An earlier run of this node has published its known tokens on the same topic, retained. They may be the only record
 * of a claim that Redis has lost and whose owner has ended. So this node must read them before it replaces them.
 *
 * True when a barrier is back that was sent while there were a session and reader 0. If no tokens were read by then,
 * there are no tokens, or this node has no right to read them. Nothing is proven before that. Afterwards all claims are
 * published again.
 */
bool hw_fence_recalled(const struct hw_fence *f);
/* Whether to publish a presence, because the claims have changed or the session is new. */
bool hw_fence_must_publish(const struct hw_fence *f);
/* Called before a presence with the claims is published with QoS 1. Returns the number of the presence. */
uint64_t hw_fence_publish(struct hw_fence *f);
/* Called when the broker has acknowledged a presence. Ignores an acknowledgement from an earlier session. */
void hw_fence_acked(struct hw_fence *f, uint64_t number);

/* Returns true if a proof needs a barrier now. The caller then sends a barrier at once, and does not wait for the
 * regular one. For the same proof, returns true again after HW_FENCE_RETRY_NS at the earliest. */
#define HW_FENCE_RETRY_NS (2 * HW_NS_PER_S)
bool hw_fence_ask_barrier(struct hw_fence *f, struct hw_mono now);
/* hw_fence_barrier_sent(): a barrier was handed to the publisher. hw_fence_barrier_back(): it is back on every reader.
 * Numbers grow across sessions. */
void hw_fence_barrier_sent(struct hw_fence *f, uint64_t number);
void hw_fence_barrier_back(struct hw_fence *f, struct hw_mono now, uint64_t number);

/* Called when reader 0 has read a node's presence with these claims; all 0: the node claims nothing. Ignores this
 * node's own presence. */
void hw_fence_read(struct hw_fence *f, const char *node, const uint64_t claims[HW_PARTITIONS]);

/* Returns peer `i` if partitions of this node wait until this peer withdraws its claims or is evicted. Otherwise
 * returns NULL. */
struct hw_peer *hw_fence_blocker(struct hw_fence *f, size_t i);
/* Called when so much time has passed that the broker has certainly closed this peer's connection. No partition waits
 * for the peer any more. */
void hw_fence_peer_closed(struct hw_fence *f, size_t i);

/* Whether statuses of p may be published now. */
bool hw_fence_passes(const struct hw_fence *f, unsigned p);
/* The partitions whose statuses may be published now. */
struct hw_partitions hw_fence_passing(const struct hw_fence *f);
/* Whether no presence of this node claims p any more: the broker has acknowledged a presence without p in this session,
 * or there is no session. */
bool hw_fence_withdrawn(const struct hw_fence *f, unsigned p);

#endif
