/* SPDX-License-Identifier: MIT */
/*
 * The daemon as a whole: /v1/status, /v1/groups, /v1/overview, /v1/wheel, /healthz, /readyz, /metrics. These routes
 * read the core's counters; the daemon provides the other values. Cost: /metrics has a few lines for each group.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>

#include "control/nodes.h"
#include "control/parts.h"
#include "heartwheel/print.h"
#include "heartwheel/unseen.h"
#include "http/json.h"
#include "http/metrics.h"
#include "http/proxy.h"
#include "http/usage.h"

#define PENDING_MAX_MS 10000 /* /readyz fails if a state is pending for longer */

static uint64_t transitions_of(const struct hw_monitor_stats *stats)
{
	uint64_t n = 0;
	for (int i = 0; i < HW_REASONS; i++)
		n += stats->transitions[i];
	return n;
}

/* A standby node does not know the counts. */
static void write_count(struct hw_json *j, const char *key, bool unknown, uint64_t count)
{
	if (unknown)
		hw_json_null(j, key);
	else
		hw_json_uint(j, key, count);
}

bool hw_is_starting(const struct hw_control *c)
{
	const struct hw_blind *b = hw_monitor_blind(c->monitor);
	return hw_blind_now(b) && b->periods <= 1;
}

void hw_write_blind_times(struct hw_json *j, const struct hw_control *c)
{
	struct hw_now now = c->ops->now(c->arg);
	int64_t for_ms = (now.mono.ns - hw_monitor_blindness(c->monitor).since.ns) / HW_NS_PER_MS;
	int64_t left_ms = hw_monitor_grace_left_ms(c->monitor, now.mono);
	hw_json_int(j, "since_ms", now.wall_ms - for_ms);
	hw_json_int(j, "blind_for_ms", for_ms);
	if (left_ms >= 0)
		hw_json_int(j, "judges_in_ms", left_ms);
	else
		hw_json_null(j, "judges_in_ms");
}

static void write_blindness(struct hw_json *j, const struct hw_control *c, struct hw_now now, bool stands_by)
{
	struct hw_blindness b = hw_monitor_blindness(c->monitor);
	bool blind = b.blind && !stands_by;
	int64_t left_ms = blind ? hw_monitor_grace_left_ms(c->monitor, now.mono) : -1;
	hw_json_bool(j, "blind", blind);
	hw_json_text(j, "blind_cause", blind ? hw_cause_name(b.cause) : NULL);
	if (blind)
		hw_json_int(j, "blind_for_ms", (now.mono.ns - hw_mono_later(b.since, c->begun).ns) / HW_NS_PER_MS);
	else
		hw_json_null(j, "blind_for_ms");
	if (left_ms >= 0)
		hw_json_int(j, "judges_in_ms", left_ms);
	else
		hw_json_null(j, "judges_in_ms");
	hw_json_bool(j, "starting", blind && hw_is_starting(c));
}

/* Returns the number of unjudged devices for which this node has no room. */
static uint64_t left_out_of(const struct hw_monitor *m)
{
	uint64_t n = 0;
	for (size_t g = 0; g < hw_monitor_groups(m)->n; g++)
		n += hw_monitor_left_out_of(m, g);
	return n;
}

/* Devices of this node that cannot be judged, and their groups. */
static void write_unjudged(struct hw_json *j, const struct hw_control *c, bool stands_by)
{
	const struct hw_groups *groups = hw_monitor_groups(c->monitor);
	write_count(j, "unjudged", stands_by, hw_monitor_unjudged(c->monitor));
	hw_json_open_member(j, "unjudged_groups", '[');
	for (size_t i = 0; i < groups->n; i++)
		if (hw_monitor_unjudged_of(c->monitor, i))
			hw_json_item(j, groups->all[i]->name);
	hw_json_close(j, ']');
	write_count(j, "left_out", stands_by, left_out_of(c->monitor));
}

/* The groups with a `while` whose value is unknown. */
static void write_unknown(struct hw_json *j, const struct hw_control *c)
{
	const struct hw_groups *groups = hw_monitor_groups(c->monitor);
	hw_json_open_member(j, "while_unknown", '[');
	for (size_t i = 0; i < groups->n && !hw_stands_by(c); i++)
		if (hw_monitor_group_unknown(c->monitor, i))
			hw_json_item(j, groups->all[i]->name);
	hw_json_close(j, ']');
}

