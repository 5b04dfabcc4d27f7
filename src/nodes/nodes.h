/* SPDX-License-Identifier: MIT */
/*
 * One of several nodes (design 10): membership, ownership of the partitions, their handover, and the fence at the
 * broker. Pure: no socket, clock, log or thread. Whoever drives it passes time and events in, and pulls orders out:
 *
 *     hw_nodes_answer(n, now, &answer);                    and whatever else happens
 *     while (hw_nodes_next(n, now, &order)) ...            after each event, and at hw_nodes_due()
 *
 * Safety rests on tokens (token.h) alone: Redis refuses a lesser one, the broker cuts it off (fence.h). Time only
 * decides when another node takes over. What a partition of ours goes through:
 *
 *     none -> claimed (a script; the answer says which were won) -> owned -> none, once anybody has a greater token
 *                                                                 \-> drained -> withdrawn -> released -> none
 *
 * Orders to Redis are answered over the same connection in their order; at most one of each kind waits. What one would
 * wait for beyond the link's own bound is ended by hw_nodes_redis(), and the next answers show what became of it.
 *
 * Memory is fixed, about 300 KB. Cost: an answer or a presence is linear in the partitions times the members; questions
 * of the gate are constant.
 */
#ifndef HW_NODES_NODES_H
#define HW_NODES_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/event.h"
#include "heartwheel/time.h"
#include "nodes/members.h"
#include "nodes/token.h"

enum hw_nodes_mode { HW_NODES_MIRROR, HW_NODES_STANDBY };

struct hw_nodes_conf {
	const char *node; /* NODE_ID, copied */
	uint64_t run;     /* a random mark of this start */
	enum hw_nodes_mode mode;
	int64_t lease_ms, keepalive_ms;
};

#define HW_HANDOVERS_A_SECOND 32
#define HW_HANDOVER_BOUND_MS  10000 /* what is not settled by then is not handed over now */
#define HW_WITHDRAWAL_MS      1000  /* a live member's own withdrawal is awaited so long */
#define HW_EVICT_AGAIN_MS     2000
#define HW_BEGIN_LEASES       3     /* a standby that has claimed may be blind so long before it sees at all, */
#define HW_BEGIN_LEAST_MS     10000 /* ... and at least so long */
#define HW_ALONE_AFTER_MS     5000  /* without Redis: connect to the broker all the same, to hear */

struct hw_nodes; /* opaque */

/* NULL without memory. Redis and the broker are away, and it is not ready. */
struct hw_nodes *hw_nodes_new(const struct hw_nodes_conf *conf, struct hw_now now);
void hw_nodes_free(struct hw_nodes *n);

/* --- orders ------------------------------------------------------------------------------------------------------- */

enum hw_nodes_kind {
	/* To Redis; each is answered by hw_nodes_answer() with its `serial`. */
	HW_NODES_JOIN,    /* enter us with run `run` and count 0, unless another run is there: then it is TAKEN */
	HW_NODES_RENEW,   /* set our count to `count` and our state, unless the entry is gone or another run's (GONE);
	                     store our tokens (hw_nodes_token()) again where they are missing or less */
	HW_NODES_REMOVE,  /* remove `node` if it still has `run` and `count` */
	HW_NODES_CLAIM,   /* make us owner with `epoch` of each of `set` whose record is still hw_nodes_record() and
	                     that is released, or ours, or whose owner is no member or none; only if we are a member with
	                     run `run` (otherwise GONE) */
	HW_NODES_RELEASE, /* mark each of `set` released, as clean if in `clean`, if its record is still
	                     hw_nodes_given() */
	HW_NODES_LEAVE,   /* remove our entry if it has our run */

	/* To the broker. */
	HW_NODES_PRESENCE, /* publish hw_nodes_known() if hw_nodes_recalled(), then our presence with
	                      hw_nodes_claims(), both retained, QoS 1; say with `serial` when all is acknowledged.
	                      What is known has a topic of its own, which no will and no eviction replaces: what all
	                      who knew it have forgotten, because they died, must still be found before anybody
	                      claims less */
	HW_NODES_BARRIER,  /* send a barrier now */
	HW_NODES_EVICT,    /* connect with the client id of the publisher of `node`, publish its presence offline,
	                      disconnect */

