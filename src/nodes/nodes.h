/* SPDX-License-Identifier: MIT */
/*
 * One of several nodes: membership, ownership of the partitions, handover, and the fence at the broker. Pure: no
 * socket, clock, log or thread. The caller passes time and events in, and takes orders out:
 *
 *     hw_nodes_answer(n, now, &answer);                    and any other event
 *     while (hw_nodes_next(n, now, &order)) ...            after each event, and at hw_nodes_due()
 *
 * Safety depends on fencing tokens (fencing_token.h) alone: Redis refuses a lesser token, and its node is evicted from
 * the broker (fence.h). Time only decides when another node takes over. The states of a partition:
 *
 *     none -> claimed (by a script; its answer lists the partitions that were won) -> owned
 *     owned -> none, when a greater token is read
 *     owned -> drained -> withdrawn -> released -> none
 *
 * Orders to Redis are answered over the same connection in their order, and at most one of each kind is unanswered.
 * hw_nodes_redis() ends the orders that would wait longer than the link permits. Later answers show their effect.
 *
 * Memory is fixed, about 300 KB. Cost: an answer or a presence is linear in the partitions times the members. The
 * queries of the gate take constant time.
 */
#ifndef HW_NODES_NODES_H
#define HW_NODES_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/event.h"
#include "heartwheel/time.h"
#include "nodes/fencing_token.h"
#include "nodes/members.h"

enum hw_nodes_mode { HW_NODES_MIRROR, HW_NODES_STANDBY };

struct hw_nodes_conf {
	const char *node; /* NODE_ID, copied */
	uint64_t run;     /* run id */
	enum hw_nodes_mode mode;
	int64_t lease_ms, keepalive_ms;
};

#define HW_HANDOVERS_A_SECOND 32
#define HW_HANDOVER_BOUND_MS  10000 /* a partition that is not flushed by then is not handed over now */
#define HW_WITHDRAWAL_MS      1000  /* time for an active member to withdraw its own claim */
#define HW_EVICT_AGAIN_MS     2000
#define HW_BEGIN_LEASES       3     /* a standby may be blind this many leases after its claim, until it first sees, */
#define HW_BEGIN_LEAST_MS     10000 /* and at least this long */
#define HW_ALONE_AFTER_MS     5000  /* after this long without Redis, connect to the broker to receive messages */

struct hw_nodes; /* opaque */

/* Returns NULL without memory. At first Redis and the broker are away, and this node is not ready. */
struct hw_nodes *hw_nodes_new(const struct hw_nodes_conf *conf, struct hw_now now);
void hw_nodes_free(struct hw_nodes *n);

/* --- orders ------------------------------------------------------------------------------------------------------- */

enum hw_nodes_kind {
	/* To Redis. Each is answered by hw_nodes_answer() with its `serial`. */
	HW_NODES_JOIN,    /* enter this node with `run` and `count`; TAKEN if another run has the name */
	HW_NODES_RENEW,   /* set this node's `count` and state; GONE if the entry is missing or another run's. Store the
	                     tokens (hw_nodes_fencing_token()) again where they are missing or less */
	HW_NODES_REMOVE,  /* remove `node` if it still has `run` and `count` */
	HW_NODES_CLAIM,   /* make this node the owner, with `epoch`, of each of `set` whose record is still
	                     hw_nodes_record(). The record must be released, or this node's, or absent, or its owner must
	                     be no member. GONE if this node is no member with `run` */
	HW_NODES_RELEASE, /* release each of `set`, as clean if in `clean`, whose record is still hw_nodes_given() */
	HW_NODES_LEAVE,   /* remove this node's entry if it has this run id */

	/* To the broker. */
	HW_NODES_PRESENCE, /* publish hw_nodes_known() if hw_nodes_recalled(), then the presence with hw_nodes_claims(),
	                      both retained, QoS 1. Call hw_nodes_acked() with `serial` when all is acknowledged. Known
	                      tokens have their own topic, which no will and no eviction replaces: even if every node
	                      that knew a token has ended, the token is found before a node claims with a lesser one */
	HW_NODES_BARRIER,  /* send a barrier now */
	HW_NODES_EVICT, /* connect with the client id of the publisher of `node`, publish it as offline, disconnect */

	/* To the gate, the store and the publisher. */
	HW_NODES_OWN,   /* `set` is owned: follow the stream to `last`, then decide for it. In `clean`, no earlier owner
	                   left anything pending */
	HW_NODES_LOSE,  /* `set` is lost: drop its unconfirmed entries, and send nothing */
	HW_NODES_DRAIN, /* stop deciding for `set`; call hw_nodes_flushed() for each partition whose transitions and
	                   statuses are confirmed */
	HW_NODES_RESUME, /* `set` is kept: decide for it again */

