/* SPDX-License-Identifier: MIT */
/*
 * Canaries out to the broker, and what is said of groups that do not hear what is published on their filters: one line
 * each that names the group, the filter, and the right that is missing as far as the broker lets that be known.
 */
#include "deaf.h"

#include <stdio.h>
#include <string.h>

#include "heartwheel/print.h"
#include "pending.h"
#include "presence.h"

#define PAYLOAD_MAX      512
#define UPSTREAM_TELL_NS (30 * HW_NS_PER_S)

static const struct hw_group *group_of(const struct hw_app *a, uint16_t group)
{
	return hw_monitor_groups(a->monitor)->all[group];
}

/* What has become of a canary, and what is to be done; in `to`. */
static void say_right(const struct hw_app *a, const char *topic, const char *filter, enum hw_canary_answer answer,
                      char *to, size_t cap)
{
	const char *user = a->start->mqtt.username[0] ? a->start->mqtt.username : "anonymous clients";
	if (!topic)
		snprintf(to, cap,
		         "no canary is sent (canary = no, or a filter without {id}, + and #): if devices live, allow "
		         "%.64s to read %.200s",
		         user, filter);
	else if (answer == HW_CANARY_REFUSED)
		snprintf(to, cap,
		         "what this monitor publishes on %.200s is refused by the broker: allow %.64s to write that "
		         "topic "
		         "(and to read %.200s)",
		         topic, user, filter);
	else if (answer == HW_CANARY_UNSENT)
		snprintf(to, cap,
		         "this monitor's canary on %.200s is no message that the broker takes: is it larger than its "
		         "limit on messages (mosquitto: max_packet_size)? Raise that, or set canary = no; if devices "
		         "live, allow %.64s to read %.200s",
		         topic, user, filter);
	else if (answer == HW_CANARY_TAKEN)
		snprintf(to, cap,
		         "what this monitor publishes on %.200s is taken by the broker and does not come back: allow "
		         "%.64s to "
		         "read %.200s",
		         topic, user, filter);
	else
		snprintf(to, cap,
		         "what this monitor publishes on %.200s does not come back: allow %.64s to read %.200s and to "
		         "write "
		         "that topic",
		         topic, user, filter);
}

void hw_app_canary(struct hw_app *a, const struct hw_out *out)
{
	char by[PAYLOAD_MAX / 2], payload[PAYLOAD_MAX];
	hw_json_quote(a->start->node_id, strlen(a->start->node_id), by, sizeof(by));
	size_t len = hw_print(payload, sizeof(payload), "{\"by\":%s,\"seq\":%lld,\"canary\":true}", by,
	                      (long long)out->canary.seq);
	uint64_t token = (uint64_t)out->canary.group << 16 | out->canary.filter;
	hw_publisher_canary(a->barriers.publisher, out->canary.topic, payload, len, token);
}

/* A refusal has the broker's reason; without one it never went out. */
void hw_app_canary_answered(struct hw_app *a, const struct hw_publisher_event *ev)
{
	enum hw_canary_answer refused = ev->reason ? HW_CANARY_REFUSED : HW_CANARY_UNSENT;
	hw_monitor_canary_answer(a->monitor, (uint16_t)(ev->token >> 16), (uint16_t)ev->token,
	                         ev->text[0] ? refused : HW_CANARY_TAKEN);
}

/* Logged whether or not the group is deaf because of it: then the right can be given before a device dies. */
void hw_app_canary_missing(struct hw_app *a, const struct hw_out *out)
{
	const struct hw_group *g = group_of(a, out->canary.group);
	char right[1024];
	say_right(a, out->canary.topic, g->heartbeat[out->canary.filter].filter, out->canary.answer, right,
	          sizeof(right));
	hw_log(a->log, HW_LOG_ERROR, "group '%s': %s", g->name, right);
}

