/* SPDX-License-Identifier: MIT */
/* See cluster_standby.h. */
#include "cluster_standby.h"

#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"
#include "heartwheel/monitor.h"
#include "keys.h"
#include "sightings.h"
#include "subscriptions.h"
#include "wake.h"

#define SHY_NS     (3600 * HW_NS_PER_S)
#define LINGER_MS  1000
#define THREADS_NS (150 * HW_NS_PER_S) /* longer than the system tries to connect, unless it was told otherwise */

static struct hw_cluster_standby *standby_of(const struct hw_app *a)
{
	return &a->cluster->standby;
}

/* --- what is told of it ------------------------------------------------------------------------------------------- */

/* All partitions go together: one that is released, or whose owner is no member, has none, and neither has the fleet.
 */
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
		snprintf(text, cap, "standing by for '%.64s', which owns the fleet%s", owner,
		         m->ready ? "" : " and does not hear it");
}

int64_t hw_app_standby_since(const struct hw_app *a, struct hw_now now, int64_t length_ns)
{
	bool stood = a->cluster && standby_of(a)->fleet && now.mono.ns - standby_of(a)->at.ns < length_ns;
	return stood ? now.mono.ns - standby_of(a)->at.ns : length_ns;
}

/* --- what src/nodes is told --------------------------------------------------------------------------------------- */

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
		hw_log(a->log, HW_LOG_NOTICE, "nodes: ready to own the fleet again");
	}
	bool hears = s->fleet ? !hw_app_standby_blind(a, now) : hw_app_cluster_broker_answers(a, now);
	return hears && !s->shy;
}

/* The grace after a blindness does not count from the first barrier on that was sent in it and is back. */
bool hw_app_standby_blind(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	if (!s->fleet) /* what was just won is not heard yet */
		return !a->publisher_up || hw_nodes_token(a->cluster->nodes, 0).epoch != 0;
	if (a->publisher_up && !hw_blind_now(hw_monitor_blind(a->monitor)))
		return false;
	if (!a->publisher_up || !hw_monitor_in_grace(a->monitor))
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

/* The links are made anew: from their end on the core sees, and the broker has the filters by then. */
static int subscribe(struct hw_app *a)
{
	int rc = hw_app_subscribe(a);
	for (unsigned i = 0; i < a->n_readers && a->reader[i].reader && !rc; i++) {
		a->reader[i].renewed = true;
		hw_reader_reconnect(a->reader[i].reader);
	}
	return rc;
}

static void begin(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	s->fleet = true;
	a->stands_by = false;
	s->at = now.mono;
	hw_log(a->log, HW_LOG_NOTICE, "nodes: this node owns the fleet: it subscribes to it, and reads Redis");
	hw_control_begins(a->control, now);
	hw_control_store(a->control, a->redis_up);
	int rc = hw_app_start_keyspace(a);
	if (!rc)
		rc = subscribe(a);
	hw_redis_load_late(a->redis);
	hw_app_sightings_begin(a, now);
	a->presence_due = true;
	if (!rc)
		return;
	hw_log(a->log, HW_LOG_ERROR, "nodes: cannot begin with the fleet: %s", strerror(-rc));
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
	s->over |= s->fleet && !owns(a, false);
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
	a->anew = true;
	hw_log(a->log, HW_LOG_WARNING, "nodes: this node does not own the fleet any more%s: it stands by again",
	       s->goes_blind ? ", since it has never heard it" : "");
	hw_app_soon(a);
}

/* Whether anybody has a greater token than any that was ours. */
static bool is_anothers(const struct hw_app *a)
{
	struct hw_token known[HW_PARTITIONS];
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

/* A node that gave the fleet up because it was blind may still be wanted: it would have it again at once. */
static void look_at_loss(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	bool blind = is_blind_for_long(a, now);
	s->saw |= hw_monitor_stats(a->monitor)->barriers_back > 0; /* none is sent before the fleet is subscribed */
	s->lost &= !owns(a, true);
	s->over |= s->lost && (blind || is_anothers(a));
	s->goes_blind |= s->over && blind && !s->saw;
}

void hw_app_standby_turn(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_standby *s = standby_of(a);
	if (!s->is || a->stopping || a->anew)
		return;
	if (!s->fleet && owns(a, true))
		begin(a, now);
	look_at_loss(a, now);
	if (s->over)
		end(a);
}

void hw_app_standby_end(struct hw_app *a, struct hw_now now)
{
	standby_of(a)->ending = now.mono;
	hw_nodes_abandon(a->cluster->nodes, now);
	if (a->publisher)
		hw_publisher_end(a->publisher, LINGER_MS);
	if (a->barriers.publisher)
		hw_publisher_end(a->barriers.publisher, 0);
}

bool hw_app_standby_is_ending(const struct hw_app *a)
{
	return standby_of(a)->ending.ns != 0;
}

static bool have_threads_ended(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->n_readers; i++)
		if (a->reader[i].reader && !hw_reader_ended(a->reader[i].reader))
			return false;
	return (!a->publisher || hw_publisher_ended(a->publisher)) &&
	       (!a->barriers.publisher || hw_publisher_ended(a->barriers.publisher));
}

bool hw_app_standby_ended(struct hw_app *a, struct hw_now now)
{
	int64_t for_ns = now.mono.ns - standby_of(a)->ending.ns;
	const struct hw_notifier_stats *s = hw_notifier_stats(a->notifier);
	bool notified = hw_notifier_idle(a->notifier);
	if ((!notified && for_ns < a->start->stop_timeout_ms * HW_NS_PER_MS) ||
	    (!have_threads_ended(a) && for_ns < THREADS_NS))
		return false;
	if (!notified)
		hw_log(a->log, HW_LOG_WARNING, "nodes: %u notifications are given up: stop_timeout is over",
		       s->waiting[HW_NOTIFIER_EXEC] + s->waiting[HW_NOTIFIER_WEBHOOK]);
	return true;
}

void hw_app_standby_after(struct hw_app *a, bool was_blind)
{
	struct hw_cluster_standby *s = standby_of(a);
	s->shy = was_blind;
	s->shy_until = hw_mono_add(hw_app_now().mono, SHY_NS);
	if (was_blind)
		hw_log(a->log, HW_LOG_NOTICE, "nodes: the fleet is left to other nodes that are ready, for an hour");
}