	/* To the other nodes, and to the operator. */
	HW_NODES_ATTEND,   /* ask the other nodes to read Redis at once */
	HW_NODES_NAMESAKE, /* another active node has this node's name; ordered once */
	HW_NODES_STOPPED   /* after hw_nodes_stop(): all is released, and this node has left */
};

struct hw_nodes_order {
	enum hw_nodes_kind kind;
	uint64_t serial;
	char node[HW_NODE_ID_MAX + 1];
	uint64_t run, count, epoch;
	bool ready; /* of JOIN and RENEW: the state to store */
	struct hw_partitions set;
	struct hw_partitions clean; /* of OWN and RELEASE: a part of `set` */
	struct hw_stream_id last;
};

/* Returns the next order; false: none. Before the next call the caller executes the order or reports its loss. */
bool hw_nodes_next(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
/* When to call hw_nodes_next() again if nothing else happens. */
struct hw_mono hw_nodes_due(const struct hw_nodes *n, struct hw_now now);

/* --- Redis -------------------------------------------------------------------------------------------------------- */

/* Redis is connected (up), possibly to another master; or the connection is lost (down), with all unanswered orders. */
void hw_nodes_redis(struct hw_nodes *n, struct hw_now now, bool up);

enum hw_nodes_result {
	HW_NODES_DONE,
	HW_NODES_TAKEN, /* of JOIN */
	HW_NODES_GONE   /* of RENEW and CLAIM: this node is no member */
};

struct hw_nodes_answer {
	uint64_t serial;
	enum hw_nodes_result result;
	const struct hw_member_entry *members; /* all of them, borrowed */
	size_t n_members;
	const struct hw_record *owners; /* HW_PARTITIONS of them, borrowed; NULL: unchanged */
	uint64_t now_s;                 /* Redis' clock */
	const char *const *left;        /* names of former members, borrowed */
	size_t n_left;
	struct hw_partitions won; /* of CLAIM */
	struct hw_stream_id last; /* of CLAIM: the stream's last entry */
	bool denied;              /* of JOIN and RENEW: Redis' ACL denies this node a write that an owner needs */
};
void hw_nodes_answer(struct hw_nodes *n, struct hw_now now, const struct hw_nodes_answer *a);

/* A writing script was refused for p, because `stored` is greater than this node's token. */
void hw_nodes_refused(struct hw_nodes *n, struct hw_now now, unsigned p, const struct hw_fencing_token *stored);
/* Another node reports a change: Redis is read at once. */
void hw_nodes_attend(struct hw_nodes *n, struct hw_now now);

/*
 * Reports doubt that this Redis is the one that all nodes use: another one may have replaced it without this node
 * seeing it. A node in doubt counts as lapsed: it claims nothing and removes no member. It also releases nothing,
 * because another node could not claim that either.
 */
void hw_nodes_doubt(struct hw_nodes *n, struct hw_now now, bool doubted);

/* --- the broker --------------------------------------------------------------------------------------------------- */

/* A session of the publisher begins (up) or is lost (down). */
void hw_nodes_session(struct hw_nodes *n, struct hw_now now, bool up);
/* Reader 0 is subscribed, also to presences (up), or it is lost (down). If it was blind and may have lost messages:
 * report down, have the retained presences delivered again, and report up. */
void hw_nodes_reader(struct hw_nodes *n, struct hw_now now, bool up);
/* The broker acknowledged the presence with this serial. */
void hw_nodes_acked(struct hw_nodes *n, struct hw_now now, uint64_t serial);
/* A barrier was passed to the publisher; or this barrier, or a later one, is back on every reader. */
void hw_nodes_barrier_sent(struct hw_nodes *n, struct hw_now now, uint64_t number);
void hw_nodes_barrier_back(struct hw_nodes *n, struct hw_now now, uint64_t number);
/* Whether messages of `node` at the broker count: it is this node, or is or was a member in Redis. In doubt
 * (hw_nodes_doubt()) every node counts. */
bool hw_nodes_knows(const struct hw_nodes *n, const char *node);
/* A message of an unknown node was ignored. The node may have just joined, so Redis is read at once. If the node proves
 * to be a member, hw_nodes_rereads() is true. */
void hw_nodes_passed_over(struct hw_nodes *n, struct hw_now now);
/* Whether to read all retained messages again; true once. */
bool hw_nodes_rereads(struct hw_nodes *n);
/* Reader 0 read a presence or known tokens of a node that hw_nodes_knows(), possibly this one. NULL: not in this
 * message. For a presence that is offline or without claims, pass 256 zeros. A token with an impossible epoch is
 * ignored. */
void hw_nodes_presence(struct hw_nodes *n, struct hw_now now, const char *node, const uint64_t claims[HW_PARTITIONS],
                       const struct hw_fencing_token known[HW_PARTITIONS]);
/* The broker denies this node the right to evict `node`. */
void hw_nodes_not_evicted(struct hw_nodes *n, struct hw_now now, const char *node);

/* --- this node ---------------------------------------------------------------------------------------------------- */

/* Whether this node could take over now. Mirror: it has joined, loaded, followed the stream to its end, and is not
 * blind. Standby: its publisher is connected. */
void hw_nodes_ready(struct hw_nodes *n, struct hw_now now, bool ready);
/* Sets the partitions with devices that this node cannot judge (hw_monitor_judges()). This node neither claims nor
 * keeps them while a ready member can judge them. A standby treats the partitions as one: a single partition in `set`
 * stands for all. */
void hw_nodes_unable(struct hw_nodes *n, const struct hw_partitions *set);
/* Whether Redis' ACL denies this node a write. The node is then unable for all partitions: in hw_nodes_unable() and in
 * its entry. After a lease it drops each partition whose preferred owner is settled and able. There is no handover,
 * because pending writes cannot be written. If all nodes are denied, each keeps its partitions. */
bool hw_nodes_is_denied(const struct hw_nodes *n);
/* This node is blind by link, barrier, standstill or suspension; or it sees again. */
void hw_nodes_blind(struct hw_nodes *n, struct hw_now now, bool blind);
/* A drained partition is flushed: each pending transition is confirmed, each status acknowledged. `clean`: in addition,
 * no search for an earlier owner's pending statuses is left. */
void hw_nodes_flushed(struct hw_nodes *n, struct hw_now now, unsigned p, bool clean);
/* Begins a clean stop: everything is drained at once and released, and this node leaves the members. */
void hw_nodes_stop(struct hw_nodes *n, struct hw_now now);
/* After hw_nodes_stop(): a partition that is not flushed by now is released as it is, and its pending entries are lost.
 * There are no more renewals. */
void hw_nodes_abandon(struct hw_nodes *n, struct hw_now now);

/* --- queries ------------------------------------------------------------------------------------------------------ */

/* A partition that was won counts as owned from HW_NODES_OWN on. */

/* Whether this node owns p: its transitions may be written, with hw_nodes_fencing_token(). */
bool hw_nodes_owns(const struct hw_nodes *n, unsigned p);
/* Whether this node may make transitions of p's devices: it owns p, and no handover is under way. */
bool hw_nodes_is_authoritative(const struct hw_nodes *n, unsigned p);
/* Whether statuses of p may be published over the present session; and all partitions for which this is true. */
bool hw_nodes_publishes(const struct hw_nodes *n, unsigned p);
struct hw_partitions hw_nodes_publishing(const struct hw_nodes *n);
/* Whether to connect to the broker for the first time: this node has joined, or HW_ALONE_AFTER_MS have passed without
 * Redis. It joins first, because its client ids would disconnect another node of its name. */
bool hw_nodes_connects(const struct hw_nodes *n, struct hw_now now);

struct hw_fencing_token hw_nodes_fencing_token(const struct hw_nodes *n, unsigned p); /* this node's; epoch 0: none */
const struct hw_record *hw_nodes_record(const struct hw_nodes *n, unsigned p);
const struct hw_fencing_token *hw_nodes_given(const struct hw_nodes *n, unsigned p); /* of the last RELEASE */
const uint64_t *hw_nodes_claims(const struct hw_nodes *n); /* HW_PARTITIONS of them, for a presence */
void hw_nodes_known(const struct hw_nodes *n, struct hw_fencing_token known[HW_PARTITIONS]);
/* Whether the known tokens of an earlier run of this node were read, if there are any (hw_fence_recalled()). */
bool hw_nodes_recalled(const struct hw_nodes *n);
const struct hw_members *hw_nodes_members(const struct hw_nodes *n);
bool hw_nodes_is_member(const struct hw_nodes *n);
/* Whether the last confirmed renewal is older than 3/5 of a lease, or Redis is in doubt (hw_nodes_doubt()). */
bool hw_nodes_lapsed(const struct hw_nodes *n, struct hw_now now);
/* How long ago the last confirmed renewal was sent; INT64_MAX: none since this node became a member. */
int64_t hw_nodes_silent_ns(const struct hw_nodes *n, struct hw_now now);
/* The node that should own p: of this node and the ready members, the one with the greatest weight. A node that can
 * judge all of p is preferred to one that cannot. */
const char *hw_nodes_preferred_owner(const struct hw_nodes *n, unsigned p);

struct hw_nodes_stats {
	uint64_t claims, claims_lost; /* partitions */
	uint64_t lost, fenced_redis;  /* lost to a greater token; of these, refused by a script */
	uint64_t released, resumed;   /* partitions */
	uint64_t removals, evictions; /* ordered */
	uint64_t impossible;          /* tokens with an epoch too far ahead */
	uint64_t joins;
};
const struct hw_nodes_stats *hw_nodes_stats(const struct hw_nodes *n);

#endif