static void tell_begun(struct hw_app *a, const struct hw_out *out)
{
	const struct hw_group *g = group_of(a, out->deaf.group);
	const char *filter = g->heartbeat[out->deaf.filter].filter;
	char right[1024], until[128] = "";
	say_right(a, out->deaf.topic, filter, out->deaf.answer, right, sizeof(right));
	if (out->deaf.bound_ns != INT64_MAX)
		snprintf(until, sizeof(until), ", for %.1f s at most", (double)out->deaf.bound_ns / 1e9);
	else if (out->deaf.others_ns != INT64_MAX)
		snprintf(until, sizeof(until), ", or until its other filters have brought its heartbeats for %.1f s",
		         (double)out->deaf.others_ns / 1e9);
	hw_log(a->log, HW_LOG_ERROR,
	       "blind (deaf): no message on %s although the broker works; devices of group '%s' are not judged until "
	       "one "
	       "arrives%s; %s",
	       filter, g->name, until, right);
}

void hw_app_tell_blind(struct hw_app *a, struct hw_now now)
{
	struct hw_blindness b = hw_monitor_blindness(a->monitor);
	bool groups = b.deaf_groups > 0 || b.upstream_groups > 0;
	a->blind_told = a->fleet_blind || groups;
	a->blind_cause = a->fleet_blind || !groups ? a->fleet_cause
	                 : b.deaf_groups > 0       ? HW_CAUSE_DEAF
	                                           : HW_CAUSE_UPSTREAM;
	a->presence_due = true;
	hw_app_presence(a, now);
}

/* Of a group that is blind by itself. */
static void notify_group(struct hw_app *a, struct hw_now now, bool begun, enum hw_cause cause, int64_t length_ns)
{
	hw_notifier_blind(
		a->notifier, now,
		&(struct hw_out){.kind = HW_OUT_BLIND,
	                         .blind = {.begun = begun, .cause = cause, .lossy = true, .length_ns = length_ns}});
	/* A will that was lost meanwhile may stand where a retained status was. */
	if (!begun && !a->loading)
		hw_app_republish(a, now);
	hw_app_tell_blind(a, now);
}

void hw_app_upstream(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	const struct hw_group *g = group_of(a, out->upstream.group);
	const struct hw_while *w = out->upstream.begun ? &g->whiles[out->upstream.index] : NULL;
	if (w)
		hw_log(a->log, HW_LOG_ERROR,
		       "blind (upstream): %s is not '%s%s%s'; devices of group '%s' are not judged until it is",
		       w->topic, w->member ? w->member : "", w->member ? "=" : "", w->value, g->name);
	else
		hw_log(a->log, HW_LOG_NOTICE, "group '%s' is judged again after %.3f s (upstream), silence counts anew",
		       g->name, (double)out->upstream.length_ns / 1e9);
	notify_group(a, now, out->upstream.begun, HW_CAUSE_UPSTREAM, out->upstream.length_ns);
}

/* A topic without a retained value, or without the right to read it. */
void hw_app_upstream_tick(struct hw_app *a, struct hw_now now)
{
	size_t group;
	if (!a->reader[0].up || a->upstream_told) {
		a->upstream_asked = now.mono;
		return;
	}
	if (now.mono.ns - a->upstream_asked.ns < UPSTREAM_TELL_NS)
		return;
	a->upstream_told = true;
	const struct hw_while *w = hw_monitor_unknown_upstream(a->monitor, &group);
	if (w)
		hw_log(a->log, HW_LOG_WARNING,
		       "group '%s': no value on %s; its devices are judged as if it were '%s'; is the topic right, and "
		       "may "
		       "%s read it?",
		       group_of(a, (uint16_t)group)->name, w->topic, w->value,
		       a->start->mqtt.username[0] ? a->start->mqtt.username : "anonymous clients");
}

void hw_app_deaf(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	if (out->deaf.begun)
		tell_begun(a, out);
	else
		hw_log(a->log, HW_LOG_NOTICE, "group '%s' is judged again after %.3f s deaf, silence counts anew",
		       group_of(a, out->deaf.group)->name, (double)out->deaf.length_ns / 1e9);
	notify_group(a, now, out->deaf.begun, HW_CAUSE_DEAF, out->deaf.length_ns);
}
