/* SPDX-License-Identifier: MIT */
/* See cluster_evict.h. At most one eviction of a node runs at a time. src/nodes orders another one if the node's claims
 * remain. */
#include "cluster_evict.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/broker/broker.h"
#include "daemon/loop/turn.h"
#include "mqtt/evict.h"
#include "peers.h"

#define TIMEOUT_MS 5000

static void end(struct hw_cluster_eviction *e)
{
	if (e->over)
		event_free(e->over);
	hw_evict_end(e->evict);
	e->over = NULL;
	e->evict = NULL;
}

/* Returns this node's slot. For a new node: a slot without a running eviction, or NULL. */
static struct hw_cluster_eviction *place_of(struct hw_app *a, const char *node, bool make)
{
	struct hw_cluster_eviction *free = NULL;
	for (size_t i = 0; i < HW_CLUSTER_EVICTIONS; i++) {
		struct hw_cluster_eviction *e = &a->cluster->broker.evictions.at[i];
		if (strcmp(e->node, node) == 0)
			return e;
		if (!e->evict && (!free || !e->node[0]))
			free = e;
	}
	if (!make || !free)
		return NULL;
	*free = (struct hw_cluster_eviction){.app = a};
	snprintf(free->node, sizeof(free->node), "%s", node);
	return free;
}

/* Called when the broker refuses to disconnect the other node. Logs this once while the broker refuses. The fence
 * (src/nodes/fence.h) then waits until the broker must have closed that node's connection. */
static void refused(struct hw_cluster_eviction *e, struct hw_now now, const char *why)
{
	struct hw_app *a = e->app;
	const char *user = a->start->mqtt.username[0] ? a->start->mqtt.username : "anonymous clients";
	char id[HW_CLUSTER_CLIENT_ID];
	hw_app_cluster_publisher_id(a, e->node, id, sizeof(id));
	if (!e->reported)
		hw_log(a->log, HW_LOG_ERROR,
		       "cannot disconnect node '%s' from the broker: %s; '%s' still claims partitions of this node, so "
		       "their devices' statuses are not published until '%s' disconnects; allow %.64s to connect as "
		       "%s, "
		       "and to write and read heartwheel/+/status",
		       e->node, why, e->node, e->node, user, id);
	e->reported = true;
	hw_nodes_not_evicted(a->cluster->nodes, now, e->node);
}

static void on_over(evutil_socket_t fd, short what, void *arg)
{
	struct hw_cluster_eviction *e = arg;
	struct hw_app *a = e->app;
	struct hw_now now = hw_app_woke(a);
	enum hw_eviction how;
	const char *why;
	(void)fd, (void)what;
	if (!hw_evict_is_over(e->evict, &how, &why))
		return;
	e->taken = how == HW_EVICTION_TAKEN;
	if (how == HW_EVICTION_TAKEN)
		hw_log(a->log, HW_LOG_NOTICE,
		       "nodes: this node disconnected the publisher of node '%s' from the broker, because that "
		       "node still claimed partitions that this node has taken over",
		       e->node);
	else if (how == HW_EVICTION_REFUSED)
		refused(e, now, why);
	else
		hw_log_limited(a->log, HW_LIMIT_EVICTION, HW_LOG_WARNING,
		               "cannot disconnect node '%s' from the broker: %s", e->node, why);
	end(e);
	hw_app_turn(a);
}

static int begin(struct hw_cluster_eviction *e, struct hw_now now)
{
	struct hw_app *a = e->app;
	char topic[sizeof("heartwheel//status") + HW_NODE_ID_MAX], id[HW_CLUSTER_CLIENT_ID], text[2048];
	struct hw_mqtt_conf conf = *hw_app_publisher_conf(a);
	snprintf(topic, sizeof(topic), "heartwheel/%s/status", e->node);
	hw_app_cluster_publisher_id(a, e->node, id, sizeof(id));
	conf.client_id = id;
	int len = hw_peer_print_offline(a->start->cluster_name, e->node, a->start->node_id, now.wall_ms, text,
	                                sizeof(text));
	if (len < 0 || hw_evict_start(&e->evict, &conf, topic, text, (size_t)len, TIMEOUT_MS))
		return -1;
	e->over = event_new(a->loop.base, hw_evict_fd(e->evict), EV_READ | EV_PERSIST, on_over, e);
	if (e->over && event_add(e->over, NULL) == 0)
		return 0;
	end(e);
	return -1;
}

void hw_app_cluster_evict(struct hw_app *a, struct hw_now now, const char *node)
{
	struct hw_cluster_eviction *e = place_of(a, node, true);
	if (!e || e->evict)
		return;
	/* Before MQTT 5, a broker also acknowledges a publish that it refuses. But then no reader receives the
	 * message. */
	if (e->taken && !e->heard && a->cluster->broker.peers.reading) {
		e->taken = false;
		refused(e, now, "the message published in its place does not come back");
		return;
	}
	e->taken = e->heard = false;
	if (begin(e, now))
		hw_log_limited(a->log, HW_LIMIT_EVICTION, HW_LOG_WARNING,
		               "no memory to disconnect node '%s' from the broker", node);
}

void hw_app_cluster_evict_heard(struct hw_app *a, const char *node)
{
	struct hw_cluster_eviction *e = place_of(a, node, false);
	if (e)
		e->heard = true;
}

void hw_app_cluster_evict_free(struct hw_app *a)
{
	for (size_t i = 0; i < HW_CLUSTER_EVICTIONS; i++)
		end(&a->cluster->broker.evictions.at[i]);
}
