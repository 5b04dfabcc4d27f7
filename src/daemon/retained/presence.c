/* SPDX-License-Identifier: MIT */
/* The monitor's presence: a retained message on heartwheel/NODE_ID/status. It is published at the start, when blindness
 * begins or ends, once a minute, and at the end. A node of a cluster also publishes it when its claims change. */
#include "presence.h"

#include <stdio.h>
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "daemon/visibility/visibility.h"
#include "retained_priv.h"

#define EVERY_MS         60000
#define PRESENCE_SUBJECT 1 /* belongs to no sink, like its publish id */

static uint64_t next_seq(const struct hw_app *a, struct hw_now now)
{
	uint64_t wall = now.wall_ms > 0 ? (uint64_t)now.wall_ms : 0;
	return wall > a->retained->presence_seq ? wall : a->retained->presence_seq + 1;
}

int hw_app_presence_payload(struct hw_app *a, struct hw_now now, bool online, char *buf, size_t cap)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	char by[512], blind[32] = "false", cluster[HW_CLUSTER_PRESENCE_MAX];
	if (hw_app_cluster_presence(a, online, cluster, sizeof(cluster)) < 0)
		return -1;
	if (hw_json_quote(a->conf->node_id, strlen(a->conf->node_id), by, sizeof(by)) >= sizeof(by))
		return -1;
	if (hw_app_blind_text(a) && !hw_app_stands_by(a))
		snprintf(blind, sizeof(blind), "\"%s\"", hw_app_blind_text(a));
	a->retained->presence_seq = next_seq(a, now);
	uint32_t offline = s->count[HW_STATE_OFFLINE];
	int n = snprintf(buf, cap,
	                 "{\"time\":%lld,\"online\":%s,\"blind\":%s,\"version\":\"%s\",\"uptime\":%lld,\"devices\":%u,"
	                 "\"offline\":%u,\"by\":%s,\"seq\":%llu%s}",
	                 (long long)now.wall_ms / 1000, online ? "true" : "false", blind, HW_VERSION,
	                 (long long)((now.mono.ns - a->life.started.ns) / HW_NS_PER_S),
	                 s->count[HW_STATE_ONLINE] + offline, offline, by,
	                 (unsigned long long)a->retained->presence_seq, cluster);
	return n > 0 && (size_t)n < cap ? n : -1;
}

/* Whether the presence shows this monitor as online. A node that leaves stays online until all its partitions are
 * released. */
static bool is_online(const struct hw_app *a)
{
	return !a->life.stopping || !hw_app_cluster_stopped(a);
}

static bool publish(struct hw_app *a, struct hw_now now, bool online, uint64_t publish_id)
{
	char payload[HW_PRESENCE_MAX];
	int len = hw_app_presence_payload(a, now, online, payload, sizeof(payload));
	const struct hw_publication what = {.topic = a->retained->presence_topic,
	                                    .payload = payload,
	                                    .len = len > 0 ? (size_t)len : 0,
	                                    .retain = true,
	                                    .qos = 1,
	                                    .publish_id = publish_id,
	                                    .subject = PRESENCE_SUBJECT};
	return len > 0 && hw_publisher_publish(hw_app_publisher(a), &what);
}

const char *hw_app_presence_topic(const struct hw_app *a)
{
	return a->retained->presence_topic;
}

void hw_app_presence_set_due(struct hw_app *a, bool due)
{
	a->retained->presence_due = due;
}

void hw_app_presence(struct hw_app *a, struct hw_now now)
{
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	uint64_t publish_id;
	if (!a->retained->presence_due && now_ms - a->retained->presence_ms < EVERY_MS &&
	    !hw_app_cluster_presence_due(a, now))
		return;
	if (!hw_app_publisher_is_up(a) || hw_publisher_room(hw_app_publisher(a)) == 0)
		return; /* tried again in the next turn */
	if (!hw_app_cluster_publish_known(a, next_seq(a, now), &publish_id) ||
	    !publish(a, now, is_online(a), publish_id))
		return;
	hw_app_cluster_published(a, a->retained->presence_seq, publish_id);
	a->retained->presence_due = false;
	a->retained->presence_ms = now_ms;
}

void hw_app_presence_end(struct hw_app *a, struct hw_now now)
{
	if (a->cluster && hw_app_publisher_is_up(a) && is_online(a))
		publish(a, now, false, 0);
}
