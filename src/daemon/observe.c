/* SPDX-License-Identifier: MIT */
/* The daemon's part of the control API: status, health, forget, reload, and the metrics that are not the core's. */
#include "observe.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/reload.h"
#include "daemon/inventory/inventory.h"
#include "daemon/loop/turn.h"
#include "daemon/retained/retained.h"
#include "daemon/store/pending.h"
#include "daemon/store/store.h"
#include "daemon/visibility/probes.h"
#include "heartwheel/unseen.h"

static struct hw_now now_of(void *arg)
{
	(void)arg;
	return hw_app_now();
}

static void status(void *arg, struct hw_control_status *out)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_now();
	out->node = a->conf->node_id;
	out->version = HW_VERSION;
	out->uptime_s = (now.mono.ns - a->life.started.ns) / HW_NS_PER_S;
	out->mqtt_up = hw_app_links_are_up(a) && hw_app_readers_are_up(a);
	out->mqtt = hw_app_broker_text(a);
	out->broker = a->start->mqtt.host;
	out->broker_port = (int)a->start->mqtt.port;
	out->redis = hw_app_redis_text(a);
	if (a->redis)
		out->store = hw_redis_refusal(a->redis) ? HW_REDIS_REFUSES
		             : hw_app_redis_is_up(a)    ? HW_REDIS_WRITES
		                                        : HW_REDIS_AWAY;
	out->loading = a->life.loading && !hw_app_stands_by(a);
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
	hw_metric_one(b, "redis_refreshes_total", "counter",
	              "Refreshes of online devices in Redis. A refresh extends the time to live of the device's key.",
	              (double)s->refreshes);
	hw_metric_one(b, "redis_snapshots_total", "counter", "Devices written again because the store differed.",
	              (double)s->snapshots);
	hw_metric_one(b, "redis_transitions_dropped_total", "counter",
	              "Transitions left out of the event stream: Redis was away too long, and the device has had a "
	              "later one.",
	              (double)s->transitions_dropped);
}

static void keyspace_metrics(const struct hw_app *a, struct evbuffer *b)
{
	if (!a->keyspace)
		return;
	const struct hw_keyspace_stats *s = hw_keyspace_stats(a->keyspace);
	const struct hw_monitor_stats *m = hw_monitor_stats(a->monitor);
	hw_metric_one(b, "keyspace_up", "gauge",
	              "1 while keyspace notifications of other programs' keys arrive and the keys can be checked.",
	              hw_keyspace_up(a->keyspace));
	hw_metric_one(b, "keyspace_lag_seconds", "gauge", "How late a message published in Redis arrives.",
	              (double)s->lag_ns / 1e9);
	hw_metric_family(b, "notifications_total", "counter", "Keyspace notifications of devices' keys.");
	for (unsigned e = 0; e < HW_KEYSPACE_EVENTS; e++)
		hw_metric_labelled(b, "notifications_total", "event", hw_keyspace_event_name(e),
		                   (double)s->notifications[e]);
	hw_metric_one(b, "notifications_own_total", "counter", "Keyspace notifications of the monitor's own writes.",
	              (double)s->own);
	hw_metric_one(b, "keyspace_looks_total", "counter", "Keys that were checked (PTTL).", (double)s->queries);
	hw_metric_one(b, "keyspace_looks_waiting", "gauge", "Checks of keys that wait for Redis.", (double)s->waiting);
	hw_metric_one(b, "keyspace_looks_dropped_total", "counter", "Checks of keys that failed.", (double)s->dropped);
	hw_metric_one(b, "keyspace_resyncs_total", "counter", "How often all keys were checked.", (double)s->resyncs);
	hw_metric_one(b, "keyspace_missed_total", "counter",
	              "Keys whose state differed from what notifications had said.", (double)m->keys_missed);
	hw_metric_one(b, "keyspace_repaired_total", "counter",
	              "Devices whose state was corrected after such a difference.", (double)m->keys_repaired);
}

