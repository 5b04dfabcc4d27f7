/* SPDX-License-Identifier: MIT */
#include "cluster.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/broker/broker.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/presence.h"
#include "daemon/retained/retained.h"
#include "daemon/store/prefix_guard.h"

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	struct hw_app *a = arg;
	(void)fd, (void)what;
	hw_app_woke(a);
	hw_app_turn(a);
}

static struct hw_nodes *make_nodes(const struct hw_app *a)
{
	const struct hw_nodes_conf conf = {.node = a->start->node_id,
	                                   .run = a->life.run_id,
	                                   .mode = a->cluster->standby.is ? HW_NODES_STANDBY : HW_NODES_MIRROR,
	                                   .lease_ms = a->start->cluster_lease_ms,
	                                   .keepalive_ms = a->start->mqtt.keepalive_ms};
	return hw_nodes_new(&conf, hw_app_now());
}

int hw_app_cluster_start(struct hw_app *a)
{
	if (a->start->cluster_mode == HW_CLUSTER_OFF)
		return 0;
	struct hw_app_cluster *c = a->cluster = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->app = a;
	hw_app_status_sink(a)->pending_of = c->gate.pending_status;
	c->standby.is = a->start->cluster_mode == HW_CLUSTER_STANDBY;
	c->nodes = make_nodes(a);
	c->due = evtimer_new(a->loop.base, on_due, a);
	if (!c->nodes || !c->due)
		return -ENOMEM;
	int rc = hw_app_cluster_redis_start(a);
	if (!rc)
		rc = hw_app_cluster_sentinel_start(a);
	return rc || c->standby.is ? rc : hw_app_cluster_stream_start(a);
}

void hw_app_cluster_free(struct hw_app *a)
{
	struct hw_app_cluster *c = a->cluster;
	if (!c)
		return;
	hw_app_cluster_stream_free(a);
	hw_app_cluster_sentinel_free(a);
	hw_app_cluster_redis_free(a);
	hw_app_cluster_view_free(a);
	hw_app_cluster_broker_free(a);
	hw_app_cluster_gate_free(a);
	hw_app_cluster_forms_free(a);
	if (c->due)
		event_free(c->due);
	hw_nodes_free(c->nodes);
	hw_app_status_sink(a)->pending_of = NULL;
	a->cluster = NULL;
	free(c);
}

struct hw_nodes *hw_app_nodes(const struct hw_app *a)
{
	return a->cluster ? a->cluster->nodes : NULL;
}

/* --- orders ----------------------------------------------------------------------------------------------------- */

/*
 * Stops this node, because another node with the same name runs. This node is no member and owns nothing, so nothing is
 * lost. It cannot wait, because it may already be connected to the broker: after a start without Redis, or after a
 * pause in which the other node took the name. Two nodes with the same client ids would disconnect each other for ever.
 */
static void report_namesake(struct hw_app *a)
{
	hw_log(a->log, HW_LOG_ERROR, "another node runs with the name '%s': give each node its own [monitor] node_id",
	       a->start->node_id);
	a->life.failed = EXIT_FAILURE;
	hw_loop_stop(&a->loop);
}

static void carry_out(struct hw_app *a, struct hw_now now, struct hw_nodes_order *o)
{
	switch (o->kind) {
	case HW_NODES_PRESENCE:
	case HW_NODES_BARRIER:
	case HW_NODES_EVICT:
		hw_app_cluster_carry_out(a, now, o);
		break;
	case HW_NODES_OWN:
	case HW_NODES_LOSE:
	case HW_NODES_DRAIN:
	case HW_NODES_RESUME:
		hw_app_cluster_role(a, now, o);
		break;
	case HW_NODES_NAMESAKE:
		report_namesake(a);
		break;
	case HW_NODES_STOPPED:
		a->cluster->stopped = true;
		hw_app_presence_set_due(a, hw_app_publisher_is_up(a));
		break;
	default:
		hw_app_cluster_ask(a, now, o);
	}
}

/* Sets the timer for the next work. A barrier or presence that could not be sent stays due, and is tried again at
 * the next event or renewal. */
static void plan(struct hw_app *a, struct hw_now now)
{
	int64_t wait_ns = hw_nodes_due(a->cluster->nodes, now).ns - now.mono.ns;
	if (wait_ns < 0)
		wait_ns = 0;
	struct timeval tv = {wait_ns / HW_NS_PER_S, (wait_ns % HW_NS_PER_S + 999) / 1000};
	event_add(a->cluster->due, &tv); /* if that fails, the next tick runs the turn */
}

void hw_app_cluster_turn(struct hw_app *a, struct hw_now now)
{
	struct hw_nodes_order o;
	if (!a->cluster)
		return;
	hw_app_cluster_peers_turn(a, now);
	hw_app_cluster_gate(a, now);
	while (hw_nodes_next(a->cluster->nodes, now, &o))
		carry_out(a, now, &o);
	hw_app_standby_turn(a, now);
	hw_app_cluster_open(a);
	if (hw_app_cluster_connects(a, now))
		hw_app_dial_late(a);
	plan(a, now);
}

void hw_app_cluster_tick(struct hw_app *a, struct hw_now now)
{
	if (!a->cluster)
		return;
	hw_app_cluster_redis_tick(a, now);
	hw_app_cluster_sentinel_tick(a);
	if (!a->cluster->standby.is) {
		hw_app_cluster_stream_tick(a);
		hw_app_cluster_gate_tick(a);
	}
	hw_app_cluster_view_tick(a);
	hw_app_log_strangers(a);
}

bool hw_app_cluster_connects(const struct hw_app *a, struct hw_now now)
{
	return !a->cluster || (hw_nodes_connects(a->cluster->nodes, now) && !hw_prefix_guard_blocks(a));
}

void hw_app_cluster_stop(struct hw_app *a, struct hw_now now)
{
	if (!a->cluster)
		return;
	hw_nodes_stop(a->cluster->nodes, now);
	if (!hw_prefix_guard_lets_join(a)) /* it leaves without having joined */
		hw_app_cluster_join(a);
}

bool hw_app_cluster_stopped(const struct hw_app *a)
{
	return !a->cluster || a->cluster->stopped;
}