static void write_status(struct hw_json *j, const struct hw_control *c)
{
	const struct hw_monitor_stats *stats = hw_monitor_stats(c->monitor);
	struct hw_control_status s = {0};
	struct hw_now now = c->ops->now(c->arg);
	c->ops->status(c->arg, &s);
	bool stands_by = hw_stands_by(c);
	uint64_t online = stats->count[HW_STATE_ONLINE], offline = stats->count[HW_STATE_OFFLINE];
	hw_json_text(j, "node", s.node);
	hw_json_text(j, "version", s.version);
	hw_json_int(j, "uptime_s", s.uptime_s);
	write_blindness(j, c, now, stands_by);
	hw_json_text(j, "mqtt", s.mqtt);
	hw_json_text(j, "broker", s.broker);
	hw_json_int(j, "broker_port", s.broker_port);
	hw_json_text(j, "redis", s.redis);
	if (s.store == HW_REDIS_OFF)
		hw_json_null(j, "redis_writable");
	else
		hw_json_bool(j, "redis_writable", s.store == HW_REDIS_WRITES);
	hw_json_bool(j, "loading", s.loading);
	write_count(j, "devices", stands_by, online + offline);
	write_count(j, "online", stands_by, online);
	write_count(j, "offline", stands_by, offline);
	write_count(j, "unseen", stands_by, hw_expected_unseen(hw_monitor_expected(c->monitor)));
	write_unjudged(j, c, stands_by);
	write_unknown(j, c);
	hw_json_uint(j, "suspects", stats->suspects);
	hw_json_uint(j, "candidates", stats->suspects); /* the field's older name */
	hw_json_uint(j, "owed", s.pending);
	hw_json_int(j, "owed_oldest_ms", s.pending_oldest_ms);
	hw_json_uint(j, "heartbeats_total", stats->heartbeats);
	hw_json_number(j, "heartbeats_per_s", (double)(int64_t)(hw_samples_rate(c->samples) * 10 + .5) / 10);
	hw_json_uint(j, "transitions_total", transitions_of(stats));
	hw_json_number(j, "barrier_ms", (double)(stats->barrier_rtt_ns / 1000) / 1e3);
	hw_write_cluster(j, c);
	hw_json_int(j, "now_ms", now.wall_ms);
}

void hw_serve_status(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	(void)rest;
	if (!body)
		return;
	write_status(&j, arg);
	hw_answer_end(req, &j, body);
}

static void reply_ok(struct evhttp_request *req)
{
	struct evbuffer *body;
	struct hw_json j;
	if (!(body = hw_answer_begin(req, &j)))
		return;
	hw_json_text(&j, "status", "ok");
	hw_answer_end(req, &j, body);
}

/* Answers a request about health. This handler runs on the loop, so its answer proves that the loop runs. */
void hw_serve_health(void *arg, struct evhttp_request *req, const char *rest)
{
	(void)arg, (void)rest;
	reply_ok(req);
}

void hw_serve_ready(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct hw_blindness b = hw_monitor_blindness(c->monitor);
	struct hw_control_status s = {0};
	char why[1024];
	size_t n = 0;
	(void)rest;
	c->ops->status(c->arg, &s);
	if (b.blind && !hw_stands_by(c))
		n += hw_print(why + n, sizeof(why) - n, "blind: %s", hw_cause_name(b.cause));
	if (s.loading)
		n += hw_print(why + n, sizeof(why) - n, "%sloading devices from the store", n ? "; " : "");
	if (s.store == HW_REDIS_REFUSES)
		n += hw_print(why + n, sizeof(why) - n, "%sRedis: %.600s", n ? "; " : "", s.redis);
	if (s.pending_oldest_ms > PENDING_MAX_MS)
		n += hw_print(why + n, sizeof(why) - n,
		              "%s%" PRIu64 " states of devices pending, the oldest for %" PRId64 " s", n ? "; " : "",
		              s.pending, s.pending_oldest_ms / 1000);
	uint64_t left_out = hw_stands_by(c) ? 0 : left_out_of(c->monitor);
	if (left_out > 0)
		n += hw_print(why + n, sizeof(why) - n,
		              "%sno room for %" PRIu64 " devices, which are not judged: raise [monitor] max_devices",
		              n ? "; " : "", left_out);
	n = hw_nodes_trouble(c, why, n, sizeof(why));
	if (n == 0)
		reply_ok(req);
	else
		hw_reply_error(req, HTTP_SERVUNAVAIL, why);
}

