/* SPDX-License-Identifier: MIT */
#include "cluster_standby.h"

#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/broker/broker.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/presence.h"
#include "daemon/store/keys.h"
#include "daemon/store/store.h"
#include "daemon/visibility/sightings.h"
#include "heartwheel/monitor.h"

#define SHY_NS     (3600 * HW_NS_PER_S)
#define LINGER_MS  1000
#define THREADS_NS (150 * HW_NS_PER_S) /* longer than the system's default timeout of a connect */

static struct hw_cluster_standby *standby_of(const struct hw_app *a)
{
	return &a->cluster->standby;
}

/* --- texts and times ---------------------------------------------------------------------------------------------- */

/* Returns the node that owns the fleet. All partitions have the same owner, so the record of partition 0 shows it.
 * If the record is released, or its owner is no member, there is no owner. */
const char *hw_app_standby_owner(const struct hw_app *a)
{
	const struct hw_record *r = a->cluster ? hw_nodes_record(a->cluster->nodes, 0) : NULL;
	bool is = r && r->token.epoch && !r->released &&
	          hw_members_find(hw_nodes_members(a->cluster->nodes), r->token.node);
	return is ? r->token.node : "";
}

void hw_app_standby_text(const struct hw_app *a, char *text, unsigned cap)
{
	const char *owner = hw_app_standby_owner(a);
	const struct hw_member *m = *owner ? hw_members_find(hw_nodes_members(a->cluster->nodes), owner) : NULL;
	if (!m)
		snprintf(text, cap, "standing by, and no node is known to own the fleet");
	else if (strcmp(owner, a->start->node_id) == 0)
		snprintf(text, cap, "standing by, and about to own the fleet");
	else
		snprintf(text, cap, "standing by: '%.64s' owns the fleet%s", owner,
		         m->ready ? "" : " but receives no heartbeats");
}

int64_t hw_app_standby_since(const struct hw_app *a, struct hw_now now, int64_t length_ns)
{
	bool stood = a->cluster && standby_of(a)->fleet && now.mono.ns - standby_of(a)->at.ns < length_ns;
	return stood ? now.mono.ns - standby_of(a)->at.ns : length_ns;
}

/* --- reports to src/nodes ----------------------------------------------------------------------------------------- */

static bool is_another_ready(const struct hw_app *a)
{
	const struct hw_members *all = hw_nodes_members(a->cluster->nodes);
	for (size_t i = 0; i < all->n; i++)
		if (all->all[i].ready && strcmp(all->all[i].node, a->start->node_id) != 0)
			return true;
	return false;
}

bool hw_app_standby_ready(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	if (s->shy && hw_nodes_is_member(a->cluster->nodes) &&
	    (now.mono.ns >= s->shy_until.ns || !is_another_ready(a))) {
		s->shy = false;
		hw_log(a->log, HW_LOG_NOTICE, "nodes: this node is ready to own the fleet again");
	}
	bool hears = s->fleet ? !hw_app_standby_blind(a, now) : hw_app_cluster_broker_answers(a, now);
	return hears && !s->shy;
}

/* Whether the owner cannot receive the fleet's messages. Once a barrier that was sent during the blindness is back,
 * only the grace is left, which does not count as blind. */
bool hw_app_standby_blind(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	if (!s->fleet) /* messages of the fleet do not arrive before the begin */
		return !hw_app_publisher_is_up(a) || hw_nodes_fencing_token(a->cluster->nodes, 0).epoch != 0;
	if (hw_app_publisher_is_up(a) && !hw_blind_now(hw_monitor_blind(a->monitor)))
		return false;
	if (!hw_app_publisher_is_up(a) || !hw_monitor_in_grace(a->monitor))
		s->unheard = now.mono;
	return hw_monitor_barrier_back(a->monitor).ns <= s->unheard.ns;
}

/* --- begin and end ------------------------------------------------------------------------------------------------ */

static bool owns(const struct hw_app *a, bool all)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (hw_nodes_owns(a->cluster->nodes, p) != all)
			return !all;
	return all;
}

static void begin(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	s->fleet = true;
	s->was_deaf = false;
	a->life.stands_by = false;
	s->at = now.mono;
	hw_log(a->log, HW_LOG_NOTICE,
	       "nodes: this node owns the fleet: it subscribes to the heartbeats, and loads devices from Redis");
	hw_control_begins(a->control, now);
	hw_control_store(a->control, hw_app_redis_is_up(a));
	int rc = hw_app_start_keyspace(a);
	if (!rc)
		rc = hw_app_subscribe(
			a, true); /* the core is blind until the connections are up again with the fleet's filters */
	hw_redis_load_late(a->redis);
	hw_app_sightings_begin(a, now);
	hw_app_presence_set_due(a, true);
	if (!rc)
		return;
	hw_log(a->log, HW_LOG_ERROR, "nodes: this node owns the fleet and cannot start to watch it: %s", strerror(-rc));
	s->over = s->goes_blind = true;
}

