/* SPDX-License-Identifier: MIT */
/* The monitor's own status: retained on heartwheel/NODE_ID/status at start, at every change of blindness, once a
 * minute, and at the end. */
#include "presence.h"

#include <stdio.h>
#include <string.h>

#define EVERY_MS         60000
#define PRESENCE_SUBJECT 1 /* as its token is, none of the sinks' */

int hw_app_presence_payload(struct hw_app *a, struct hw_now now, bool online, char *buf, size_t cap)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	char by[512], blind[32] = "false";
	if (hw_json_quote(a->conf->node_id, strlen(a->conf->node_id), by, sizeof(by)) >= sizeof(by))
		return -1;
	if (a->blind_told)
		snprintf(blind, sizeof(blind), "\"%s\"", hw_cause_name(a->blind_cause));
	uint64_t wall = now.wall_ms > 0 ? (uint64_t)now.wall_ms : 0;
	a->presence_seq = wall > a->presence_seq ? wall : a->presence_seq + 1;
	uint32_t offline = s->count[HW_STATE_OFFLINE];
	int n = snprintf(buf, cap,
	                 "{\"time\":%lld,\"online\":%s,\"blind\":%s,\"version\":\"%s\",\"uptime\":%lld,\"devices\":%u,"
	                 "\"offline\":%u,\"by\":%s,\"seq\":%llu}",
	                 (long long)now.wall_ms / 1000, online ? "true" : "false", blind, HW_VERSION,
	                 (long long)((now.mono.ns - a->started.ns) / HW_NS_PER_S), s->count[HW_STATE_ONLINE] + offline,
	                 offline, by, (unsigned long long)a->presence_seq);
	return n > 0 && (size_t)n < cap ? n : -1;
}

void hw_app_presence(struct hw_app *a, struct hw_now now)
{
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	if (!a->presence_due && now_ms - a->presence_ms < EVERY_MS)
		return;
	if (!a->publisher_up || hw_publisher_room(a->publisher) == 0)
		return; /* tried again on the next turn */
	char payload[1024];
	int len = hw_app_presence_payload(a, now, !a->stopping, payload, sizeof(payload));
	const struct hw_publication what = {.topic = a->presence_topic,
	                                    .payload = payload,
	                                    .len = len > 0 ? (size_t)len : 0,
	                                    .retain = true,
	                                    .qos = 1,
	                                    .subject = PRESENCE_SUBJECT};
	if (len > 0 && hw_publisher_publish(a->publisher, &what)) {
		a->presence_due = false;
		a->presence_ms = now_ms;
	}
}
