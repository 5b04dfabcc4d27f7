/* SPDX-License-Identifier: MIT */
/* The monitor's presence: a retained message on heartwheel/NODE_ID/status. It is published at the start, when blindness
 * begins or ends, once a minute, and at the end. A node of a cluster also publishes it when its claims change. */
#include "presence.h"

#include <stdio.h>
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "daemon/visibility/visibility.h"
#include "heartwheel/json_writer.h"
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
	uint32_t offline = s->count[HW_STATE_OFFLINE];
	struct hw_json j;
	a->retained->presence_seq = next_seq(a, now);
	hw_json_begin_text(&j, buf, cap);
	hw_json_open(&j, '{');
	hw_json_int(&j, "time", now.wall_ms / 1000);
	hw_json_bool(&j, "online", online);
	if (hw_app_blind_text(a) && !hw_app_stands_by(a))
		hw_json_text(&j, "blind", hw_app_blind_text(a));
	else
		hw_json_bool(&j, "blind", false);
	hw_json_text(&j, "version", HW_VERSION);
	hw_json_int(&j, "uptime", (now.mono.ns - a->life.started.ns) / HW_NS_PER_S);
	hw_json_uint(&j, "devices", s->count[HW_STATE_ONLINE] + offline);
	hw_json_uint(&j, "offline", offline);
	hw_json_text(&j, "by", a->conf->node_id);
	hw_json_uint(&j, "seq", a->retained->presence_seq);
	hw_app_cluster_presence(a, online, &j);
	hw_json_close(&j, '}');
	return hw_json_end_text(&j);
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
