/* SPDX-License-Identifier: MIT */
/* What the control API asks of the daemon: status, health, forgetting, reload, and the metrics that are not the core's.
 */
#include "observe.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>

#include "cluster_requests.h"
#include "cluster_show.h"
#include "cluster_standby.h"
#include "cluster_view.h"
#include "hooks.h"
#include "notify/show.h"
#include "pending.h"
#include "probes.h"
#include "reload.h"
#include "turn.h"
#include "wake.h"

static struct hw_now now_of(void *arg)
{
	(void)arg;
	return hw_app_now();
}

static bool readers_up(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->n_readers; i++)
		if (!a->reader[i].up)
			return false;
	return !hw_share_why(a);
}

/* The readers are up: so the broker is there, and the client id says which connection it does not take. */
static const char *lacks_text(struct hw_app *a, const char *client_id, const char *why)
{
	snprintf(a->mqtt_lacks, sizeof(a->mqtt_lacks), "'%s' is not connected: %s", client_id,
	         why[0] ? why : "connecting");
	return a->mqtt_lacks;
}

static const char *mqtt_text(struct hw_app *a)
{
	for (unsigned i = 0; i < a->n_readers; i++)
		if (!a->reader[i].up)
			return a->reader[i].why[0] ? a->reader[i].why : "connecting";
	if (a->publisher_up && a->barriers.up && hw_share_why(a))
		return hw_share_why(a);
	if (!a->publisher_up)
		return lacks_text(a, a->publisher_id, a->publisher_why);
	if (!a->barriers.up)
		return lacks_text(a, a->barriers.client_id, a->barriers.why);
	return "up";
}

static const char *redis_text(const struct hw_app *a)
{
	if (!a->redis)
		return "off";
	if (a->redis_up)
		return hw_redis_refusal(a->redis) ? hw_redis_refusal(a->redis) : "up";
	return a->redis_why[0] ? a->redis_why : "connecting";
}

static void status(void *arg, struct hw_control_status *out)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	out->node = a->conf->node_id;
	out->version = HW_VERSION;
	out->uptime_s = (now.mono.ns - a->started.ns) / HW_NS_PER_S;
	out->mqtt_up = readers_up(a) && a->publisher_up && a->barriers.up;
	out->mqtt = mqtt_text(a);
	out->broker = a->start->mqtt.host;
	out->broker_port = (int)a->start->mqtt.port;
	out->redis = redis_text(a);
	if (a->redis)
		out->store = hw_redis_refusal(a->redis) ? HW_REDIS_REFUSES
		             : a->redis_up              ? HW_REDIS_WRITES
		                                        : HW_REDIS_AWAY;
	out->loading = a->loading && !hw_app_stands_by(a);
	out->pending = hw_app_pending(a, now, &out->pending_oldest_ms);
}

static enum hw_forgotten forget(void *arg, uint64_t ticket, const char *id, size_t len)
{
	return hw_app_forget(arg, ticket, id, len);
}

static int reload(void *arg, struct evbuffer *body)
{
	struct hw_app *a = arg;
	int code = hw_app_reload(a, body);
	hw_app_turn(a);
	return code;
}

static void redis_metrics(const struct hw_app *a, struct evbuffer *b)
{
	if (!a->redis)
		return;
	const struct hw_redis_stats *s = hw_redis_stats(a->redis);
	const char *refusal = hw_redis_refusal_name(a->redis), *name;
	hw_metric_family(b, "redis_refuses", "gauge",
	                 "1 for the error with which Redis answers writes; all are 0 while it writes, or is away.");
	for (unsigned i = 0; (name = hw_redis_refusal_names(i)); i++)
		hw_metric_labelled(b, "redis_refuses", "error", name, refusal && strcmp(name, refusal) == 0);
	hw_metric_one(b, "redis_script_seconds", "gauge", "Smoothed round trip of the transition script.",
	              (double)s->script_ns / 1e9);
	hw_metric_one(b, "redis_commands_total", "counter", "Commands sent to Redis.", (double)s->commands);
	hw_metric_one(b, "redis_refreshes_total", "counter", "Devices whose keys were refreshed.",
	              (double)s->refreshes);
	hw_metric_one(b, "redis_rewrites_total", "counter", "Devices written anew because the store differed.",
	              (double)s->rewrites);
	hw_metric_one(
		b, "redis_edges_dropped_total", "counter",
		"Transitions left out of the event stream: Redis was away too long, and the device has had another.",
		(double)s->edges_dropped);
}

