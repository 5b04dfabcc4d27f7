/* SPDX-License-Identifier: MIT */
#include "cluster_gate.h"

#include <stdlib.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/broker/broker.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/published.h"
#include "daemon/retained/retained.h"
#include "daemon/store/pending.h"

#define SETTLE_EVERY_NS  (50 * HW_NS_PER_MS)
#define WITHDRAWN_A_TURN 4096 /* records checked per turn */
/* how many pages must have reached the end of the stream before the claim's offset counts as unreachable; the first
 * of them may have been requested before the claim */
#define PAGES_OF_AN_END 3

static struct hw_cluster_gate *gate_of(const struct hw_app *a)
{
	return &a->cluster->gate;
}

static void add_all(struct hw_partitions *to, const struct hw_partitions *set)
{
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
		to->bits[k] |= set->bits[k];
}

static void del_all(struct hw_partitions *from, const struct hw_partitions *set)
{
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
		from->bits[k] &= ~set->bits[k];
}

/* Sets the roles of partitions in the core. AUTHORITATIVE is only for partitions that neither wait nor drain. */
static void set_roles(struct hw_app *a, const struct hw_partitions *set, enum hw_role role)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (hw_partitions_has(set, p))
			hw_monitor_role(a->monitor, p, role, hw_nodes_fencing_token(a->cluster->nodes, p).epoch);
}

/* --- withdrawing refused transitions ------------------------------------------------------------------------------ */

static void withdraw(struct hw_app *a, struct hw_ref ref)
{
	hw_monitor_withdraw(a->monitor, ref);
	hw_app_cluster_reread(a, false);
}

/* Puts a device whose transition Redis refused on the list `refused`. withdraw_refused() withdraws the transition after
 * the partition is lost. If memory is exhausted, the device is not listed: the device keeps the refused state until the
 * stream has a newer entry about it. */
static void keep_refused(struct hw_cluster_gate *g, struct hw_ref ref)
{
	if (g->n_refused == g->cap_refused) {
		size_t cap = g->cap_refused ? 2 * g->cap_refused : 64;
		struct hw_ref *grown = realloc(g->refused, cap * sizeof(*grown));
		if (!grown)
			return;
		g->refused = grown;
		g->cap_refused = cap;
	}
	g->refused[g->n_refused++] = ref;
}

void hw_app_cluster_withdraw(struct hw_app *a, struct hw_ref ref)
{
	const struct hw_device *d = hw_app_device(a, ref);
	if (!a->cluster || !d)
		return;
	if (hw_monitor_is_authoritative(a->monitor, d))
		keep_refused(gate_of(a), ref); /* the order LOSE follows in this turn */
	else
		withdraw(a, ref);
}

void hw_app_cluster_pending(struct hw_app *a, const struct hw_device *d, bool pending)
{
	if (a->cluster)
		gate_of(a)->pending_store[hw_device_partition(d)] += pending ? 1 : UINT32_MAX;
}

/* Withdraws the refused transitions, whose partitions the core has lost by now. */
static void withdraw_refused(struct hw_app *a)
{
	struct hw_cluster_gate *g = gate_of(a);
	for (size_t k = 0; k < g->n_refused; k++)
		if (hw_app_device(a, g->refused[k]))
			withdraw(a, g->refused[k]);
	g->n_refused = 0;
}

static void add_pending(struct hw_partitions *to, const struct hw_partitions *set,
                        const uint32_t pending[HW_PARTITIONS])
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (pending[p] && hw_partitions_has(set, p))
			hw_partitions_add(to, p);
}

/* Begins to withdraw the unconfirmed transitions of lost partitions; they will not be written. If the sweep is
 * already running, it continues from its present record for one more round. So it ends even if further partitions
 * are lost. */
static void begin_withdrawal(struct hw_app *a, const struct hw_partitions *set)
{
	struct hw_cluster_gate *g = gate_of(a);
	struct hw_partitions pending = {{0}};
	withdraw_refused(a);
	add_pending(&pending, set, g->pending_store);
	if (!hw_partitions_any(&pending))
		return;
	add_all(&g->withdrawing, &pending);
	g->withdraw_left = hw_registry_bound(hw_monitor_registry(a->monitor));
	hw_app_cluster_reread(a, false);
}

