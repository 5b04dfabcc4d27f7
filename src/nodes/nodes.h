/* SPDX-License-Identifier: MIT */
/*
 * One of several nodes: membership, ownership of the partitions, handover, and the fence at the broker. Each device
 * belongs to one of a fixed number of partitions, and one node owns each partition. Pure: no socket, clock, log or
 * thread. The caller passes in time and events, and takes out orders.
 *
 * Use: call hw_nodes_answer() or another event function, then call hw_nodes_next() until it returns false. Call
 * hw_nodes_next() in the same way at the time that hw_nodes_due() returns.
 *
 * Safety depends only on fencing tokens (fencing_token.h): Redis refuses a lesser token, and the node with the lesser
 * token is evicted from the broker (fence.h). Time only decides when another node takes over. The states of a
 * partition:
 *
 * - none -> claimed (by a script; its answer lists the partitions that were won) -> owned
 * - owned -> none, when a greater token is read
 * - owned -> drained -> withdrawn -> released -> none, when the partition is handed over
 *
 * Redis answers the orders of one connection in their sequence, and at most one order of each kind is unanswered. When
 * the connection to Redis is lost, hw_nodes_redis() drops the unanswered orders. The answers after the reconnect show
 * whether Redis has carried them out.
 *
 * Memory is fixed, about 300 KB. Cost: an answer or a presence is linear in partitions times members. The functions
 * that cluster_gate.c calls take constant time.
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
/* A partition is not handed over now if a write has been pending for longer than this. */
#define HW_HANDOVER_BOUND_MS 10000
#define HW_WITHDRAWAL_MS     1000 /* time for an active member to withdraw its own claim */
#define HW_EVICT_AGAIN_MS    2000
/* a standby that has claimed the fleet must receive its first message within this many leases */
#define HW_BEGIN_LEASES   3
#define HW_BEGIN_LEAST_MS 10000 /* and at least this long */
#define HW_ALONE_AFTER_MS 5000  /* after this time without Redis, a node connects to the broker to receive messages */

struct hw_nodes; /* opaque */

/* Returns NULL if there is no memory. Initially there is no Redis and no broker, and this node is not ready. */
struct hw_nodes *hw_nodes_new(const struct hw_nodes_conf *conf, struct hw_now now);
void hw_nodes_free(struct hw_nodes *n);

/* --- orders ------------------------------------------------------------------------------------------------------- */

enum hw_nodes_kind {
	/* Orders to Redis. Each is answered by hw_nodes_answer() with its `serial`. */
	HW_NODES_JOIN,    /* add this node to the members, with `run` and the `count` of its renewals. Answer TAKEN:
	                     another run has the name */
	HW_NODES_RENEW,   /* write this node's `count` and state. Where Redis has no token, or one that is less than
	                   * hw_nodes_fencing_token(), write that token again. Answer GONE: the entry is missing, or
	                   * belongs to another run */
	HW_NODES_REMOVE,  /* remove `node` if it still has `run` and `count` */
	HW_NODES_CLAIM,   /* make this node the owner of partitions of `set`, with `epoch`. A partition is given to this
	                   * node if its record in Redis has not changed: it equals hw_nodes_record(). The record must
	                   * also be absent, released or this node's own, or name an owner that is no member. Answer
	                   * GONE: Redis has no member with this node's name and `run` */
	HW_NODES_RELEASE, /* release each partition of `set` whose record in Redis equals hw_nodes_given(); as clean if
	                   * the partition is in `clean` */
	HW_NODES_LEAVE,   /* remove this node's entry if it has this run id */

	/* To the broker. */
	HW_NODES_PRESENCE, /* publish hw_nodes_known() if hw_nodes_recalled(), then the presence with
	                    * hw_nodes_claims(), both retained and with QoS 1. Call hw_nodes_acked() with `serial`
	                    * when both are acknowledged. The known tokens have their own topic, which no will and no
	                    * eviction replaces. So a node finds a token before it claims with a lesser one, even if
	                    * every node that knew the token has ended */
	HW_NODES_BARRIER,  /* send a barrier now */
	HW_NODES_EVICT,    /* connect with the client id of the publisher of `node`, publish that node as offline,
	                      disconnect */