	/* To whoever decides, writes and publishes. */
	HW_NODES_OWN,    /* `set` is ours: follow the stream to `last`, then decide; those of `clean` owe nothing old */
	HW_NODES_LOSE,   /* `set` is not ours any more: what is unconfirmed is dropped, nothing is sent */
	HW_NODES_DRAIN,  /* stop deciding for `set`; hw_nodes_flushed() for each whose edges and statuses are settled */
	HW_NODES_RESUME, /* it is kept after all: go on deciding for `set` */

	/* To the other nodes, and to people. */
	HW_NODES_ATTEND,   /* tell the others to look at once */
	HW_NODES_NAMESAKE, /* another node lives under our name: said once */
	HW_NODES_STOPPED   /* after hw_nodes_stop(): all is released and left */
};

struct hw_nodes_order {
	enum hw_nodes_kind kind;
	uint64_t serial;
	char node[HW_NODE_ID_MAX + 1];
	uint64_t run, count, epoch;
	bool ready; /* of JOIN and RENEW: the state to store */
	struct hw_partitions set;
	struct hw_partitions clean; /* of OWN and RELEASE: a part of `set` */
	struct hw_event_id last;
};

/* The next order, or false. What it says is done by the time of the next call, or is told as lost. */
bool hw_nodes_next(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out);
/* When to call it again although nothing happens. */
struct hw_mono hw_nodes_due(const struct hw_nodes *n, struct hw_now now);

/* --- Redis -------------------------------------------------------------------------------------------------------- */

/* The connection is there, possibly to another master; or it is lost, with all that was asked over it. */
void hw_nodes_redis(struct hw_nodes *n, struct hw_now now, bool up);

enum hw_nodes_result {
	HW_NODES_DONE,
	HW_NODES_TAKEN, /* of JOIN */
	HW_NODES_GONE   /* of RENEW and CLAIM: we are no member */
};

struct hw_nodes_answer {
	uint64_t serial;
	enum hw_nodes_result result;
	const struct hw_member_entry *members; /* all of them, borrowed */
	size_t n_members;
	const struct hw_record *owners; /* HW_PARTITIONS of them, borrowed; NULL: as they were told last */
	uint64_t now_s;                 /* Redis' clock */
	const char *const *left;        /* names of those that have left the members, borrowed */
	size_t n_left;
	struct hw_partitions won; /* of CLAIM */
	struct hw_event_id last;  /* of CLAIM: the stream's last entry */
};
void hw_nodes_answer(struct hw_nodes *n, struct hw_now now, const struct hw_nodes_answer *a);

/* A script that writes was refused for p: `stored` is greater than ours. */
void hw_nodes_refused(struct hw_nodes *n, struct hw_now now, unsigned p, const struct hw_token *stored);
/* Another node says that there is something to look at. */
void hw_nodes_attend(struct hw_nodes *n, struct hw_now now);

/*
 * Whether it is in doubt that this Redis is the one that all nodes use: another one may have taken its place, where
 * this node does not see it. In doubt a node is as one that has lapsed: it claims nothing, removes no member, and lets
 * go of nothing, since another node could not claim that either.
 */
void hw_nodes_doubt(struct hw_nodes *n, struct hw_now now, bool doubted);

/* --- the broker --------------------------------------------------------------------------------------------------- */

/* A session of the publisher begins, or is lost. */
void hw_nodes_session(struct hw_nodes *n, struct hw_now now, bool up);
/* Reader 0 is subscribed, presences included; or it is lost, or was blind and may have lost messages: then say down,
 * have the retained presences read again, and say up. */
void hw_nodes_reader(struct hw_nodes *n, struct hw_now now, bool up);
/* The presence of this serial was acknowledged. */
void hw_nodes_acked(struct hw_nodes *n, struct hw_now now, uint64_t serial);
/* A barrier was given to the publisher; and this one, or a later one, is back on every reader. */
void hw_nodes_barrier_sent(struct hw_nodes *n, struct hw_now now, uint64_t number);
void hw_nodes_barrier_back(struct hw_nodes *n, struct hw_now now, uint64_t number);
/* Whether what this node says at the broker counts: it is ourselves, or a member by Redis, or was one. */
bool hw_nodes_knows(const struct hw_nodes *n, const char *node);
/* Something of a node that is not known was passed over. It may have joined just now, so Redis is asked at once; if
 * that node proves to be a member, all is to be read again. */
void hw_nodes_passed_over(struct hw_nodes *n, struct hw_now now);
/* Whether it is to be: says so once. */
bool hw_nodes_rereads(struct hw_nodes *n);
/* Reader 0 read a presence, or what is known, also our own. NULL: that was not said. A presence that is offline, or has
 * no claims, claims nothing: give it 256 zeroes. The node is known; a token whose epoch is impossible is passed over.
 */