static void mqtt_metrics(const struct hw_app *a, struct evbuffer *b)
{
	const struct hw_app_broker_counts n = hw_app_broker_counts(a);
	hw_metric_family(b, "reconnects_total", "counter", "Reconnects after a connection was lost.");
	hw_metric_labelled(b, "reconnects_total", "link", "reader", (double)n.reader_reconnects);
	hw_metric_labelled(b, "reconnects_total", "link", "publisher", (double)n.publisher_reconnects);
	hw_metric_labelled(b, "reconnects_total", "link", "barriers", (double)n.barriers_reconnects);
	if (a->redis)
		hw_metric_labelled(b, "reconnects_total", "link", "redis",
		                   (double)hw_redis_stats(a->redis)->reconnects);
	if (a->keyspace)
		hw_metric_labelled(b, "reconnects_total", "link", "keyspace",
		                   (double)hw_keyspace_stats(a->keyspace)->reconnects);
	hw_metric_one(b, "ring_messages", "gauge", "Messages read from the broker that wait for the loop.",
	              (double)n.waiting);
	hw_metric_one(b, "wakeups_total", "counter", "Wake-ups of the loop and of the readers.",
	              (double)(n.reader_wakeups + hw_app_turn_metrics(a)->wakeups));
	hw_metric_one(b, "statuses_published_total", "counter", "Retained statuses that the broker has acknowledged.",
	              (double)hw_app_status_sink(a)->published);
	if (a->start->mqtt.homeassistant) {
		hw_metric_one(b, "discoveries_published_total", "counter",
		              "Retained messages for Home Assistant that the broker has acknowledged.",
		              (double)hw_app_discovery_sink(a)->published);
		hw_metric_one(b, "discoveries_refused_total", "counter",
		              "Retained messages for Home Assistant that the broker has refused.",
		              (double)hw_app_discovery_sink(a)->refused);
	}
	hw_metric_one(b, "statuses_refused_total", "counter", "Retained statuses that the broker has refused.",
	              (double)hw_app_status_sink(a)->refused);
}

/* Metrics that show where a problem is. */
static void core_metrics(const struct hw_app *a, struct evbuffer *b)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	struct hw_control_clients clients = hw_control_clients(a->control);
	struct hw_now now = hw_app_now();
	int64_t oldest_ms;
	hw_app_pending(a, now, &oldest_ms);
	hw_metric_one(b, "owed_oldest_seconds", "gauge",
	              "The longest time for which a device's state has been pending at a sink.",
	              (double)oldest_ms / 1e3);
	hw_metric_one(b, "start_time_seconds", "gauge", "When the daemon started, as Unix time.",
	              (double)(now.wall_ms - (now.mono.ns - a->life.started.ns) / HW_NS_PER_MS) / 1e3);
	hw_metric_family(b, "link_up", "gauge", "1 while connected.");
	hw_metric_labelled(b, "link_up", "link", "reader", hw_app_readers_are_up(a));
	hw_metric_labelled(b, "link_up", "link", "publisher", hw_app_publisher_is_up(a));
	hw_metric_labelled(b, "link_up", "link", "barriers", hw_app_barriers_are_up(a));
	if (a->redis)
		hw_metric_labelled(b, "link_up", "link", "redis", hw_app_redis_is_up(a));
	hw_metric_one(b, "loading", "gauge", "1 while devices are read from the store.",
	              a->life.loading && !hw_app_stands_by(a));
	hw_metric_one(b, "suspects", "gauge", "Devices past their deadline that wait for their barriers.", s->suspects);
	hw_metric_one(b, "barriers_sent_total", "counter", "Barriers sent through the broker.",
	              (double)s->barriers_sent);
	hw_metric_one(b, "barriers_back_total", "counter", "Barriers that came back.", (double)s->barriers_back);
	hw_metric_one(b, "goodbyes_void_total", "counter", "Goodbyes that were not taken as proof.",
	              (double)s->goodbyes_void);
	struct hw_probe_counts probes = hw_app_probe_counts(a);
	hw_metric_family(b, "probes_total", "counter", "Probes of silent devices, by their result.");
	hw_metric_labelled(b, "probes_total", "result", "sent", (double)probes.sent);
	hw_metric_labelled(b, "probes_total", "result", "answered", (double)probes.answered);
	hw_metric_labelled(b, "probes_total", "result", "dropped", (double)probes.dropped);
	hw_metric_one(b, "relinks_total", "counter",
	              "Entries of the wheel that moved to a new slot when they were due.", (double)s->relinks);
	const struct hw_wheel *keys = hw_monitor_key_wheel(a->monitor);
	hw_metric_one(b, "wheel_entries", "gauge", "Entries in the wheel of devices, and in the wheel of keys.",
	              hw_monitor_wheel(a->monitor)->length + (keys ? keys->length : 0));
	hw_metric_one(b, "event_clients", "gauge", "Clients of the event stream.", clients.now);
	hw_metric_one(b, "event_clients_lagging", "gauge", "Clients of the event stream that read earlier events.",
	              clients.lagging);
	hw_metric_one(b, "event_clients_refused_total", "counter",
	              "Clients of the event stream that were refused or disconnected.", (double)clients.refused);
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
	hw_metric_one(b, "tls_handshakes_total", "counter", "TLS handshakes that were completed.",
	              (double)r.handshakes);
	hw_metric_one(b, "tls_handshakes_cut_total", "counter",
	              "TLS handshakes that were ended: too slow, or too many at once.", (double)r.handshakes_cut);
}