	/* To the gate, the store and the publisher. */
	HW_NODES_OWN,    /* this node owns `set`: follow the stream to `last`, then decide for these partitions. For
	                  * the partitions in `clean`, no earlier owner has left pending writes */
	HW_NODES_LOSE,   /* this node has lost `set`: drop its pending writes and publishes, and send nothing more for
	                  * it */
	HW_NODES_DRAIN,  /* stop deciding for `set`; call hw_nodes_flushed() for each partition whose transitions and
	                    statuses are confirmed */
	HW_NODES_RESUME, /* `set` is kept: decide for it again */

	/* To the other nodes, and to the operator. */
	HW_NODES_ATTEND,   /* ask the other nodes to read Redis at once */
	HW_NODES_NAMESAKE, /* another active node has this node's name; ordered once */
	HW_NODES_STOPPED   /* after hw_nodes_stop(): all partitions are released, and this node has left */
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

/* Returns the next order; false: there is none. Before the next call, the caller carries out the order or reports that
 * it is lost. */
bool hw_nodes_next(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
/* Returns when to call hw_nodes_next() again if no event comes before. */
struct hw_mono hw_nodes_due(const struct hw_nodes *n, struct hw_now now);

/* --- Redis -------------------------------------------------------------------------------------------------------- */

/* Called when the connection to Redis changes. up: Redis is connected, perhaps to another master. down: the
 * connection is lost, and so are all unanswered orders. */
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
	bool denied;              /* JOIN, RENEW: Redis denies this node the right to a write that an owner needs */
};
void hw_nodes_answer(struct hw_nodes *n, struct hw_now now, const struct hw_nodes_answer *a);

/* Called when a script refused to write for p: Redis has the token `stored`, which is greater than this node's. */
void hw_nodes_refused(struct hw_nodes *n, struct hw_now now, unsigned p, const struct hw_fencing_token *stored);
/* Another node reports a change: Redis is read at once. */
void hw_nodes_attend(struct hw_nodes *n, struct hw_now now);

/*
 * Reports whether it is doubtful that this Redis is the one that all nodes use: another may have replaced it unnoticed.
 * A node in doubt counts as lapsed: it claims nothing and removes no member. Nor does it release anything, because
 * other nodes are in doubt too and could not claim the partitions.
 */
void hw_nodes_doubt(struct hw_nodes *n, struct hw_now now, bool doubted);

/* --- the broker --------------------------------------------------------------------------------------------------- */

/* Called when a session of the publisher begins (up) or is lost (down). */
void hw_nodes_session(struct hw_nodes *n, struct hw_now now, bool up);
/* Called when reader 0 changes. up: reader 0 is subscribed, also to presences. down: reader 0 is lost. If reader 0
 * was blind and may have lost messages, the caller reports down, requests the retained presences again, and then
 * reports up. */
void hw_nodes_reader(struct hw_nodes *n, struct hw_now now, bool up);
/* The broker acknowledged the presence with this serial. */
void hw_nodes_acked(struct hw_nodes *n, struct hw_now now, uint64_t serial);
/* hw_nodes_barrier_sent(): a barrier was handed to the publisher. hw_nodes_barrier_back(): this barrier, or a later
 * one, is back on every reader. */
void hw_nodes_barrier_sent(struct hw_nodes *n, struct hw_now now, uint64_t number);
void hw_nodes_barrier_back(struct hw_nodes *n, struct hw_now now, uint64_t number);
/* Whether this node accepts messages of `node` at the broker: it is this node, or it is or was a member in Redis. In
 * doubt (hw_nodes_doubt()) messages of every node are accepted. */
bool hw_nodes_knows(const struct hw_nodes *n, const char *node);
/* Called when a message of an unknown node was ignored. This node may not know yet that the other one has joined, so
 * Redis is read at once. If the other one is a member, hw_nodes_rereads() becomes true. */
void hw_nodes_passed_over(struct hw_nodes *n, struct hw_now now);
/* Whether to read all retained messages again. Returns true only once for each reason. */
bool hw_nodes_rereads(struct hw_nodes *n);
/* Called when reader 0 has read a presence or known tokens of a node for which hw_nodes_knows() is true; the node
 * may be this one. NULL: the message does not contain these. For a presence that is offline or has no claims, 256
 * zeros are passed. Ignores a token with an impossible epoch. */
void hw_nodes_presence(struct hw_nodes *n, struct hw_now now, const char *node, const uint64_t claims[HW_PARTITIONS],
                       const struct hw_fencing_token known[HW_PARTITIONS]);
/* The broker denies this node the right to evict `node`. */
void hw_nodes_not_evicted(struct hw_nodes *n, struct hw_now now, const char *node);

/* --- this node ---------------------------------------------------------------------------------------------------- */

/* Whether this node could take over now. Mirror: it has joined, has loaded, has followed the stream to its end, and is
 * not blind. Standby: its publisher is connected. */
void hw_nodes_ready(struct hw_nodes *n, struct hw_now now, bool ready);
/* Sets the partitions with devices that this node cannot judge (hw_monitor_judges()). As long as a ready member can
 * judge them, this node neither claims nor keeps these partitions. For a standby, all partitions count as one: one
 * partition in `set` stands for all. */
void hw_nodes_unable(struct hw_nodes *n, const struct hw_partitions *set);
/* Whether Redis denies this node the right to a write. The node then counts as unable to judge any partition, in
 * hw_nodes_unable() and in its entry. After a lease, it gives up each partition whose preferred owner is settled and
 * able. There is no handover, because pending writes cannot be written. If Redis denies the right to all nodes, each
 * keeps its partitions. */
bool hw_nodes_is_denied(const struct hw_nodes *n);
/* Called when this node becomes blind (cause link, barrier, standstill or suspension), or sees again. */
void hw_nodes_blind(struct hw_nodes *n, struct hw_now now, bool blind);
/* Called when a drained partition is flushed: each pending transition is confirmed, and each status is acknowledged.
 * `clean`: the statuses that an earlier owner left pending were searched for too, and none is left. */
void hw_nodes_flushed(struct hw_nodes *n, struct hw_now now, unsigned p, bool clean);
/* Begins a clean stop: all partitions are drained at once and released, and this node leaves the members. */
void hw_nodes_stop(struct hw_nodes *n, struct hw_now now);
/* Called after hw_nodes_stop(). Also releases the partitions that are not flushed yet; their pending writes and
 * publishes are lost. No more renewals follow. */
void hw_nodes_abandon(struct hw_nodes *n, struct hw_now now);

/* --- queries ------------------------------------------------------------------------------------------------------ */

/* A partition that this node won counts as owned from the order HW_NODES_OWN on. */

/* Whether this node owns p. Its transitions may then be written, with hw_nodes_fencing_token(). */
bool hw_nodes_owns(const struct hw_nodes *n, unsigned p);
/* Whether this node may make transitions of p's devices: it owns p, and no handover is under way. */
bool hw_nodes_is_authoritative(const struct hw_nodes *n, unsigned p);
/* hw_nodes_publishes(): whether statuses of p may be published in the present session. hw_nodes_publishing(): all
 * such partitions. */
bool hw_nodes_publishes(const struct hw_nodes *n, unsigned p);
struct hw_partitions hw_nodes_publishing(const struct hw_nodes *n);
/* Whether to connect to the broker for the first time: when this node has joined, or after HW_ALONE_AFTER_MS without
 * Redis. This node joins first: if another node has the same name, a connection would disconnect that node from the
 * broker. */
bool hw_nodes_connects(const struct hw_nodes *n, struct hw_now now);

struct hw_fencing_token hw_nodes_fencing_token(const struct hw_nodes *n, unsigned p); /* this node's; epoch 0: none */
const struct hw_record *hw_nodes_record(const struct hw_nodes *n, unsigned p);
const struct hw_fencing_token *hw_nodes_given(const struct hw_nodes *n, unsigned p); /* of the last RELEASE */
const uint64_t *hw_nodes_claims(const struct hw_nodes *n); /* HW_PARTITIONS of them, for a presence */
void hw_nodes_known(const struct hw_nodes *n, struct hw_fencing_token known[HW_PARTITIONS]);
/* Whether the tokens that an earlier run of this node published were read, or there are none (hw_fence_recalled()). */
bool hw_nodes_recalled(const struct hw_nodes *n);
const struct hw_members *hw_nodes_members(const struct hw_nodes *n);
bool hw_nodes_is_member(const struct hw_nodes *n);
/* Whether the last confirmed renewal was sent more than 3/5 of a lease ago, or Redis is in doubt (hw_nodes_doubt()). */
bool hw_nodes_lapsed(const struct hw_nodes *n, struct hw_now now);
/* Returns for how long no renewal was confirmed; INT64_MAX: none was confirmed since this node became a member. */
int64_t hw_nodes_silent_ns(const struct hw_nodes *n, struct hw_now now);
/* Returns the node that should own p: this node or a ready member, whichever has the greatest weight. But a node
 * that can judge all devices of p comes before nodes that cannot. */
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
