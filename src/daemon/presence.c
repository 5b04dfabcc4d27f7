/* SPDX-License-Identifier: MIT */
/* The monitor's own status: retained on heartwheel/NODE_ID/status at start, at every change of blindness, once a
 * minute, and at the end; and, of several nodes, when its claims change. */
#include "presence.h"

#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"

#define EVERY_MS         60000
#define PRESENCE_SUBJECT 1 /* as its token is, none of the sinks' */

static uint64_t next_seq(const struct hw_app *a, struct hw_now now)
{
	uint64_t wall = now.wall_ms > 0 ? (uint64_t)now.wall_ms : 0;
	return wall > a->presence_seq ? wall : a->presence_seq + 1;
}

int hw_app_presence_payload(struct hw_app *a, struct hw_now now, bool online, char *buf, size_t cap)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	char by[512], blind[32] = "false", cluster[HW_CLUSTER_PRESENCE_MAX];
	if (hw_app_cluster_presence(a, online, cluster, sizeof(cluster)) < 0)
		return -1;
	if (hw_json_quote(a->conf->node_id, strlen(a->conf->node_id), by, sizeof(by)) >= sizeof(by))
		return -1;
	if (a->blind_told && !hw_app_stands_by(a))
		snprintf(blind, sizeof(blind), "\"%s\"", hw_cause_name(a->blind_cause));
	a->presence_seq = next_seq(a, now);
	uint32_t offline = s->count[HW_STATE_OFFLINE];
	int n = snprintf(buf, cap,
	                 "{\"time\":%lld,\"online\":%s,\"blind\":%s,\"version\":\"%s\",\"uptime\":%lld,\"devices\":%u,"
	                 "\"offline\":%u,\"by\":%s,\"seq\":%llu%s}",
	                 (long long)now.wall_ms / 1000, online ? "true" : "false", blind, HW_VERSION,
	                 (long long)((now.mono.ns - a->started.ns) / HW_NS_PER_S), s->count[HW_STATE_ONLINE] + offline,
	                 offline, by, (unsigned long long)a->presence_seq, cluster);
	return n > 0 && (size_t)n < cap ? n : -1;
}

/* One that leaves goes on claiming until all is released. */
static bool is_online(const struct hw_app *a)
{
	return !a->stopping || !hw_app_cluster_stopped(a);
}

static bool publish(struct hw_app *a, struct hw_now now, bool online, uint64_t token)
{
	char payload[HW_PRESENCE_MAX];
	int len = hw_app_presence_payload(a, now, online, payload, sizeof(payload));
	const struct hw_publication what = {.topic = a->presence_topic,
	                                    .payload = payload,
	                                    .len = len > 0 ? (size_t)len : 0,
	                                    .retain = true,
	                                    .qos = 1,
	                                    .token = token,
	                                    .subject = PRESENCE_SUBJECT};
	return len > 0 && hw_publisher_publish(a->publisher, &what);
}

void hw_app_presence(struct hw_app *a, struct hw_now now)
{
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	uint64_t token;
	if (!a->presence_due && now_ms - a->presence_ms < EVERY_MS && !hw_app_cluster_presence_due(a, now))
		return;
	if (!a->publisher_up || hw_publisher_room(a->publisher) == 0)
		return; /* tried again on the next turn */
	if (!hw_app_cluster_say_known(a, next_seq(a, now), &token) || !publish(a, now, is_online(a), token))
		return;
	hw_app_cluster_said(a, a->presence_seq, token);
	a->presence_due = false;
	a->presence_ms = now_ms;
}

void hw_app_presence_end(struct hw_app *a, struct hw_now now)
{
	if (a->cluster && a->publisher_up && is_online(a))
		publish(a, now, false, 0);
}
