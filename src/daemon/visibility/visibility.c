/* SPDX-License-Identifier: MIT */
/* Sends canaries to the broker, and logs deaf groups. The line about a group names the group, the filter and, if known,
 * the missing right. */
#include "visibility.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/clock.h"
#include "daemon/retained/presence.h"
#include "daemon/retained/retained.h"
#include "sightings.h"
#include "visibility_priv.h"

#define UPSTREAM_REPORT_NS (30 * HW_NS_PER_S)
#define UPSTREAM_RENEW_NS  (30 * HW_NS_PER_S)

int hw_app_visibility_new(struct hw_app *a)
{
	struct hw_app_visibility *v = a->visibility = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->fleet_blind = v->blind = true;
	v->fleet_cause = v->cause = HW_CAUSE_LINK;
	hw_app_sightings_init(a, hw_app_now());
	return 0;
}

void hw_app_visibility_free(struct hw_app *a)
{
	if (a->visibility)
		free(a->visibility->unjudged.reported);
	free(a->visibility);
}

bool hw_app_fleet_is_blind(const struct hw_app *a)
{
	return a->visibility->fleet_blind;
}

const char *hw_app_blind_text(const struct hw_app *a)
{
	return a->visibility->blind ? hw_cause_name(a->visibility->cause) : NULL;
}

void hw_app_upstream_ask(struct hw_app *a)
{
	a->visibility->upstream_reported = false;
}

static const struct hw_group *group_of(const struct hw_app *a, uint16_t group)
{
	return hw_monitor_groups(a->monitor)->all[group];
}

/* Writes into `to` the fate of a canary, and the remedy. */
static void write_right(const struct hw_app *a, const char *topic, const char *filter, enum hw_canary_answer answer,
                        char *to, size_t cap)
{
	const char *user = a->start->mqtt.username[0] ? a->start->mqtt.username : "anonymous clients";
	if (!topic)
		snprintf(to, cap,
		         "no canary is sent here (canary = no, or a filter without {id}, + and #); if devices publish "
		         "there, allow %.64s to read %.200s",
		         user, filter);
	else if (answer == HW_CANARY_REFUSED)
		snprintf(to, cap,
		         "the broker refuses this monitor's canary on %.200s: allow %.64s to write that topic (and to "
		         "read %.200s)%s",
		         topic, user, filter, topic[0] == '$' ? "; if the broker reserves it, set canary = no" : "");
	else if (answer == HW_CANARY_UNSENT)
		snprintf(to, cap,
		         "the broker does not accept this monitor's canary on %.200s: is the canary over the broker's "
		         "limit on messages (mosquitto: max_packet_size, message_size_limit)? Raise the limit, or set "
		         "canary = no; if "
		         "devices publish there, allow %.64s to read %.200s",
		         topic, user, filter);
	else if (answer == HW_CANARY_TAKEN)
		snprintf(to, cap,
		         "the broker accepts this monitor's canary on %.200s and does not send it back: allow %.64s to "
		         "read %.200s",
		         topic, user, filter);
	else
		snprintf(to, cap,
		         "this monitor's canary on %.200s does not come back: allow %.64s to read %.200s and to write "
		         "that topic",
		         topic, user, filter);
}

/* Logs that canaries do not come back on a filter. This is logged before the group is deaf, so that the right can be
 * granted before a device stops. */
void hw_app_canary_missing(struct hw_app *a, const struct hw_out *out)
{
	const struct hw_group *g = group_of(a, out->canary.group);
	char right[1024];
	write_right(a, out->canary.topic, g->heartbeat[out->canary.filter].filter, out->canary.answer, right,
	            sizeof(right));
	hw_log(a->log, HW_LOG_ERROR, "group '%s': canaries do not come back: %s", g->name, right);
}

