/* SPDX-License-Identifier: MIT */
/*
 * The insides of a node among others, shared by its files. Each stands on those before it alone: tokens.c (its tokens,
 * what it hears of others'), owners.c (what is claimed, handed over and released), renewal.c (membership, and what
 * Redis answers), orders.c (what is pulled out), nodes.c (the object, events, questions). Private to src/nodes.
 */
#ifndef HW_NODES_PRIV_H
#define HW_NODES_PRIV_H

#include "nodes/fence.h"
#include "nodes/nodes.h"

enum hw_hold {
	HW_HOLD_NONE,
	HW_HOLD_OWNED,
	HW_HOLD_DRAINING, /* nothing is decided any more; its edges and statuses are being settled */
	HW_HOLD_WITHDRAWN /* all is settled: no presence claims it from the next one on */
};

struct hw_part {
	struct hw_record stored; /* as Redis said last */
	struct hw_mono since;    /* it is the same since then, in answers that came without a pause */
	struct hw_token heard;   /* the greatest seen anywhere: in Redis, in presences, our own */
	uint64_t epoch;          /* of our token; 0: not ours */
	enum hw_hold hold;
	struct hw_mono drained;    /* draining since then */
	struct hw_mono not_before; /* no further attempt to hand it over before */
	uint64_t settled;          /* fence.begun when it was settled, before it is released */
	struct hw_token watched;   /* the greatest that a presence was read to claim it with, */
	uint64_t watched_in;       /* ... since fence.begun was this */
	struct hw_token given;     /* what was released last */
};

enum hw_ask { HW_ASK_RENEWAL, HW_ASK_REMOVE, HW_ASK_CLAIM, HW_ASK_RELEASE, HW_ASKS };

/* What was asked of Redis and not answered yet. */
struct hw_asked {
	bool out;
	enum hw_nodes_kind kind;
	uint64_t serial;
	struct hw_mono at;
	uint64_t sessions; /* the publisher's, when it was asked */
	uint64_t begun;    /* the fence's then */
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
	bool saw;       /* since what we own was claimed */
	bool gave_up;   /* let go while blind, and not seeing since: claims nothing */
	bool abandoned; /* hw_nodes_abandon() */
	bool doubted;   /* hw_nodes_doubt() */
	bool namesake_told, tell_namesake, attend;
	struct hw_mono renewed;    /* the last confirmed renewal was sent then */
	struct hw_mono renew_next; /* the next is due */
	struct hw_mono blind_since;
	struct hw_asked asked[HW_ASKS];

	uint64_t redis_s;        /* Redis' clock, as it was told last */
	struct hw_mono redis_at; /* ... then; INT64_MIN: it was not */
	bool passed_over;        /* hw_nodes_passed_over(); then `names` were known */
	uint64_t names;

	struct hw_members members;
	struct hw_fence fence;
	struct hw_part part[HW_PARTITIONS];

	char wanted[HW_PARTITIONS][HW_NODE_ID_MAX + 1];
	struct hw_partitions unable; /* hw_nodes_unable() */
	uint64_t wanted_of;          /* a hash over those that `wanted` was chosen among */

	struct hw_partitions won, won_clean, lost, drain, resume; /* to be ordered */
	struct hw_event_id last;
	struct hw_mono pace_from; /* handovers are counted from then */
	unsigned paced;
	bool pace_waits; /* there is more to hand over than the pace allows */
	struct hw_nodes_stats stats;
};

/* tokens.c: a token was seen: remembers it; if ours is less, p is lost at once (10.5, rule 3). One with an impossible
 * epoch is passed over. */
void hw_nodes_hear(struct hw_nodes *n, struct hw_now now, unsigned p, const struct hw_token *t);
/* The seconds of Redis' clock now, and the greatest epoch that there can be; UINT64_MAX while that clock is not known.
 */
uint64_t hw_nodes_redis_s(const struct hw_nodes *n, struct hw_now now);
uint64_t hw_nodes_epoch_max(const struct hw_nodes *n, struct hw_now now);
/* p is not ours any more. */
void hw_nodes_drop(struct hw_nodes *n, unsigned p);
/* All that is ours is lost. */
void hw_nodes_drop_all(struct hw_nodes *n);
/* A new order to Redis, whose kind is set: gives it its serial. */
void hw_nodes_ask(struct hw_nodes *n, struct hw_now now, enum hw_ask ask, struct hw_nodes_order *out);

/* owners.c: who is wanted, once who is ready may have changed. */
void hw_nodes_choose(struct hw_nodes *n);
void hw_nodes_claimed(struct hw_nodes *n, const struct hw_asked *asked, const struct hw_nodes_answer *a);
bool hw_nodes_ask_claim(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
bool hw_nodes_ask_release(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
/* Looks whether something of ours should go to another node, or came far enough on its way there. */
void hw_nodes_hand_over(struct hw_nodes *n, struct hw_now now);

/* renewal.c: whether one of these is to be asked now; fills the order. */
bool hw_nodes_ask_renewal(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
bool hw_nodes_ask_removal(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);

#endif