static void keyspace_metrics(const struct hw_app *a, struct evbuffer *b)
{
	if (!a->keyspace)
		return;
	const struct hw_keyspace_stats *s = hw_keyspace_stats(a->keyspace);
	const struct hw_monitor_stats *m = hw_monitor_stats(a->monitor);
	hw_metric_one(b, "keyspace_up", "gauge", "Whether other programs' keys are listened to and can be looked at.",
	              hw_keyspace_up(a->keyspace));
	hw_metric_one(b, "keyspace_lag_seconds", "gauge", "How late what is published in Redis arrives.",
	              (double)s->lag_ns / 1e9);
	hw_metric_family(b, "notifications_total", "counter", "Keyspace notifications of devices' keys.");
	for (unsigned e = 0; e < HW_KEYSPACE_EVENTS; e++)
		hw_metric_labelled(b, "notifications_total", "event", hw_keyspace_event_name(e),
		                   (double)s->notifications[e]);
	hw_metric_one(b, "notifications_own_total", "counter", "... of them those of the monitor's own writes.",
	              (double)s->own);
	hw_metric_one(b, "keyspace_looks_total", "counter", "Keys that were looked at (PTTL).", (double)s->looks);
	hw_metric_one(b, "keyspace_looks_waiting", "gauge", "Looks that wait for Redis.", (double)s->waiting);
	hw_metric_one(b, "keyspace_looks_dropped_total", "counter", "Looks that could not be had.", (double)s->dropped);
	hw_metric_one(b, "keyspace_resyncs_total", "counter", "How often all keys were gone through.",
	              (double)s->resyncs);
	hw_metric_one(b, "keyspace_missed_total", "counter", "Keys that were not as notifications had told.",
	              (double)m->keys_missed);
	hw_metric_one(b, "keyspace_repaired_total", "counter", "... and whose device's state was put right.",
	              (double)m->keys_repaired);
}

static void mqtt_metrics(const struct hw_app *a, struct evbuffer *b)
{
	uint64_t reconnects = 0, waiting = 0, wakeups = a->wakeups;
	for (unsigned i = 0; i < a->n_readers; i++) {
		if (!a->reader[i].reader)
			continue;
		struct hw_reader_stats s = hw_reader_stats(a->reader[i].reader);
		reconnects += s.reconnects;
		wakeups += s.wakeups;
		waiting += s.messages > a->reader[i].taken ? s.messages - a->reader[i].taken : 0;
	}
	hw_metric_family(b, "reconnects_total", "counter", "Connections made anew after one was lost.");
	hw_metric_labelled(b, "reconnects_total", "link", "reader", (double)reconnects);
	hw_metric_labelled(b, "reconnects_total", "link", "publisher", (double)a->publisher_reconnects);
	hw_metric_labelled(b, "reconnects_total", "link", "barriers", (double)a->barriers.reconnects);
	if (a->redis)
		hw_metric_labelled(b, "reconnects_total", "link", "redis",
		                   (double)hw_redis_stats(a->redis)->reconnects);
	if (a->keyspace)
		hw_metric_labelled(b, "reconnects_total", "link", "keyspace",
		                   (double)hw_keyspace_stats(a->keyspace)->reconnects);
	hw_metric_one(b, "ring_messages", "gauge", "Messages read from the broker that wait for the loop.",
	              (double)waiting);
	hw_metric_one(b, "wakeups_total", "counter", "Wake-ups of the loop and of the readers.", (double)wakeups);
	hw_metric_one(b, "statuses_published_total", "counter", "Retained statuses that the broker has acknowledged.",
	              (double)a->status.published);
	if (a->start->mqtt.homeassistant) {
		hw_metric_one(b, "discoveries_published_total", "counter",
		              "Retained messages for Home Assistant that the broker has acknowledged.",
		              (double)a->discovery.published);
		hw_metric_one(b, "discoveries_refused_total", "counter",
		              "Retained messages for Home Assistant that the broker has refused.",
		              (double)a->discovery.refused);
	}
	hw_metric_one(b, "statuses_refused_total", "counter", "Retained statuses that the broker has refused.",
	              (double)a->status.refused);
}