/* --- metrics */

/* Whether a group is shown. A group that a reload removed is shown while it has devices. */
static bool shown(const struct hw_groups *groups, const struct hw_group_stats *s, size_t i)
{
	return !groups->all[i]->retired || s->count[HW_STATE_ONLINE] + s->count[HW_STATE_OFFLINE] > 0;
}

static void group_metrics(const struct hw_monitor *m, struct evbuffer *b)
{
	static const enum hw_state states[] = {HW_STATE_ONLINE, HW_STATE_OFFLINE};
	const struct hw_groups *groups = hw_monitor_groups(m);
	hw_metric_family(b, "devices", "gauge",
	                 "Known devices, and the expected devices that were never heard (unseen).");
	for (size_t i = 0; i < groups->n; i++) {
		const struct hw_group_stats *s = hw_monitor_group_stats(m, i);
		if (!shown(groups, s, i))
			continue;
		for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++) {
			const char *labels[] = {"group", groups->all[i]->name, "state", hw_state_name(states[k]), NULL};
			hw_metric_sample(b, "devices", labels, s->count[states[k]]);
		}
		const char *labels[] = {"group", groups->all[i]->name, "state", "unseen", NULL};
		hw_metric_sample(b, "devices", labels, hw_monitor_unseen_of(m, i));
	}
	hw_metric_family(b, "unjudged", "gauge",
	                 "Devices that are not judged: their group is not configured here or has another form, or "
	                 "there is no room for them.");
	for (size_t i = 0; i < groups->n; i++) {
		const char *labels[] = {"group", groups->all[i]->name, NULL};
		if (shown(groups, hw_monitor_group_stats(m, i), i))
			hw_metric_sample(b, "unjudged", labels, hw_monitor_unjudged_of(m, i));
	}
	hw_metric_family(b, "while_unknown", "gauge",
	                 "1: a topic of the group's while has no value, so its devices are judged as if the line were "
	                 "missing.");
	for (size_t i = 0; i < groups->n; i++) {
		const char *labels[] = {"group", groups->all[i]->name, NULL};
		if (shown(groups, hw_monitor_group_stats(m, i), i))
			hw_metric_sample(b, "while_unknown", labels, hw_monitor_group_unknown(m, i) != NULL);
	}
	hw_metric_family(b, "heartbeats_total", "counter", "Heartbeats read.");
	for (size_t i = 0; i < groups->n; i++) {
		const struct hw_group_stats *s = hw_monitor_group_stats(m, i);
		if (!shown(groups, s, i))
			continue;
		const char *labels[] = {"group", groups->all[i]->name, NULL};
		hw_metric_sample(b, "heartbeats_total", labels, (double)s->heartbeats);
	}
}

/* Returns for how long a cause was active for the whole fleet or for any group. */
static int64_t blind_ns(const struct hw_monitor *m, struct hw_now now, enum hw_cause cause)
{
	const struct hw_blind *blind = hw_monitor_blind(m);
	struct hw_blindness b = hw_monitor_blindness(m);
	if (cause == HW_CAUSE_DEAF)
		return b.deaf_ns + (b.deaf_groups ? now.mono.ns - b.deaf_since.ns : 0);
	if (cause == HW_CAUSE_UPSTREAM)
		return b.upstream_ns + (b.upstream_groups ? now.mono.ns - b.upstream_since.ns : 0);
	bool lasts = blind->active & 1u << cause && now.mono.ns > blind->cause_since[cause].ns;
	return blind->cause_ns[cause] + (lasts ? now.mono.ns - blind->cause_since[cause].ns : 0);
}

/* Called when this node begins to watch the fleet. Before, as a standby node, it received no heartbeats. That time
 * does not count as blindness. */
