/* SPDX-License-Identifier: MIT */
/* One node among others, with a Redis and a broker that the test plays. Header only. */
#ifndef NODES_RIG_H
#define NODES_RIG_H

#include <check.h>
#include <stdlib.h>

#include "nodes/nodes.h"
#include "nodes/place.h"

#define LEASE_MS 5000
#define MS       HW_NS_PER_MS

/* What Redis has, and what was ordered. */
static struct hw_nodes *n;
static struct hw_now now;
static struct hw_member_entry entry[4];
static size_t n_entries;
static struct hw_record owner[HW_PARTITIONS];
static struct hw_nodes_order log_[4096];
static size_t logged;
static uint64_t barriers;
static bool deaf;              /* Redis does not answer */
static bool denied;            /* its ACL denies a write */
static int64_t redis_ahead_ms; /* its clock, of ours */

static inline void setup(void)
{
	struct hw_nodes_conf conf = {
		.node = "m", .run = 1, .mode = HW_NODES_MIRROR, .lease_ms = LEASE_MS, .keepalive_ms = 10000};
	now = (struct hw_now){.mono = {1000 * MS}, .wall_ms = INT64_C(1700000000000)};
	memset(owner, 0, sizeof(owner));
	n_entries = logged = 0;
	barriers = 0;
	deaf = denied = false;
	redis_ahead_ms = 0;
	n = hw_nodes_new(&conf, now);
}

static inline void teardown(void)
{
	hw_nodes_free(n);
}

static inline struct hw_member_entry *member(const char *node)
{
	for (size_t i = 0; i < n_entries; i++)
		if (strcmp(entry[i].node, node) == 0)
			return &entry[i];
	return NULL;
}

static inline void enter(const char *node, uint64_t run, bool ready)
{
	entry[n_entries++] = (struct hw_member_entry){.node = node, .run = run, .ready = ready};
}

static inline void leave(const char *node)
{
	struct hw_member_entry *m = member(node);
	*m = entry[--n_entries];
}

static inline enum hw_nodes_result serve(const struct hw_nodes_order *o, struct hw_nodes_answer *a)
{
	struct hw_member_entry *m = member("m");
	if (o->kind == HW_NODES_JOIN) {
		if (m && m->run != o->run)
			return HW_NODES_TAKEN;
		if (!m)
			enter("m", o->run, o->ready);
		member("m")->count = o->count;
	} else if (o->kind == HW_NODES_RENEW) {
		if (!m || m->run != o->run)
			return HW_NODES_GONE;
		m->count = o->count;
		m->ready = o->ready;
	} else if (o->kind == HW_NODES_REMOVE || o->kind == HW_NODES_LEAVE) {
		leave(o->kind == HW_NODES_LEAVE ? "m" : o->node);
	}
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (!hw_partitions_has(&o->set, p))
			continue;
		if (o->kind == HW_NODES_CLAIM) {
			owner[p] = (struct hw_record){.token = hw_fencing_token_make(o->epoch, "m")};
			hw_partitions_add(&a->won, p);
		} else if (o->kind == HW_NODES_RELEASE) {
			owner[p].released = true;
			owner[p].clean = hw_partitions_has(&o->clean, p);
		}
	}
	return HW_NODES_DONE;
}

/* Pulls all orders; Redis answers at once. */
static inline void turn(void)
{
	struct hw_nodes_order o;
	while (hw_nodes_next(n, now, &o)) {
		ck_assert_uint_lt(logged, sizeof(log_) / sizeof(*log_));
		log_[logged++] = o;
		if (o.kind > HW_NODES_LEAVE || deaf)
			continue;
		struct hw_nodes_answer a = {.serial = o.serial,
		                            .owners = owner,
		                            .now_s = (uint64_t)(now.wall_ms + redis_ahead_ms) / 1000,
		                            .denied = denied && (o.kind == HW_NODES_JOIN || o.kind == HW_NODES_RENEW)};
		a.result = serve(&o, &a);
		a.members = entry;
		a.n_members = n_entries;
		hw_nodes_answer(n, now, &a);
	}
}

/* Time passes in steps of 0.1 s; each other member renews meanwhile, except `silent`. */
static inline void pass(int64_t ms, const char *silent)
{
	for (; ms > 0; ms -= 100) {
		now.mono.ns += 100 * MS;
		now.wall_ms += 100;
		for (size_t i = 0; i < n_entries; i++)
			if (strcmp(entry[i].node, "m") != 0 && (!silent || strcmp(entry[i].node, silent) != 0))
				entry[i].count++;
		turn();
	}
}

static inline const struct hw_nodes_order *last(enum hw_nodes_kind kind)
{
	for (size_t i = logged; i-- > 0;)
		if (log_[i].kind == kind)
			return &log_[i];
	return NULL;
}

static inline unsigned owned(void)
{
	unsigned count = 0;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		count += hw_nodes_owns(n, p);
	return count;
}

static inline unsigned ordered(enum hw_nodes_kind kind)
{
	return last(kind) ? hw_partitions_count(&last(kind)->set) : 0;
}

/* The presence of an earlier run is read, or there is none. */
static inline void recall(void)
{
	hw_nodes_barrier_sent(n, now, ++barriers);
	hw_nodes_barrier_back(n, now, barriers);
	turn();
}

/* Joined, connected, ready. */
static inline void begin(void)
{
	hw_nodes_redis(n, now, true);
	hw_nodes_reader(n, now, true);
	hw_nodes_session(n, now, true);
	hw_nodes_blind(n, now, false);
	hw_nodes_ready(n, now, true);
	turn();
	recall();
}

/* ... and owner of all that is wanted of it. */
static inline void begin_owner(void)
{
	begin();
	pass(LEASE_MS + 1200, NULL);
	ck_assert_uint_gt(owned(), 0);
}

/* Presence and barrier go round. */
static inline void prove(void)
{
	if (last(HW_NODES_PRESENCE))
		hw_nodes_acked(n, now, last(HW_NODES_PRESENCE)->serial);
	turn();
	hw_nodes_barrier_sent(n, now, ++barriers);
	hw_nodes_barrier_back(n, now, barriers);
	turn();
}

/* A partition that is wanted of `node`, of the two. */
static inline unsigned wanted_of(const char *node, const char *other)
{
	unsigned p = 0;
	while (hw_partition_weight(p, node) <= hw_partition_weight(p, other))
		p++;
	return p;
}

static inline void claims_of(uint64_t claims[HW_PARTITIONS], unsigned p, uint64_t epoch)
{
	memset(claims, 0, HW_PARTITIONS * sizeof(*claims));
	claims[p] = epoch;
}

#endif