void hw_app_standby_won(struct hw_app *a)
{
	struct hw_cluster_standby *s = standby_of(a);
	s->again |= s->fleet;
}

void hw_app_standby_lost(struct hw_app *a)
{
	struct hw_cluster_standby *s = standby_of(a);
	s->lost |= s->fleet;
}

void hw_app_standby_released(struct hw_app *a)
{
	struct hw_cluster_standby *s = standby_of(a);
	s->over |= s->fleet && !s->lost && !owns(a, false); /* if it had lost the fleet before: check_loss() */
}

bool hw_app_standby_loaded(struct hw_app *a)
{
	struct hw_cluster_standby *s = standby_of(a);
	bool again = s->again;
	s->again = false;
	return s->is && !again;
}

static void end(struct hw_app *a)
{
	struct hw_cluster_standby *s = standby_of(a);
	a->life.restarts = true;
	hw_log(a->log, HW_LOG_WARNING, "nodes: this node no longer owns the fleet%s; it stands by again",
	       s->goes_blind ? ", because it could not watch the devices" : "");
	hw_app_schedule_turn(a);
}

/* Whether another node has a greater fencing token for at least one partition. */
static bool another_has_token(const struct hw_app *a)
{
	struct hw_fencing_token known[HW_PARTITIONS];
	hw_nodes_known(a->cluster->nodes, known);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (known[p].epoch && strcmp(known[p].node, a->start->node_id) != 0)
			return true;
	return false;
}

static bool is_blind_for_long(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	if (!hw_app_standby_blind(a, now))
		s->blind_since.ns = 0;
	else if (!s->blind_since.ns)
		s->blind_since = now.mono;
	return s->blind_since.ns && now.mono.ns - s->blind_since.ns >= a->start->cluster_lease_ms * HW_NS_PER_MS;
}

/* Decides whether this node gives the fleet up. A node that lost the fleet keeps its devices until another node has
 * taken a partition, even if it is blind: if Redis was emptied, no other node knows the devices. If the node gives the
 * fleet up while it is blind, src/nodes may still prefer it as the owner. `goes_blind` then makes it not ready, so that
 * it does not get the fleet back at once. */
static void check_loss(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	bool blind = is_blind_for_long(a, now);
	s->saw |= hw_monitor_stats(a->monitor)->barriers_back > 0; /* no barrier is sent before the subscription */
	s->lost &= !owns(a, true);
	s->over |= s->lost && another_has_token(a);
	s->goes_blind |= s->over && blind && !s->saw;
}

void hw_app_standby_turn(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	if (!s->is || a->life.stopping || a->life.restarts)
		return;
	if (!s->fleet && owns(a, true))
		begin(a, now);
	check_loss(a, now);
	if (s->over)
		end(a);
}

void hw_app_standby_end(struct hw_app *a, struct hw_now now)
{
	standby_of(a)->ending = now.mono;
	hw_nodes_abandon(a->cluster->nodes, now);
	hw_app_publishers_end(a, LINGER_MS);
}

bool hw_app_standby_is_ending(const struct hw_app *a)
{
	return standby_of(a)->ending.ns != 0;
}

bool hw_app_standby_ended(struct hw_app *a, struct hw_now now)
{
	int64_t for_ns = now.mono.ns - standby_of(a)->ending.ns;
	return hw_app_broker_has_ended(a) || for_ns >= THREADS_NS;
}

bool hw_app_standby_was_deaf(const struct hw_app *a)
{
	return standby_of(a)->was_deaf;
}

void hw_app_cluster_reconfigured(struct hw_app *a)
{
	if (a->cluster)
		standby_of(a)->was_deaf = false;
}

void hw_app_cluster_keep(const struct hw_app *a, struct hw_cluster_kept *out)
{
	hw_app_cluster_totals(a, &out->totals);
	out->was_blind = standby_of(a)->goes_blind;
	for (size_t g = 0; g < hw_monitor_groups(a->monitor)->n; g++)
		out->was_deaf |= hw_monitor_group_is_deaf(a->monitor, g);
}

void hw_app_cluster_go_on(struct hw_app *a, const struct hw_cluster_kept *kept)
{
	struct hw_cluster_standby *s = standby_of(a);
	a->cluster->seen.before = kept->totals;
	s->was_deaf = kept->was_deaf;
	s->shy = kept->was_blind;
	s->shy_until = hw_mono_add(hw_app_now().mono, SHY_NS);
	if (s->shy)
		hw_log(a->log, HW_LOG_NOTICE,
		       "nodes: this node owned the fleet but could not watch the devices; for an hour it takes the "
		       "fleet only if no other node is ready; check the subscriptions and rights of this node at the "
		       "broker");
}
