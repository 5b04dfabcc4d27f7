/* SPDX-License-Identifier: MIT */
#include "status.h"

#include <stdio.h>
#include <string.h>

/* Writes the parent whose death explains why the device is offline. Returns the length, which may exceed `cap`. */
static size_t write_parent(const struct hw_retained_sink *s, const struct hw_device *d, char *buf, size_t cap)
{
	static const char name[] = ",\"parent\":";
	struct hw_parent_view parent;
	if (hw_device_state(d) != HW_STATE_OFFLINE || !hw_monitor_dead_parent(s->m, d, &parent))
		return 0;
	size_t len = sizeof(name) - 1;
	if (len >= cap)
		return len;
	memcpy(buf, name, len);
	return len + hw_json_quote(parent.id.text, parent.id.len, buf + len, cap - len);
}

int hw_status_payload(const struct hw_retained_sink *s, struct hw_now now, const struct hw_device *d, char *buf,
                      size_t cap)
{
	if (!hw_monitor_group_of(s->m, d)->status.filter)
		return -1;
	buf[0] = '\0';
	if (hw_device_state(d) == HW_STATE_FORGOTTEN)
		return 0;
	char by[6 * 256 + 3], epoch[32] = "";
	if (hw_json_quote(s->node_id, strlen(s->node_id), by, sizeof(by)) >= sizeof(by))
		return -1;
	if (hw_monitor_epoch(s->m, d))
		snprintf(epoch, sizeof(epoch), ",\"epoch\":%llu", (unsigned long long)hw_monitor_epoch(s->m, d));
	/* For an online device, last_seen is the time of its transition. So a status that is published again has the
	 * same text. */
	bool online = hw_device_state(d) == HW_STATE_ONLINE;
	int64_t last_seen_ms = online ? d->since_ms : hw_device_last_seen_ms(d, now);
	int n = snprintf(buf, cap,
	                 "{\"time\":%lld,\"online\":%s,\"reason\":\"%s\",\"last_seen\":%lld,\"by\":%s%s,\"seq\":%llu",
	                 (long long)d->since_ms / 1000, online ? "true" : "false", hw_reason_name(hw_device_reason(d)),
	                 (long long)last_seen_ms / 1000, by, epoch, (unsigned long long)d->seq);
	if (n < 0 || (size_t)n + 2 > cap)
		return -1;
	size_t len = (size_t)n;
	len += write_parent(s, d, buf + len, cap - len);
	if (len + 2 > cap)
		return -1;
	struct hw_report report = hw_device_report(d);
	len += hw_report_json(&report, buf + len, cap - len);
	if (len + 2 > cap)
		return -1;
	buf[len++] = '}';
	buf[len] = '\0';
	return (int)len;
}

static bool wanted(const struct hw_retained_sink *s, const struct hw_group *g)
{
	(void)s;
	return g->status.filter != NULL;
}

static uint64_t version(const struct hw_device *d)
{
	return d->seq;
}

static int topic(const struct hw_retained_sink *s, const struct hw_device *d, char *buf, size_t cap)
{
	struct hw_id id = hw_device_id(d);
	return hw_group_status_topic(hw_monitor_group_of(s->m, d), id.text, id.len, buf, cap);
}

const struct hw_retained_kind hw_status_kind = {.pending = HW_PENDING_STATUS,
                                                .queued = HW_QUEUED_STATUS,
                                                .publish_id = UINT64_C(2) << 62,
                                                .wanted = wanted,
                                                .version = version,
                                                .topic = topic,
                                                .payload = hw_status_payload};
