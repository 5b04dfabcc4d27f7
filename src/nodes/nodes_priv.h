/* SPDX-License-Identifier: MIT */
/*
 * The internals of a node, shared by the files of this folder. Each file uses only those named before it:
 * fencing_tokens.c (tokens of this and other nodes), owners.c (claims, handovers, releases), renewal.c (membership,
 * answers of Redis), orders.c (orders), nodes.c (the object, events, queries). Private to src/nodes.
 */
#ifndef HW_NODES_PRIV_H
#define HW_NODES_PRIV_H

#include "nodes/fence.h"
#include "nodes/nodes.h"

enum hw_hold {
	HW_HOLD_NONE,
	HW_HOLD_OWNED,
	HW_HOLD_DRAINING, /* no more decisions are made; pending transitions and statuses are being confirmed */
	HW_HOLD_WITHDRAWN /* flushed: the next presence does not claim it */
};

struct hw_part {
	struct hw_record stored; /* the record in the last answer of Redis */
	struct hw_mono since;    /* since when `stored` is unchanged in answers that came without a long pause */
	struct hw_fencing_token
		heard;  /* the greatest token that this node has read in Redis or in presences, or owns */
	uint64_t epoch; /* of this node's token; 0: not owned */
	enum hw_hold hold;
	struct hw_mono drained;          /* since when it is being drained */
	struct hw_mono not_before;       /* no new handover before this */
	uint64_t settled;                /* fence.begun when it was flushed; UINT64_MAX: not clean */
	struct hw_fencing_token watched; /* the greatest token with which a presence claimed it, */
	uint64_t watched_in;             /* read while fence.begun had this value */
	struct hw_fencing_token given;   /* the token that was last released */
};

enum hw_ask { HW_ASK_RENEWAL, HW_ASK_REMOVE, HW_ASK_CLAIM, HW_ASK_RELEASE, HW_ASKS };

/* An unanswered order to Redis. */
struct hw_asked {
	bool out;
	enum hw_nodes_kind kind;
	uint64_t serial;
	struct hw_mono at;
	uint64_t sessions; /* fence.sessions at the order */
	uint64_t begun;    /* fence.begun at the order */
	uint64_t epoch;    /* of a claim */
	struct hw_partitions clean;
};

struct hw_nodes {
	char node[HW_NODE_ID_MAX + 1];
	uint64_t run, count, serials;
	enum hw_nodes_mode mode;
	int64_t lease_ns, outwait_ns;
	struct hw_mono started;

	bool redis, redis_ever, connects;
	bool member, ready, blind, stopping, stopped, left;
	bool saw;       /* this node saw since its last claim */
	bool gave_up;   /* this node gave up its partitions while it was blind, and claims nothing before the blindness
	                   ends */
	bool abandoned; /* hw_nodes_abandon() */
	bool doubted;   /* hw_nodes_doubt() */
	bool denied;    /* hw_nodes_is_denied(), */
	struct hw_mono denied_since;
	bool namesake_reported, report_namesake, attend;
	struct hw_mono renewed;    /* when the last confirmed renewal was sent */
	struct hw_mono renew_next; /* when the next renewal is due */
	struct hw_mono blind_since;
	struct hw_asked asked[HW_ASKS];

	uint64_t redis_s;        /* Redis' clock in the last answer */
	struct hw_mono redis_at; /* when that answer came; INT64_MIN: none yet */
	bool passed_over;        /* another node was preferred as the owner (hw_nodes_passed_over()); counts only while
	                          * members.names equals `names` */
	uint64_t names;

	struct hw_members members;
	struct hw_fence fence;
	struct hw_part part[HW_PARTITIONS];

	char preferred[HW_PARTITIONS][HW_NODE_ID_MAX + 1];
	struct hw_partitions unable; /* hw_nodes_unable() */
	uint64_t preferred_of;       /* hash of the candidates among which `preferred` was chosen */

	struct hw_partitions won, won_clean, lost, drain, resume; /* to be ordered */
	struct hw_stream_id last;
	struct hw_mono pace_from; /* handovers are counted from here */
	unsigned paced;
	bool pace_waits; /* more partitions to hand over than the pace allows */
	struct hw_nodes_stats stats;
};

/* Called when a token of p was read (fencing_tokens.c). If the token is the greatest so far, it is stored. If this node
 * owns p with a lesser token, the node loses p at once (fence.h, condition 3). Ignores a token with an impossible
 * epoch. */
void hw_nodes_hear(struct hw_nodes *n, struct hw_now now, unsigned p, const struct hw_fencing_token *t);
/* hw_nodes_redis_s(): the time of Redis' clock in seconds. hw_nodes_epoch_max(): the greatest possible epoch.
 * UINT64_MAX while the clock is unknown. */
uint64_t hw_nodes_redis_s(const struct hw_nodes *n, struct hw_now now);
uint64_t hw_nodes_epoch_max(const struct hw_nodes *n, struct hw_now now);
void hw_nodes_drop(struct hw_nodes *n, unsigned p);
void hw_nodes_drop_all(struct hw_nodes *n);
/* Completes a new order to Redis, whose kind is already set, with a serial. */
void hw_nodes_ask(struct hw_nodes *n, struct hw_now now, enum hw_ask ask, struct hw_nodes_order *out);

/* Chooses the preferred owners again, if the candidates have changed (owners.c). */
void hw_nodes_choose(struct hw_nodes *n);
void hw_nodes_claimed(struct hw_nodes *n, const struct hw_asked *asked, const struct hw_nodes_answer *a);
bool hw_nodes_ask_claim(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
bool hw_nodes_ask_release(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
/* Checks which partitions should move to another node, and advances or ends the handovers that run. */
void hw_nodes_hand_over(struct hw_nodes *n, struct hw_now now);

/* Each function returns whether its order is due; if so, it fills the order (renewal.c). */
bool hw_nodes_ask_renewal(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
bool hw_nodes_ask_removal(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);

#endif