static void withdraw_at(struct hw_app *a, uint32_t i)
{
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	struct hw_ref ref = hw_registry_ref(r, i);
	struct hw_device *d = hw_registry_at(r, i);
	if (!d || !hw_device_noted(d, HW_PENDING_STORE) ||
	    !hw_partitions_has(&gate_of(a)->withdrawing, hw_device_partition(d)))
		return;
	withdraw(a, ref);
	hw_app_settle_store(a, d);
	hw_app_reap_if_done(a, ref, d);
}

/* Checks a limited number of records in each turn. Stops early when no write is pending. */
static void withdraw_next(struct hw_app *a)
{
	struct hw_cluster_gate *g = gate_of(a);
	uint32_t bound = hw_registry_bound(hw_monitor_registry(a->monitor));
	struct hw_partitions pending = {{0}};
	for (unsigned n_checked = 0; n_checked < WITHDRAWN_A_TURN && g->withdraw_left > 0;
	     n_checked++, g->withdraw_left--, g->withdraw_at++) {
		g->withdraw_at = g->withdraw_at < bound ? g->withdraw_at : 0;
		withdraw_at(a, g->withdraw_at);
	}
	add_pending(&pending, &g->withdrawing, g->pending_store);
	if (g->withdraw_left > 0 && hw_partitions_any(&pending))
		hw_app_schedule_turn(a);
	else
		g->withdrawing = (struct hw_partitions){{0}};
}

bool hw_app_cluster_withdraws(const struct hw_app *a, unsigned partition)
{
	return a->cluster && hw_partitions_has(&gate_of(a)->withdrawing, partition);
}

bool hw_app_cluster_withdraws_any(const struct hw_app *a)
{
	return hw_partitions_any(&gate_of(a)->withdrawing);
}

/* --- won and lost ------------------------------------------------------------------------------------------------- */

bool hw_app_cluster_has_followed(const struct hw_app *a, const struct hw_device *d)
{
	unsigned p = hw_device_partition(d);
	return !a->cluster || (hw_nodes_owns(a->cluster->nodes, p) && !hw_partitions_has(&gate_of(a)->waits, p));
}

static void own(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o)
{
	struct hw_cluster_gate *g = gate_of(a);
	struct hw_partitions unclean = o->set;
	del_all(&unclean, &o->clean);
	if (!hw_partitions_any(&g->waits)) {
		g->won_at = now.mono;
		g->last = (struct hw_stream_id){0, 0}; /* an offset of lost partitions may never be reached */
		g->won_pages = hw_app_cluster_pages(a);
	}
	add_all(&g->waits, &o->set);
	add_all(&g->compare, &unclean);
	if (hw_stream_id_compare(o->last, g->last) > 0)
		g->last = o->last;
	set_roles(a, &o->set, HW_ROLE_OWNS);
	hw_app_published_won(a, now, &o->set, &unclean);
	hw_app_standby_won(a);
	hw_app_cluster_won(a, &o->set, &unclean);
}

/* Removes the pending writes of lost partitions. If the set is empty, only makes the sinks drop devices that another
 * node owns by now. */
static void lose(struct hw_app *a, struct hw_now now, const struct hw_partitions *set)
{
	static const struct hw_partitions none;
	struct hw_cluster_gate *g = gate_of(a);
	set_roles(a, set, HW_ROLE_WATCHES);
	hw_app_published_lost(a, set);
	del_all(&g->waits, set);
	del_all(&g->compare, set);
	del_all(&g->drained, set);
	hw_retained_republish_of(hw_app_status_sink(a), &none, now.mono.ns / HW_NS_PER_MS);
	hw_retained_republish_of(hw_app_discovery_sink(a), &none, now.mono.ns / HW_NS_PER_MS);
}

/*
 * Whether the devices and the owner records are in the same Redis. They are written over two connections, which may
 * reach two servers during a failover. A release could then be recorded in a Redis that lacks states which were
 * published.
 */
static bool is_one_server(const struct hw_app *a)
{
	const char *server = a->cluster->redis.server;
	return *server && strcmp(server, hw_redis_server(a->redis)) == 0;
}

/* Returns the partitions in which a predecessor may have left pending writes: partitions that are not compared with the
 * store yet, or were compared with another Redis than that of the owner records. */