void hw_control_begins(struct hw_control *c, struct hw_now now)
{
	c->begun = now.mono;
	for (unsigned i = 0; i < HW_CAUSES; i++)
		c->stood_ns[i] = blind_ns(c->monitor, now, (enum hw_cause)i);
}

static void blind_metrics(const struct hw_control *c, struct hw_now now, bool stands_by, struct evbuffer *b)
{
	const struct hw_monitor *m = c->monitor;
	struct hw_blindness is = hw_monitor_blindness(m);
	hw_metric_family(b, "blind", "gauge",
	                 "1 for the cause of blindness that is active; all are 0 while heartbeats arrive.");
	for (unsigned i = 0; i < HW_CAUSES; i++) {
		const char *labels[] = {"cause", hw_cause_name((enum hw_cause)i), NULL};
		hw_metric_sample(b, "blind", labels, !stands_by && is.blind && is.cause == (enum hw_cause)i);
	}
	hw_metric_family(b, "blind_seconds_total", "counter",
	                 "Time for which a cause of blindness was active; several can be active at once.");
	for (unsigned i = 0; i < HW_CAUSES; i++) {
		const char *labels[] = {"cause", hw_cause_name((enum hw_cause)i), NULL};
		int64_t ns = stands_by ? 0 : blind_ns(m, now, (enum hw_cause)i) - c->stood_ns[i];
		hw_metric_sample(b, "blind_seconds_total", labels, (double)ns / 1e9);
	}
}

static void core_metrics(const struct hw_control *c, struct hw_now now, bool stands_by, struct evbuffer *b)
{
	const struct hw_monitor *m = c->monitor;
	const struct hw_monitor_stats *s = hw_monitor_stats(m);
	group_metrics(m, b);
	hw_metric_family(b, "transitions_total", "counter", "Changes of a device's state, by their reason.");
	for (unsigned i = 0; i < HW_REASONS; i++) {
		const char *labels[] = {"reason", hw_reason_name((enum hw_reason)i), NULL};
		hw_metric_sample(b, "transitions_total", labels, (double)s->transitions[i]);
	}
	blind_metrics(c, now, stands_by, b);
	hw_metric_family(b, "refused_total", "counter", "Messages that were refused as heartbeats, by the reason.");
	for (unsigned i = 0; i < HW_REFUSED_KINDS; i++) {
		const char *labels[] = {"kind", hw_refused_name((enum hw_refused)i), NULL};
		hw_metric_sample(b, "refused_total", labels, (double)s->refused[i]);
	}
	hw_metric_family(
		b, "payload_errors_total", "counter",
		"Heartbeats whose payload began like JSON and was not JSON, or had a field of a wrong type or length.");
	hw_metric_sample(b, "payload_errors_total", NULL, (double)s->payload_errors);
	hw_metric_family(b, "own_messages_total", "counter",
	                 "Messages of this monitor that a heartbeat filter matches; they are ignored, and no fault.");
	hw_metric_sample(b, "own_messages_total", NULL, (double)s->own_messages);
}

static void write_groups(struct hw_json *j, const struct hw_control *c)
{
	const struct hw_groups *groups = hw_monitor_groups(c->monitor);
	hw_json_open_member(j, "groups", '[');
	for (size_t i = 0; i < groups->n; i++) {
		const struct hw_group_stats *s = hw_monitor_group_stats(c->monitor, i);
		if (!shown(groups, s, i))
			continue;
		hw_json_open(j, '{');
		hw_json_text(j, "name", groups->all[i]->name);
		hw_json_uint(j, "online", s->count[HW_STATE_ONLINE]);
		hw_json_uint(j, "offline", s->count[HW_STATE_OFFLINE]);
		hw_json_uint(j, "unseen", hw_monitor_unseen_of(c->monitor, i));
		hw_json_int(j, "timeout_ms", groups->all[i]->timeout_ms);
		hw_json_uint(j, "heartbeats_total", s->heartbeats);
		hw_json_bool(j, "retired", groups->all[i]->retired);
		hw_json_bool(j, "deaf", hw_monitor_group_is_deaf(c->monitor, i));
		const struct hw_while *away = hw_monitor_group_upstream(c->monitor, i);
		if (away)
			hw_json_text(j, "upstream", away->topic);
		else
			hw_json_null(j, "upstream");
		const struct hw_while *unknown = hw_monitor_group_unknown(c->monitor, i);
		if (unknown)
			hw_json_text(j, "upstream_unknown", unknown->topic);
		else
			hw_json_null(j, "upstream_unknown");
		hw_json_uint(j, "unjudged", hw_monitor_unjudged_of(c->monitor, i));
		hw_json_open_member(j, "filters", '[');
		for (size_t k = 0; k < groups->all[i]->n_heartbeat; k++)
			hw_json_item(j, groups->all[i]->heartbeat[k].filter);
		hw_json_close(j, ']');
		hw_json_close(j, '}');
	}
	hw_json_close(j, ']');
}