static void metrics(void *arg, struct evbuffer *b)
{
	const struct hw_app *a = arg;
	const struct hw_app_turn_metrics *turn = hw_app_turn_metrics(a);
	const char *const build[] = {"version", HW_VERSION, "node", a->conf->node_id, NULL};
	hw_metric_family(b, "build_info", "gauge", "Always 1; the labels name the version.");
	hw_metric_sample(b, "build_info", build, 1);
	hw_metric_histogram(b, "detection_delay_seconds", "From a device's deadline to its offline transition.",
	                    &turn->detection);
	hw_metric_histogram(b, "loop_turn_seconds", "How long one turn of the loop took.", &turn->turn);
	hw_metric_histogram(b, "loop_turn_cpu_seconds", "CPU time of one whole turn of the loop's thread.", &turn->cpu);
	hw_metric_one(b, "barrier_seconds", "gauge", "Smoothed round trip of a barrier through the broker.",
	              (double)hw_monitor_stats(a->monitor)->barrier_rtt_ns / 1e9);
	hw_metric_family(b, "owed", "gauge", "Devices whose current state a sink has not confirmed.");
	hw_metric_labelled(b, "owed", "sink", "mqtt", (double)hw_app_status_sink(a)->pending);
	if (a->start->mqtt.homeassistant)
		hw_metric_labelled(b, "owed", "sink", "homeassistant", (double)hw_app_discovery_sink(a)->pending);
	if (a->redis)
		hw_metric_labelled(b, "owed", "sink", "redis", (double)hw_app_pending_writes(a));
	redis_metrics(a, b);
	keyspace_metrics(a, b);
	mqtt_metrics(a, b);
	core_metrics(a, b);
	listen_metrics(a, b);
}

static int events_after(void *arg, struct hw_stream_id at)
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

static const char *inventory_why_not(void *arg)
{
	struct hw_app *a = arg;
	if (hw_app_inventory_is_ready(a))
		return NULL;
	if (a->redis)
		return hw_app_redis_is_up(a) ? "the inventory is being read from Redis: try again"
		                             : "the inventory is in Redis, which cannot be reached: try again";
	return "store = memory: the inventory needs a file: set [monitor] inventory";
}

static const struct hw_expected *expected(void *arg)
{
	return hw_monitor_expected(((struct hw_app *)arg)->monitor);
}

static int inventory_apply(void *arg, const char *source, const struct hw_inventory_item *items, unsigned n,
                           hw_inventory_applied *fn, void *fn_arg)
{
	return hw_app_inventory_apply(arg, source, items, n, fn, fn_arg);
}

/* The operations of every mode; of a monitor with a store; and of a node of a cluster. */
#define ALWAYS                                                                                                         \
	.now = now_of, .status = status, .forget = forget, .reload = reload, .metrics = metrics,                       \
	.inventory_why_not = inventory_why_not, .expected = expected, .inventory_apply = inventory_apply
#define STORE ALWAYS, .events_after = events_after, .events_last = events_last
#define NODES STORE, .nodes = nodes, .owner = owner

const struct hw_control_ops hw_app_control_ops = {STORE};
const struct hw_control_ops hw_app_control_ops_nodes = {NODES};
const struct hw_control_ops hw_app_control_ops_standby = {NODES, .standby = standby};
const struct hw_control_ops hw_app_control_ops_memory = {ALWAYS};
