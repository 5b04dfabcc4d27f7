/* SPDX-License-Identifier: MIT */
/*
 * The fence at the broker (10.5): which partitions' statuses may go out over the present session of the publisher.
 *
 * The broker compares no tokens; but it passes messages on in order, and a client id has one connection. So a status of
 * partition p goes out only if, in this session,
 *   1. our presence that claims p was acknowledged, then a barrier was sent, and is back on every reader;
 *   2. a renewal sent after the session began was confirmed;
 *   3. nothing read shows a greater token for p (whoever drives this withdraws the claim then: hw_fence_claim());
 *   4. no other presence read before that barrier still claims p with a lesser token: such a peer is cut off first.
 * Two owners thus cannot both pass: of two presences one is before the other at the broker, and whoever is later reads
 * the other's before its own barrier is back, and either yields to a greater token or cuts a lesser one off.
 *
 * A session that passed stays good whatever becomes of Redis. A lost session, and a reader 0 that was lost or may have
 * lost messages, begin this anew.
 *
 * Cost: reading a presence and proving are linear in the partitions; hw_fence_passes() and hw_fence_passing() are
 * constant.
 */
#ifndef HW_NODES_FENCE_H
#define HW_NODES_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/token.h"

#define HW_PEERS_MAX 64 /* presences that claim anything: bits of `before` */

struct hw_peer {
	char node[HW_NODE_ID_MAX + 1]; /* "": the place is free */
	uint64_t claims[HW_PARTITIONS];
	unsigned blocks;        /* partitions of ours that wait for it */
	struct hw_mono since;   /* the first of them does since then */
	struct hw_mono evicted; /* its eviction was ordered last then; INT64_MIN: it was not */
	struct hw_mono refused; /* the broker refused that; INT64_MIN: it did not */
};

enum hw_proof {
	HW_PROOF_NONE,
	HW_PROOF_ACK,  /* waits for its presence to be acknowledged */
	HW_PROOF_SEND, /* ... for a barrier to be sent */
	HW_PROOF_BACK  /* ... for that barrier, or a later one, to be back */
};

struct hw_fence {
	char node[HW_NODE_ID_MAX + 1];
	bool session, reader; /* the publisher is connected; reader 0 is subscribed */
	bool confirmed;       /* rule 2 */
	uint64_t sessions;    /* the present one's number, or the last one's */
	uint64_t begun;       /* how often this began anew: as long as it is the same nothing was missed */
	uint64_t claims[HW_PARTITIONS];

	bool recalled; /* what was retained of us before this life has been read: see hw_fence_recalled() */

	uint64_t said, acked; /* the numbers of the last presence of this session, and of the last acknowledged one */
	bool stale;           /* the claims are others than the last presence said */
	uint64_t said_claims[HW_PARTITIONS];

	enum hw_proof proof;
	uint64_t proof_said, proof_barrier;
	struct hw_mono asked; /* a barrier was asked for last then; INT64_MIN: it was not */
	uint64_t proof_claims[HW_PARTITIONS];

	bool proven[HW_PARTITIONS];
	uint64_t before[HW_PARTITIONS]; /* rule 4: a bit for each peer */
	struct hw_partitions open;      /* proven, and `before` is empty */
	struct hw_peer peer[HW_PEERS_MAX];
	bool overflow; /* more peers claim something than there are places: nothing passes before reader 0 reads anew */
};

/* `node`: ours, borrowed for the call. There is neither session nor reader, and nothing is claimed. */
void hw_fence_init(struct hw_fence *f, const char *node);

/* We claim p with this epoch from now on; 0: no more. */
void hw_fence_claim(struct hw_fence *f, unsigned p, uint64_t epoch);

/* A session begins; or it ends. Beginning one ends the one before. */
void hw_fence_session(struct hw_fence *f, bool up);
/* Reader 0 is subscribed to presences, retained ones follow; or it is lost, or may have lost messages. */
void hw_fence_reader(struct hw_fence *f, bool up);
/* A renewal was confirmed that was sent when `sessions` had this value. */
void hw_fence_confirm(struct hw_fence *f, uint64_t sessions);

/*
 * Whether what we know of tokens may be said. What an earlier life of ours had said of that is retained in the same
 * place, and may be the last word of a claim that Redis has lost and whose owner is gone: it is read before it is
 * replaced. So not before the first barrier is back that was sent while we had both session and reader 0; if it was not
 * read by then, there is none, or we may not read it. Nothing is proven until then; and then all is to be said once
 * more.
 */
bool hw_fence_recalled(const struct hw_fence *f);
/* Whether a presence is to be published because the claims changed or the session is new. */
bool hw_fence_must_say(const struct hw_fence *f);
/* One is published now with our claims, QoS 1: returns its number. */
uint64_t hw_fence_say(struct hw_fence *f);
/* The broker acknowledged it; numbers of an earlier session may come late and are ignored. */
void hw_fence_acked(struct hw_fence *f, uint64_t number);

/* Whether a barrier should be sent now rather than at the usual pace; says so once in HW_FENCE_RETRY_NS. */
#define HW_FENCE_RETRY_NS (2 * HW_NS_PER_S)
bool hw_fence_ask_barrier(struct hw_fence *f, struct hw_mono now);
/* A barrier was given to the publisher; and one is back on every reader. Numbers grow over all sessions. */
void hw_fence_barrier_sent(struct hw_fence *f, uint64_t number);
void hw_fence_barrier_back(struct hw_fence *f, struct hw_mono now, uint64_t number);

/* Reader 0 read a node's presence: what it claims; all 0: nothing. Our own is passed over. */
void hw_fence_read(struct hw_fence *f, const char *node, const uint64_t claims[HW_PARTITIONS]);

/* Peer `i`, if partitions of ours wait for it to withdraw or be cut off, or NULL. */
struct hw_peer *hw_fence_blocker(struct hw_fence *f, size_t i);
/* Nobody waits for this peer any more: it must be gone by now. */
void hw_fence_outwait(struct hw_fence *f, size_t i);

/* Whether statuses of p may go out now. */
bool hw_fence_passes(const struct hw_fence *f, unsigned p);
/* Those of which they may. */
struct hw_partitions hw_fence_passing(const struct hw_fence *f);
/* Whether the broker has acknowledged, in this session, a presence without a claim for p; or there is no session. */
bool hw_fence_withdrawn(const struct hw_fence *f, unsigned p);

#endif