static void report_begun(struct hw_app *a, const struct hw_out *out)
{
	const struct hw_group *g = group_of(a, out->deaf.group);
	const char *filter = g->heartbeat[out->deaf.filter].filter;
	char right[1024], until[128] = "";
	write_right(a, out->deaf.topic, filter, out->deaf.answer, right, sizeof(right));
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

void hw_app_log_blind(struct hw_app *a, struct hw_now now)
{
	struct hw_blindness b = hw_monitor_blindness(a->monitor);
	bool groups = b.deaf_groups > 0 || b.upstream_groups > 0;
	a->visibility->blind = a->visibility->fleet_blind || groups;
	a->visibility->cause = a->visibility->fleet_blind || !groups ? a->visibility->fleet_cause
	                       : b.deaf_groups > 0                   ? HW_CAUSE_DEAF
	                                                             : HW_CAUSE_UPSTREAM;
	hw_app_presence_set_due(a, true);
	hw_app_presence(a, now);
}

/* Blindness of a single group has begun or ended. */
static void on_group(struct hw_app *a, struct hw_now now, bool begun)
{
	/* During the blindness a will may have replaced a retained status, and this monitor may have missed that
	 * will. */
	if (!begun && !a->life.loading)
		hw_app_republish(a, now);
	hw_app_log_blind(a, now);
}

void hw_app_upstream(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	const struct hw_group *g = group_of(a, out->upstream.group);
	const struct hw_while *w = out->upstream.begun ? &g->whiles[out->upstream.index] : NULL;
	if (w)
		hw_log(a->log, HW_LOG_ERROR,
		       "blind (upstream): %s is not '%s%s%s'; devices of group '%s' are not judged until it is",
		       w->topic, w->member ? w->member : "", w->member ? "=" : "", w->value, g->name);
	else if (out->upstream.length_ns < 0)
		hw_log(a->log, HW_LOG_NOTICE,
		       "group '%s': its upstream is back; the group is deaf, so its devices are still not judged",
		       g->name);
	else
		hw_log(a->log, HW_LOG_NOTICE,
		       "group '%s' is judged again after %.3f s blind (upstream); each device's timeout starts again",
		       g->name, (double)out->upstream.length_ns / 1e9);
	on_group(a, now, out->upstream.begun);
}

static void report_unknown(struct hw_app *a, const struct hw_group *g, const struct hw_while *w)
{
	hw_log(a->log, HW_LOG_WARNING,
	       "group '%s': no value on %s; its devices are judged as if the value were '%s'; check the topic, and "
	       "whether %s may read it",
	       g->name, w->topic, w->value, a->start->mqtt.username[0] ? a->start->mqtt.username : "anonymous clients");
}

void hw_app_while_unknown(struct hw_app *a, const struct hw_out *out)
{
	const struct hw_group *g = group_of(a, out->upstream.group);
	report_unknown(a, g, &g->whiles[out->upstream.index]);
}

static void renew(struct hw_app *a, struct hw_now now)
{
	bool is_time = now.mono.ns - a->visibility->upstream_renewed.ns >= UPSTREAM_RENEW_NS;
	if (is_time)
		a->visibility->upstream_renewed = now.mono;
	hw_app_renew_upstreams(a, is_time);
}

void hw_app_upstream_tick(struct hw_app *a, struct hw_now now)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	const struct hw_while *w = NULL;
	renew(a, now);
	if (!hw_app_reader_is_up(a, 0) || a->visibility->upstream_reported) {
		a->visibility->upstream_asked = now.mono;
		return;
	}
	if (now.mono.ns - a->visibility->upstream_asked.ns < UPSTREAM_REPORT_NS)
		return;
	a->visibility->upstream_reported = true;
	for (size_t k = 0; k < g->n_order && !w; k++) {
		w = hw_monitor_group_unknown(a->monitor, g->order[k]);
		if (w)
			report_unknown(a, g->all[g->order[k]], w);
	}
}

void hw_app_deaf(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	if (out->deaf.begun)
		report_begun(a, out);
	else if (out->deaf.length_ns < 0)
		hw_log(a->log, HW_LOG_NOTICE,
		       "group '%s' is no longer deaf; its upstream is down, so its devices are still not judged",
		       group_of(a, out->deaf.group)->name);
	else
		hw_log(a->log, HW_LOG_NOTICE,
		       "group '%s' is judged again after %.3f s deaf; each device's timeout starts again",
		       group_of(a, out->deaf.group)->name, (double)out->deaf.length_ns / 1e9);
	on_group(a, now, out->deaf.begun);
}

/* Handles the begin or the end of a blindness. The presence is published at once, so that it also shows a blindness
 * that was over when it was detected. */
void hw_app_on_blind(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	int64_t length_ns = hw_app_standby_since(a, now, out->blind.length_ns);
	const char *cause = hw_cause_name(out->blind.cause);
	a->visibility->fleet_blind = out->blind.begun;
	a->visibility->fleet_cause = out->blind.cause;
	hw_app_sightings_turn(a, now);
	if (out->blind.begun && out->blind.cause == HW_CAUSE_BARRIER)
		hw_app_log_denied(a, now);
	else if (out->blind.begun)
		hw_log(a->log, HW_LOG_WARNING, "blind (%s): no device is judged until this is over", cause);
	else
		hw_log(a->log, HW_LOG_NOTICE, "heartbeats arrive again after %.3f s blind (%s%s)",
		       (double)length_ns / 1e9, cause, out->blind.lossy ? "; each device's timeout starts again" : "");
	/* During the blindness a will may have replaced a retained status, and this monitor may have missed that
	 * will. */
	if (!out->blind.begun && out->blind.lossy && !a->life.loading)
		hw_app_republish(a, now);
	if (!out->blind.begun && out->blind.lossy)
		hw_app_ask_upstreams(a);
	hw_app_log_blind(a, now);
	hw_control_sight(a->control);
	if (!out->blind.begun)
		hw_app_cluster_sees(a, now, out->blind.lossy);
}