/* What tells, when something is wrong, where to look. */
static void core_metrics(const struct hw_app *a, struct evbuffer *b)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	struct hw_control_clients clients = hw_control_clients(a->control);
	struct hw_now now = hw_app_now();
	int64_t oldest_ms;
	hw_app_pending(a, now, &oldest_ms);
	hw_metric_one(b, "owed_oldest_seconds", "gauge", "How long a device's state has been owed to a sink, at most.",
	              (double)oldest_ms / 1e3);
	hw_metric_one(b, "start_time_seconds", "gauge", "When the daemon started, as Unix time.",
	              (double)(now.wall_ms - (now.mono.ns - a->started.ns) / HW_NS_PER_MS) / 1e3);
	hw_metric_family(b, "link_up", "gauge", "1 while the connection is there.");
	hw_metric_labelled(b, "link_up", "link", "reader", readers_up(a));
	hw_metric_labelled(b, "link_up", "link", "publisher", a->publisher_up);
	hw_metric_labelled(b, "link_up", "link", "barriers", a->barriers.up);
	if (a->redis)
		hw_metric_labelled(b, "link_up", "link", "redis", a->redis_up);
	hw_metric_one(b, "loading", "gauge", "1 while devices are read from the store.",
	              a->loading && !hw_app_stands_by(a));
	hw_metric_one(b, "candidates", "gauge", "Devices past their deadline that wait for their barriers.",
	              s->candidates);
	hw_metric_one(b, "barriers_sent_total", "counter", "Barriers sent through the broker.",
	              (double)s->barriers_sent);
	hw_metric_one(b, "barriers_back_total", "counter", "Barriers that came back.", (double)s->barriers_back);
	hw_metric_one(b, "goodbyes_void_total", "counter", "Goodbyes that were not believed.",
	              (double)s->goodbyes_void);
	struct hw_probe_counts probes = hw_app_probe_counts(a);
	hw_metric_family(b, "probes_total", "counter", "Devices asked in their silence, and what became of it.");
	hw_metric_labelled(b, "probes_total", "result", "sent", (double)probes.sent);
	hw_metric_labelled(b, "probes_total", "result", "answered", (double)probes.answered);
	hw_metric_labelled(b, "probes_total", "result", "dropped", (double)probes.dropped);
	hw_metric_one(b, "relinks_total", "counter", "Entries of the wheel put elsewhere when they came due.",
	              (double)s->relinks);
	const struct hw_wheel *keys = hw_monitor_key_wheel(a->monitor);
	hw_metric_one(b, "wheel_entries", "gauge", "Entries in the wheel, and in that of keys.",
	              hw_monitor_wheel(a->monitor)->length + (keys ? keys->length : 0));
	hw_metric_one(b, "event_clients", "gauge", "Clients of the event stream.", clients.now);
	hw_metric_one(b, "event_clients_lagging", "gauge", "Clients of the event stream that read what has been.",
	              clients.lagging);
	hw_metric_one(b, "event_clients_refused_total", "counter", "Clients of the event stream refused or cut off.",
	              (double)clients.refused);
}