void hw_serve_groups(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	(void)rest;
	if (!body)
		return;
	write_groups(&j, arg);
	hw_answer_end(req, &j, body);
}

/* Answers with an overview. All its parts are of the same moment, because nothing else runs while they are written. */
void hw_serve_overview(void *arg, struct evhttp_request *req, const char *rest)
{
	const struct hw_control *c = arg;
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	(void)rest;
	if (!body)
		return;
	hw_json_open_member(&j, "status", '{');
	write_status(&j, c);
	hw_json_close(&j, '}');
	if (hw_stands_by(c))
		hw_json_null(&j, "groups");
	else
		write_groups(&j, c);
	hw_json_open_member(&j, "nodes", '{');
	hw_write_nodes(&j, c);
	hw_json_close(&j, '}');
	hw_json_bool(&j, "alert", c->alert && hw_proxy_is_there(c->alert));
	hw_json_bool(&j, "may_write", hw_http_may_write(&c->http, req));
	hw_answer_end(req, &j, body);
}

/* Writes a wheel: the loads of all slots, and each level's cursor. */
static void write_wheel(struct hw_json *j, const struct hw_wheel *w)
{
	hw_json_uint(j, "cursor_tick", w->cursor);
	hw_json_uint(j, "length", w->length);
	hw_json_open_member(j, "levels", '[');
	for (int level = 0; level < HW_WHEEL_LEVELS; level++) {
		hw_json_open(j, '{');
		hw_json_int(j, "level", level);
		hw_json_uint(j, "slot_ticks", hw_wheel_slot_ticks(level));
		hw_json_int(j, "cursor", hw_wheel_cursor_slot(w, level));
		hw_json_uint(j, "length", w->load[level]);
		hw_json_open_member(j, "slots", '[');
		for (int slot = 0; slot < HW_WHEEL_SLOTS; slot++)
			hw_json_element(j, hw_wheel_slot_load(w, level, slot));
		hw_json_close(j, ']');
		hw_json_close(j, '}');
	}
	hw_json_close(j, ']');
}

void hw_serve_wheel(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	const struct hw_wheel *keys = hw_monitor_key_wheel(c->monitor);
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	(void)rest;
	if (!body)
		return;
	hw_json_int(&j, "ticks_per_s", HW_TICKS_PER_S);
	hw_json_uint(&j, "suspects", hw_monitor_stats(c->monitor)->suspects);
	hw_json_uint(&j, "candidates", hw_monitor_stats(c->monitor)->suspects); /* the field's older name */
	write_wheel(&j, hw_monitor_wheel(c->monitor));
	if (keys) {
		hw_json_open_member(&j, "keys", '{');
		write_wheel(&j, keys);
		hw_json_close(&j, '}');
	}
	hw_answer_end(req, &j, body);
}

void hw_serve_metrics(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct evbuffer *body = evbuffer_new();
	(void)rest;
	if (!body) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	core_metrics(c, c->ops->now(c->arg), hw_stands_by(c), body);
	struct hw_control_nodes nodes;
	if (hw_nodes_of(c, &nodes))
		hw_control_nodes_metrics(body, &nodes, hw_stands_by(c));
	if (c->ops->metrics)
		c->ops->metrics(c->arg, body);
	hw_usage_metrics(body);
	hw_reply_as(req, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", body);
}
