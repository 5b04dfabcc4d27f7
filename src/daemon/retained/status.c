/* SPDX-License-Identifier: MIT */
#include "status.h"

#include <stdio.h>
#include <string.h>

#include "heartwheel/json_writer.h"

/* Writes the parent because of which the device is offline. */
static void write_parent(const struct hw_retained_sink *s, const struct hw_device *d, struct hw_json *j)
{
	struct hw_parent_view parent;
	if (hw_device_state(d) == HW_STATE_OFFLINE && hw_monitor_dead_parent(s->m, d, &parent))
		hw_json_bytes(j, "parent", parent.id.text, parent.id.len);
}

/* Writes the parents that the next run reads back, with newlines between their ids. */
static void write_parents(const struct hw_retained_sink *s, const struct hw_device *d, struct hw_json *j)
{
	struct hw_parent_view v[HW_PARENTS_MAX];
	char text[HW_PARENTS_TEXT];
	size_t at = 0;
	unsigned n = s->no_store ? hw_monitor_parents(s->m, d, v) : 0;
	for (unsigned k = 0; k < n; k++) {
		memcpy(text + at, v[k].id.text, v[k].id.len);
		at += v[k].id.len;
		text[at++] = '\n';
	}
	if (at > 0)
		hw_json_bytes(j, "parents", text, at - 1);
}

int hw_status_payload(const struct hw_retained_sink *s, struct hw_now now, const struct hw_device *d, char *buf,
                      size_t cap)
{
	if (!hw_monitor_group_of(s->m, d)->status.filter)
		return -1;
	buf[0] = '\0';
	if (hw_device_state(d) == HW_STATE_FORGOTTEN)
		return 0;
	/* For an online device, last_seen is the time of its transition. So a status that is published again has the
	 * same text. */
	bool online = hw_device_state(d) == HW_STATE_ONLINE;
	struct hw_report report = hw_device_report(d);
	struct hw_json j;
	hw_json_begin_text(&j, buf, cap);
	hw_json_open(&j, '{');
	hw_json_int(&j, "time", d->since_ms / 1000);
	hw_json_bool(&j, "online", online);
	hw_json_text(&j, "reason", hw_reason_name(hw_device_reason(d)));
	hw_json_int(&j, "last_seen", (online ? d->since_ms : hw_device_last_seen_ms(d, now)) / 1000);
	hw_json_text(&j, "by", s->node_id);
	if (hw_monitor_epoch(s->m, d))
		hw_json_uint(&j, "epoch", hw_monitor_epoch(s->m, d));
	hw_json_uint(&j, "seq", d->seq);
	write_parent(s, d, &j);
	if (s->no_store)
		hw_json_text(&j, "group", hw_monitor_group_of(s->m, d)->name);
	if (s->no_store && hw_device_own_timeout_ms(d) > 0)
		hw_json_seconds(&j, "timeout", hw_device_own_timeout_ms(d));
	write_parents(s, d, &j);
	hw_json_report(&j, &report);
	hw_json_close(&j, '}');
	return hw_json_end_text(&j);
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