static void listen_metrics(const struct hw_app *a, struct evbuffer *b)
{
	if (!*a->start->http_listen)
		return;
	struct hw_http_refused r = hw_control_refused(a->control);
	hw_metric_family(b, "http_refused_total", "counter", "Requests to [http] listen that were not admitted.");
	hw_metric_labelled(b, "http_refused_total", "why", "no_token", (double)r.without);
	hw_metric_labelled(b, "http_refused_total", "why", "wrong_token", (double)r.wrong);
	hw_metric_labelled(b, "http_refused_total", "why", "closed", (double)r.closed);
	hw_metric_labelled(b, "http_refused_total", "why", "role", (double)r.may_not);
	hw_metric_labelled(b, "http_refused_total", "why", "foreign", (double)r.foreign);
	hw_metric_one(b, "http_closed_total", "counter", "Connections to [http] listen closed to make room for others.",
	              (double)r.crowded);
	hw_metric_one(b, "tls_handshakes_total", "counter", "Handshakes of TLS that were completed.",
	              (double)r.handshakes);
	hw_metric_one(b, "tls_handshakes_cut_total", "counter",
	              "Handshakes of TLS that took too long, or were too many.", (double)r.handshakes_cut);
}

static void metrics(void *arg, struct evbuffer *b)
{
	const struct hw_app *a = arg;
	const char *const build[] = {"version", HW_VERSION, "node", a->conf->node_id, NULL};
	hw_metric_family(b, "build_info", "gauge", "Always 1; the labels say what runs.");
	hw_metric_sample(b, "build_info", build, 1);
	hw_metric_histogram(b, "detection_delay_seconds", "From a device's deadline to its offline transition.",
	                    &a->detection);
	hw_metric_histogram(b, "loop_turn_seconds", "How long one turn of the loop took.", &a->turn);
	hw_metric_histogram(b, "loop_turn_cpu_seconds", "CPU time of one whole turn of the loop's thread.",
	                    &a->turn_cpu);
	hw_metric_one(b, "barrier_seconds", "gauge", "Smoothed round trip of a barrier through the broker.",
	              (double)hw_monitor_stats(a->monitor)->barrier_rtt_ns / 1e9);
	hw_metric_family(b, "owed", "gauge", "Devices whose current state a sink has not confirmed.");
	hw_metric_labelled(b, "owed", "sink", "mqtt", (double)a->status.pending);
	if (a->start->mqtt.homeassistant)
		hw_metric_labelled(b, "owed", "sink", "homeassistant", (double)a->discovery.pending);
	if (a->redis)
		hw_metric_labelled(b, "owed", "sink", "redis", (double)a->pending_store);
	redis_metrics(a, b);
	keyspace_metrics(a, b);
	mqtt_metrics(a, b);
	hw_notify_metrics(a->notifier, b);
	core_metrics(a, b);
	listen_metrics(a, b);
}

static int events_after(void *arg, struct hw_event_id at)
{
	return hw_redis_events_after(((struct hw_app *)arg)->redis, at);
}

static int events_last(void *arg)
{
	return hw_redis_events_last(((struct hw_app *)arg)->redis);
}

static void nodes(void *arg, struct hw_control_nodes *out)
{
	hw_app_show_nodes(arg, out);
}

static const char *owner(void *arg, const struct hw_device *d)
{
	return hw_app_cluster_owner(arg, d);
}

static const char *standby(void *arg)
{
	return hw_app_stands_by(arg) ? hw_app_standby_owner(arg) : NULL;
}

/* What there is in every way to run; what a store adds, other nodes add, and one that stands by. */
#define ALWAYS                                                                                                         \
	.now = now_of, .status = status, .forget = forget, .reload = reload, .notify = hw_app_show_notify,             \
	.notify_test = hw_app_test_notify, .metrics = metrics
#define STORE ALWAYS, .events_after = events_after, .events_last = events_last
#define NODES STORE, .nodes = nodes, .owner = owner

const struct hw_control_ops hw_app_control_ops = {STORE};
const struct hw_control_ops hw_app_control_ops_nodes = {NODES};
const struct hw_control_ops hw_app_control_ops_standby = {NODES, .standby = standby};
const struct hw_control_ops hw_app_control_ops_memory = {ALWAYS};