void hw_nodes_presence(struct hw_nodes *n, struct hw_now now, const char *node, const uint64_t claims[HW_PARTITIONS],
                       const struct hw_token known[HW_PARTITIONS]);
/* The broker refuses to let us evict it. */
void hw_nodes_not_evicted(struct hw_nodes *n, struct hw_now now, const char *node);

/* --- ourselves ---------------------------------------------------------------------------------------------------- */

/* Whether we could take over now (design 10, "ready"). */
void hw_nodes_ready(struct hw_nodes *n, struct hw_now now, bool ready);
/* The partitions of which this node cannot judge every device (hw_monitor_judges()): it neither claims nor keeps them
 * while a member that is ready can. With a standby the partitions go together: one of them stands for all. */
void hw_nodes_unable(struct hw_nodes *n, const struct hw_partitions *set);
/* Blind by link, barrier, standstill or suspension, or seeing again. */
void hw_nodes_blind(struct hw_nodes *n, struct hw_now now, bool blind);
/* Of a drained partition: every edge that is owed is confirmed, every status acknowledged. `clean`: and nothing that a
 * predecessor may have owed was still to be looked for. */
void hw_nodes_flushed(struct hw_nodes *n, struct hw_now now, unsigned p, bool clean);
/* A clean stop begins: everything is drained at once, released, and left. */
void hw_nodes_stop(struct hw_nodes *n, struct hw_now now);
/* After hw_nodes_stop(): what is not settled by now is lost, and released as it is. Nothing is renewed from here on. */
void hw_nodes_abandon(struct hw_nodes *n, struct hw_now now);

/* --- questions ---------------------------------------------------------------------------------------------------- */

/* What was won is ours from HW_NODES_OWN on. */

/* Whether p is ours: its edges may be written, with hw_nodes_token(). */
bool hw_nodes_owns(const struct hw_nodes *n, unsigned p);
/* Whether transitions of its devices may be made: it is ours and not on its way to another. */
bool hw_nodes_decides(const struct hw_nodes *n, unsigned p);
/* Whether statuses of its devices may go out over the present session; and all partitions of which they may. */
bool hw_nodes_publishes(const struct hw_nodes *n, unsigned p);
struct hw_partitions hw_nodes_publishing(const struct hw_nodes *n);
/* Whether it is time to connect to the broker for the first time: we joined, or Redis is away (10.3). */
bool hw_nodes_connects(const struct hw_nodes *n, struct hw_now now);

struct hw_token hw_nodes_token(const struct hw_nodes *n, unsigned p); /* ours; epoch 0: none */
const struct hw_record *hw_nodes_record(const struct hw_nodes *n, unsigned p);
const struct hw_token *hw_nodes_given(const struct hw_nodes *n, unsigned p); /* of the last RELEASE */
const uint64_t *hw_nodes_claims(const struct hw_nodes *n); /* HW_PARTITIONS of them, for a presence; so is known */
void hw_nodes_known(const struct hw_nodes *n, struct hw_token known[HW_PARTITIONS]);
/* Whether what an earlier run of ours had said that it knows is read, if there is any (hw_fence_recalled()). */
bool hw_nodes_recalled(const struct hw_nodes *n);
const struct hw_members *hw_nodes_members(const struct hw_nodes *n);
bool hw_nodes_is_member(const struct hw_nodes *n);
/* Whether our last confirmed renewal is older than 3/5 of a lease, or it is in doubt (hw_nodes_doubt()). */
bool hw_nodes_lapsed(const struct hw_nodes *n, struct hw_now now);
/* How long ago our last confirmed renewal was sent; INT64_MAX: there was none since we became a member. */
int64_t hw_nodes_silent_ns(const struct hw_nodes *n, struct hw_now now);
/* The node that should own p (10.4): the greatest weight among ourselves and the members that are ready; of these,
 * among those that can judge all of it, if there is any. */
const char *hw_nodes_wanted(const struct hw_nodes *n, unsigned p);

struct hw_nodes_stats {
	uint64_t claims, claims_lost; /* partitions */
	uint64_t lost, fenced_redis; /* partitions that somebody has a greater token of; of them, those a script said */
	uint64_t released, resumed;  /* partitions */
	uint64_t removals, evictions; /* ordered */
	uint64_t impossible;          /* tokens with an epoch that is too far ahead */
	uint64_t joins;
};
const struct hw_nodes_stats *hw_nodes_stats(const struct hw_nodes *n);

#endif