static struct hw_partitions unclean(const struct hw_app *a)
{
	static const struct hw_partitions all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
	struct hw_partitions set = hw_monitor_takes_over(a->monitor);
	const struct hw_partitions unswept = hw_retained_unswept(hw_app_status_sink(a));
	add_all(&set, &unswept);
	/* In partitions with unjudged devices, a will may have replaced a status, and this node would not receive
	 * that will. */
	const struct hw_partitions unheard = hw_monitor_unjudged_in(a->monitor);
	add_all(&set, &unheard);
	return hw_redis_is_comparing(a->redis) || !is_one_server(a) ? all : set;
}

/* Checks a release before it is sent, because something may have changed since a partition was settled. A goodbye
 * that does not count may have made a device's retained status pending again, and this node may no longer send that
 * status. Or one of the connections has moved to another server. */
void hw_app_cluster_released(struct hw_app *a, struct hw_now now, struct hw_nodes_order *o)
{
	struct hw_partitions pending = unclean(a);
	add_pending(&pending, &o->clean, gate_of(a)->pending_status);
	del_all(&o->clean, &pending);
	lose(a, now, &o->set);
	hw_app_standby_released(a);
}

static void resume(struct hw_app *a, const struct hw_partitions *set)
{
	struct hw_cluster_gate *g = gate_of(a);
	struct hw_partitions authoritative = *set;
	del_all(&g->drained, set);
	del_all(&authoritative, &g->waits);
	set_roles(a, &authoritative, HW_ROLE_AUTHORITATIVE);
}

void hw_app_cluster_role(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o)
{
	switch (o->kind) {
	case HW_NODES_OWN:
		own(a, now, o);
		break;
	case HW_NODES_LOSE:
		hw_app_cluster_lost(a, &o->set);
		lose(a, now, &o->set);
		begin_withdrawal(a, &o->set);
		hw_app_standby_lost(a);
		break;
	case HW_NODES_DRAIN:
		add_all(&gate_of(a)->drained, &o->set);
		set_roles(a, &o->set, HW_ROLE_OWNS);
		break;
	default:
		resume(a, &o->set);
	}
	hw_app_schedule_turn(a);
}

/* --- becoming authoritative --------------------------------------------------------------------------------------- */

/* Compares everything that the previous owner may have left pending: the outbox, the keys of each device, and each
 * status. */
static void compare_with_store(struct hw_app *a, struct hw_now now, const struct hw_partitions *set)
{
	if (!hw_partitions_any(set) || hw_app_standby_loaded(a))
		return;
	hw_redis_compare(a->redis);
	hw_retained_republish_of(hw_app_status_sink(a), set, now.mono.ns / HW_NS_PER_MS);
}

void hw_app_cluster_gap(struct hw_app *a)
{
	gate_of(a)->last = (struct hw_stream_id){0, 0};
}

/* Stops waiting for the offset that a claim's answer named, because the stream may never reach it. The hashes are
 * then read again, and are at least as new as the claim. */
static void stop_waiting_for_offset(struct hw_app *a)
{
	hw_app_cluster_gap(a);
	hw_app_cluster_reread(a, true);
}

void hw_app_cluster_gate_tick(struct hw_app *a)
{
	struct hw_cluster_gate *g = gate_of(a);
	if (!hw_partitions_any(&g->waits) || !hw_app_cluster_at_end(a) ||
	    hw_app_cluster_pages(a) - g->won_pages < PAGES_OF_AN_END ||
	    hw_stream_id_compare(hw_app_cluster_offset(a), g->last) >= 0)
		return;
	stop_waiting_for_offset(a);
}

/* Called when claims use a new connection. A claim's answer may contain an offset in the stream of another master
 * than the one whose stream this node follows. The followed stream may then never reach that offset.
 * hw_app_cluster_gate_tick() would find this out too, but seconds later. */
void hw_app_cluster_retry_claims(struct hw_app *a)
{
	if (hw_partitions_any(&gate_of(a)->waits))
		stop_waiting_for_offset(a);
}

static bool is_followed(const struct hw_app *a)
{
	if (a->cluster->standby.is)
		return a->cluster->standby.fleet && !a->life.loading && !hw_app_cluster_withdraws_any(a);
	return hw_app_cluster_is_read(a) && hw_stream_id_compare(hw_app_cluster_offset(a), gate_of(a)->last) >= 0;
}

static void decide(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_gate *g = gate_of(a);
	struct hw_partitions all = g->waits, authoritative = g->waits;
	if (!hw_partitions_any(&all) || !is_followed(a) || hw_app_published_is_unread(a))
		return;
	del_all(&authoritative, &g->drained);
	set_roles(a, &authoritative, HW_ROLE_AUTHORITATIVE);
	compare_with_store(a, now, &g->compare);
	hw_app_published_loaded(a, &g->compare);
	hw_retained_republish_of(hw_app_discovery_sink(a), &all, now.mono.ns / HW_NS_PER_MS);
	if (a->keyspace)
		hw_keyspace_compare(a->keyspace);
	g->waits = g->compare = (struct hw_partitions){{0}};
	g->last = (struct hw_stream_id){0, 0};
	hw_app_cluster_became_authoritative(a, now.mono.ns - g->won_at.ns);
	hw_app_schedule_turn(a);
}

/* --- draining ----------------------------------------------------------------------------------------------------- */

static void settle(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_gate *g = gate_of(a);
	if (!hw_partitions_any(&g->drained) || now.mono.ns < g->settle_next.ns)
		return;
	const struct hw_partitions left = unclean(a);
	g->settle_next = hw_mono_add(now.mono, SETTLE_EVERY_NS);
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (!hw_partitions_has(&g->drained, p) || g->pending_store[p] || g->pending_status[p] ||
		    hw_partitions_has(&g->waits, p))
			continue;
		hw_partitions_del(&g->drained, p);
		hw_nodes_flushed(a->cluster->nodes, now, p, !hw_partitions_has(&left, p));
	}
}

/* --- once a turn -------------------------------------------------------------------------------------------------- */

/* Whether the publisher's connection has been down for long. Then this node cannot publish, even if it is not blind. */
static bool is_mute(const struct hw_app *a, struct hw_now now)
{
	struct hw_mono since = hw_mono_later(hw_app_publisher_lost(a), a->life.started);
	return !hw_app_publisher_is_up(a) && now.mono.ns - since.ns > a->start->mqtt.barrier_timeout_ms * HW_NS_PER_MS;
}

/* While this node was blind, or a group was deaf, the owners of the devices may have learned other timeouts than this
 * node. After a lease or longer, this node reads all hashes before it is ready, and so before it owns these devices. */
static void read_learned(struct hw_app *a, struct hw_now now, bool blind)
{
	struct hw_mono *since = &gate_of(a)->blind_since;
	blind |= hw_monitor_blindness(a->monitor).deaf_groups > 0;
	if (blind && !since->ns && !a->life.loading)
		*since = now.mono;
	if (blind || !since->ns)
		return;
	if (hw_monitor_learns(a->monitor) && now.mono.ns - since->ns >= a->start->cluster_lease_ms * HW_NS_PER_MS)
		hw_app_cluster_reread(a, false);
	since->ns = 0;
}

void hw_app_cluster_gate(struct hw_app *a, struct hw_now now)
{
	bool blind = hw_blind_now(hw_monitor_blind(a->monitor)) || is_mute(a, now);
	if (hw_app_cluster_withdraws_any(a))
		withdraw_next(a);
	read_learned(a, now, blind);
	bool standby = a->cluster->standby.is;
	if (!standby)
		hw_app_cluster_read_on(a, now);
	bool ready = standby ? hw_app_standby_ready(a, now) : !blind && hw_app_cluster_is_read(a);
	ready = hw_app_cluster_forms_turn(a, now) && ready;
	decide(a, now);
	settle(a, now);
	/* A node that may not read the stream does not receive the transitions of other nodes. So it gives its
	 * partitions up, as a blind node does. */
	hw_nodes_blind(a->cluster->nodes, now,
	               standby ? hw_app_standby_blind(a, now) : blind || hw_app_cluster_is_denied(a));
	ready = hw_app_cluster_confirmed(a, now) && ready;
	hw_nodes_ready(a->cluster->nodes, now, ready && !a->life.stopping);
}

void hw_app_cluster_gate_free(struct hw_app *a)
{
	free(gate_of(a)->refused);
}
