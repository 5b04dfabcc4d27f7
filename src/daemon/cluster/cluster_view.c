/* SPDX-License-Identifier: MIT */
#include "cluster_view.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_priv.h"
#include "cluster_sentinel.h"
#include "daemon/loop/clock.h"
#include "daemon/retained/retained.h"
#include "daemon/store/pending.h"
#include "heartwheel/fnv.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"

/* --- this node's entry -------------------------------------------------------------------------------------------- */

static const char *mode_of(const struct hw_app *a)
{
	return a->start->cluster_mode == HW_CLUSTER_STANDBY ? "standby" : "mirror";
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	return hw_fnv64(h, text, strlen(text) + 1);
}

static uint64_t hash_list(uint64_t h, char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = hash_text(h, list[i]);
	return hw_fnv64(h, &n, sizeof(n));
}

static uint64_t hash_group(uint64_t h, const struct hw_settings_group *g)
{
	const int64_t numbers[] = {
		g->timeout_ms, g->timeout_max_ms, g->goodbye_delay_ms, g->max_age_ms,   g->max_offline_rate,
		g->payload,    g->batch,          g->online_after,     g->parent_death, g->child_proves};
	const int64_t learning[] = {g->learn, g->timeout_min_ms, g->learn_gaps};
	h = hash_text(hash_text(hash_text(hash_text(h, g->name), g->status), g->id), g->id_prefix);
	h = hash_list(hash_list(h, g->heartbeat, g->n_heartbeat), g->goodbye, g->n_goodbye);
	h = hash_list(hash_list(h, g->ignore, g->n_ignore), g->field, g->n_field);
	h = hash_list(h, g->parents, g->n_parents);
	if (g->n_labels > 0)
		h = hash_list(h, g->labels, g->n_labels);
	h = hw_fnv64(h, numbers, sizeof(numbers));
	if (g->learn != HW_LEARN_NO)
		h = hash_text(hw_fnv64(h, learning, sizeof(learning)), g->mistakes);
	if (!*g->probe)
		return h;
	const int64_t probes[] = {g->probe_after_ms, g->probes};
	return hw_fnv64(hash_text(h, g->probe), probes, sizeof(probes));
}

/* Returns a hash of the settings that must be equal on all nodes: otherwise nodes would report different states of a
 * device. */
static uint64_t hash_config(const struct hw_settings *c)
{
	const int64_t numbers[] = {c->forget_after_ms,  c->forget_once_after_ms, c->redis.ttl_factor,
	                           c->cluster_lease_ms, c->mqtt.homeassistant,   c->max_devices};
	uint64_t h = hw_fnv64(HW_FNV64_BEGIN, numbers, sizeof(numbers));
	for (size_t i = 0; i < c->n_groups; i++)
		h = hash_group(h, &c->groups[i]);
	return h;
}

static const char *state_of(const struct hw_app *a, const struct hw_nodes_order *o)
{
	if (o->ready)
		return "ready";
	if (a->life.stopping)
		return "leaving";
	if (a->cluster->standby.is)
		return o->kind == HW_NODES_JOIN ? "joining" : "blind";
	return hw_app_cluster_is_read(a) ? "blind" : "joining";
}

static void write_numbers(const struct hw_app *a, struct hw_json *j)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	uint64_t statuses = hw_app_status_sink(a)->pending, writes = hw_app_pending_writes(a);
	unsigned owns = 0;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		owns += hw_nodes_owns(a->cluster->nodes, p);
	hw_json_uint(j, "owns", owns);
	hw_json_uint(j, "devices", s->count[HW_STATE_ONLINE] + s->count[HW_STATE_OFFLINE]);
	hw_json_uint(j, "online", s->count[HW_STATE_ONLINE]);
	hw_json_uint(j, "offline", s->count[HW_STATE_OFFLINE]);
	hw_json_uint(j, "owed", statuses > writes ? statuses : writes);
}

/* With this node's prefix: all nodes must have the same. */
static void print_publisher_id(const struct hw_app *a, const char *node, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s-%s-pub", a->start->mqtt.client_id_prefix, node);
}

/* Writes the client id of the publisher. With `all`, also writes the client ids of the other connections. */
static void write_client_ids(const struct hw_app *a, bool all, struct hw_json *j)
{
	const struct hw_settings *c = a->start;
	char id[256];
	hw_json_open_member(j, "client_ids", '[');
	print_publisher_id(a, c->node_id, id, sizeof(id));
	hw_json_item(j, id);
	if (all) {
		snprintf(id, sizeof(id), "%s-%s-bar", c->mqtt.client_id_prefix, c->node_id);
		hw_json_item(j, id);
	}
	for (unsigned i = 0; all && i < (unsigned)c->mqtt.readers; i++) {
		snprintf(id, sizeof(id), "%s-%s-r%u", c->mqtt.client_id_prefix, c->node_id, i);
		hw_json_item(j, id);
	}
	hw_json_close(j, ']');
}

/* Writes the members of an entry that other nodes need to share the fleet with this node and to evict it. They are
 * shorter than HW_CLUSTER_JSON. */
static void write_essentials(struct hw_app *a, const struct hw_nodes_order *o, struct hw_json *j)
{
	const struct hw_settings *c = a->start;
	struct hw_blindness b = hw_monitor_blindness(a->monitor);
	char hash[17];
	snprintf(hash, sizeof(hash), "%016" PRIx64, hash_config(a->conf));
	hw_json_text(j, "mode", mode_of(a));
	hw_json_text(j, "name", c->cluster_name);
	hw_json_uint(j, "protocol", HW_CLUSTER_PROTOCOL);
	hw_json_text(j, "version", HW_VERSION);
	hw_json_text(j, "state", state_of(a, o));
	if (b.blind && !hw_app_stands_by(a))
		hw_json_text(j, "blind_cause", hw_cause_name(b.cause));
	hw_json_int(j, "lease_ms", c->cluster_lease_ms);
	hw_json_text(j, "config", hash);
}

/* Writes the URL of this node's page. The address is the first of [http] names, or else `listen`. Returns false if
 * this node knows no address that other machines can reach. */
static bool print_url(const struct hw_app *a, char *buf, size_t cap)
{
	const char *listen = a->start->http_listen, *port = strrchr(listen, ':');
	if (!port)
		return false;
	const char *host = a->conf->http_names + strspn(a->conf->http_names, ", \t");
	size_t len = strcspn(host, ", \t");
	if (len == 0) {
		host = listen;
		len = (size_t)(port - listen);
		bool any = len == 0 || (len == 1 && *host == '*') || (len == 4 && memcmp(host, "[::]", 4) == 0) ||
		           (len == 7 && memcmp(host, "0.0.0.0", 7) == 0);
		if (any)
			return false;
	}
	int n = snprintf(buf, cap, "%s://%.*s%s/", *a->conf->http_tls_cert ? "https" : "http", (int)len, host, port);
	return n > 0 && (size_t)n < cap;
}

/* What an entry has beside its essential members. */
#define FORMS    (1U << 0)
#define GROUPS   (1U << 1)
#define UNJUDGED (1U << 2)
#define NUMBERS  (1U << 3)
#define URL      (1U << 4)

/* Writes the entry into `buf`. If it does not fit, returns false with `buf` unchanged. */
static bool print_entry(struct hw_app *a, const struct hw_nodes_order *o, unsigned parts, char buf[HW_CLUSTER_JSON])
{
	char text[HW_CLUSTER_JSON], url[512];
	struct hw_json j;
	hw_json_begin_text(&j, text, sizeof(text));
	hw_json_open(&j, '{');
	write_essentials(a, o, &j);
	write_client_ids(a, parts & NUMBERS, &j);
	if (parts & FORMS)
		hw_app_cluster_forms_write(a, parts & GROUPS, parts & UNJUDGED, &j);
	if (parts & NUMBERS) {
		write_numbers(a, &j);
		hw_json_text(&j, "listen", a->start->http_listen);
	}
	if (parts & URL && print_url(a, url, sizeof(url)))
		hw_json_text(&j, "url", url);
	hw_json_close(&j, '}');
	int len = hw_json_end_text(&j);
	if (len >= 0)
		memcpy(buf, text, (size_t)len + 1);
	return len >= 0;
}

/* Writes this node's entry. If not everything fits, parts that are not essential are left out. */
void hw_app_cluster_json(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o, char buf[HW_CLUSTER_JSON])
{
	unsigned parts = FORMS | GROUPS | UNJUDGED;
	(void)now;
	hw_app_cluster_forms_update(a);
	if (print_entry(a, o, parts | NUMBERS | URL, buf))
		return;
	print_entry(a, o, 0, buf);
	if (!print_entry(a, o, parts, buf) && !print_entry(a, o, parts &= ~UNJUDGED, buf))
		print_entry(a, o, parts &= ~GROUPS, buf);
	if (print_entry(a, o, parts | NUMBERS, buf))
		print_entry(a, o, parts | NUMBERS | URL, buf);
}

/* --- remembered nodes --------------------------------------------------------------------------------------------- */

static struct hw_cluster_was *find(struct hw_cluster_seen *s, const char *node)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->at[i].node, node) == 0)
			return &s->at[i];
	return NULL;
}

static void drop(struct hw_cluster_seen *s, struct hw_cluster_was *w)
{
	free(w->json);
	*w = s->at[--s->n];
	s->at[s->n] = (struct hw_cluster_was){0};
}

/* Adds a node. If there is no room, drops the node that was lost first. */
static struct hw_cluster_was *add(struct hw_cluster_seen *s, const char *node)
{
	struct hw_cluster_was *oldest = NULL;
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].lost && (!oldest || s->at[i].since_ms < oldest->since_ms))
			oldest = &s->at[i];
	if (s->n == sizeof(s->at) / sizeof(s->at[0]) && oldest)
		drop(s, oldest);
	if (s->n == sizeof(s->at) / sizeof(s->at[0]))
		return NULL;
	struct hw_cluster_was *w = &s->at[s->n++];
	*w = (struct hw_cluster_was){.lost = true};
	snprintf(w->node, sizeof(w->node), "%s", node);
	return w;
}

static void keep_json(struct hw_cluster_was *w, const char *json)
{
	if (w->json && strcmp(w->json, json) == 0)
		return;
	free(w->json);
	w->json = strdup(json);
}

static bool is_us(const struct hw_app *a, const char *node)
{
	return strcmp(node, a->start->node_id) == 0;
}

static void is_there(struct hw_app *a, struct hw_now now, const char *node, const char *json)
{
	struct hw_cluster_seen *s = &a->cluster->seen;
	struct hw_cluster_was *w = find(s, node);
	if (!w)
		w = add(s, node);
	if (!w)
		return;
	if (w->lost) {
		w->since_ms = now.wall_ms;
		w->leaves = false;
		if (!is_us(a, node))
			hw_log(a->log, HW_LOG_NOTICE, "nodes: node '%s' is a member", node);
	}
	w->there = true;
	w->lost = false;
	keep_json(w, json);
	hw_app_cluster_forms_saw(a, node, json);
	w->leaves |= strstr(json, "\"state\":\"leaving\"") != NULL;
}

/* Handles a node that is no member any more. Returns whether to remember it. */
static bool is_gone(struct hw_app *a, struct hw_now now, struct hw_cluster_was *w)
{
	if (w->lost)
		return true;
	w->lost = true;
	w->since_ms = now.wall_ms;
	if (is_us(a, w->node))
		hw_log(a->log, HW_LOG_WARNING, "nodes: this node was removed from the members; it joins again");
	else if (w->leaves)
		hw_log(a->log, HW_LOG_NOTICE, "nodes: node '%s' has left", w->node);
	else
		hw_log(a->log, HW_LOG_WARNING,
		       "nodes: node '%s' was removed from the members, because it did not renew its entry in Redis; "
		       "check that node",
		       w->node);
	return !w->leaves;
}

static void joined(struct hw_app *a)
{
	hw_log(a->log, HW_LOG_NOTICE, "nodes: joined cluster '%s' as '%s'", a->start->cluster_name, a->start->node_id);
}

void hw_app_cluster_saw(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o,
                        const struct hw_cluster_answer *answer)
{
	struct hw_cluster_seen *s = &a->cluster->seen;
	bool stopped = a->life.stopping && o->kind == HW_NODES_LEAVE;
	if (o->kind == HW_NODES_JOIN && answer->nodes.result == HW_NODES_DONE)
		joined(a);
	for (size_t i = 0; i < s->n; i++)
		s->at[i].there = false;
	for (size_t i = 0; i < answer->nodes.n_members; i++)
		is_there(a, now, answer->members[i].node, answer->json[i]);
	for (size_t i = s->n; i-- > 0 && !stopped;)
		if (!s->at[i].there && !is_gone(a, now, &s->at[i]))
			drop(s, &s->at[i]);
}

void hw_app_cluster_leaves(struct hw_app *a, const char *node)
{
	struct hw_cluster_was *w = find(&a->cluster->seen, node);
	if (w)
		w->leaves = true;
}

/* Whether the client id has the form of this node's publisher. Only such a client may be evicted. */
static bool is_publisher_of(const char *id, const char *node)
{
	char end[sizeof("--pub") + HW_NODE_ID_MAX];
	size_t len = strlen(id), n = hw_print(end, sizeof(end), "-%s-pub", node);
	return len > n && strcmp(id + len - n, end) == 0;
}

void hw_app_cluster_publisher_id(struct hw_app *a, const char *node, char *buf, size_t cap)
{
	const struct hw_cluster_was *w = find(&a->cluster->seen, node);
	cJSON *j = w && w->json ? cJSON_Parse(w->json) : NULL;
	const char *id = cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(j, "client_ids"), 0));
	if (id && strlen(id) < cap && is_publisher_of(id, node))
		snprintf(buf, cap, "%s", id);
	else
		print_publisher_id(a, node, buf, cap);
	cJSON_Delete(j);
}

void hw_app_cluster_asks(struct hw_app *a, const struct hw_nodes_order *o)
{
	unsigned n = hw_partitions_count(&o->set);
	if (o->kind == HW_NODES_REMOVE)
		hw_log(a->log, HW_LOG_WARNING,
		       "nodes: node '%s' has not renewed its entry in Redis within a lease; this node removes it from "
		       "the "
		       "members; check that node",
		       o->node);
	else if (o->kind == HW_NODES_RELEASE)
		hw_log(a->log, HW_LOG_NOTICE, "nodes: this node releases %u partition%s", n, n == 1 ? "" : "s");
	else if (o->kind == HW_NODES_CLAIM)
		hw_log(a->log, HW_LOG_DEBUG, "nodes: this node claims %u partition%s with epoch %" PRIu64, n,
		       n == 1 ? "" : "s", o->epoch);
}

void hw_app_cluster_won(struct hw_app *a, const struct hw_partitions *set, const struct hw_partitions *unclean)
{
	struct hw_cluster_seen *s = &a->cluster->seen;
	unsigned n = hw_partitions_count(set), bad = hw_partitions_count(unclean);
	s->takeovers_unclean += bad;
	s->takeovers_clean += n - bad;
	hw_log(a->log, HW_LOG_NOTICE,
	       "nodes: this node owns %u more partition%s; %u of them had no pending writes when their previous owner "
	       "released them",
	       n, n == 1 ? "" : "s", n - bad);
}

void hw_app_cluster_lost(struct hw_app *a, const struct hw_partitions *set)
{
	unsigned n = hw_partitions_count(set);
	hw_log(a->log, HW_LOG_WARNING, "nodes: this node has lost %u partition%s to other nodes", n, n == 1 ? "" : "s");
}

void hw_app_cluster_became_authoritative(struct hw_app *a, int64_t after_ns)
{
	a->cluster->seen.takeover_s_last = (double)after_ns / 1e9;
	hw_log(a->log, HW_LOG_DEBUG, "nodes: this node decides for its new partitions, %.3f s after it won them",
	       (double)after_ns / 1e9);
}

void hw_app_cluster_view_free(struct hw_app *a)
{
	struct hw_cluster_seen *s = &a->cluster->seen;
	for (size_t i = 0; i < s->n; i++)
		free(s->at[i].json);
}

/* --- the view ----------------------------------------------------------------------------------------------------- */

static unsigned owned_by(const struct hw_nodes *n, const char *node)
{
	unsigned owns = 0;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		const struct hw_record *r = hw_nodes_record(n, p);
		owns += r->token.epoch && !r->released && strcmp(r->token.node, node) == 0;
	}
	return owns;
}

static struct hw_partitions unowned(const struct hw_nodes *n)
{
	struct hw_partitions none = {{0}};
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		const struct hw_record *r = hw_nodes_record(n, p);
		if (!r->token.epoch || r->released || !hw_members_find(hw_nodes_members(n), r->token.node))
			hw_partitions_add(&none, p);
	}
	return none;
}

void hw_app_cluster_view_tick(struct hw_app *a)
{
	struct hw_cluster_seen *s = &a->cluster->seen;
	const struct hw_partitions now = unowned(a->cluster->nodes);
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
		s->orphans.bits[k] = s->unowned.bits[k] & now.bits[k];
	s->unowned = now;
}

static const char *state_in(const struct hw_cluster_was *w, bool ready)
{
	static const struct {
		const char *name, *member;
	} states[] = {{"blind", "\"state\":\"blind\""}, {"leaving", "\"state\":\"leaving\""}};
	if (w->lost)
		return "lost";
	if (ready)
		return "ready";
	for (size_t k = 0; k < 2; k++)
		if (w->json && strstr(w->json, states[k].member))
			return states[k].name;
	return "joining";
}

/* Whether this node is cut off from Redis: it could not renew its entry for a whole lease. Another node may own its
 * devices by now, so the states that it shows may be old. Exception: the owner of a standby fleet still receives the
 * fleet's messages. */
static bool is_cut(const struct hw_app *a, struct hw_now now)
{
	const struct hw_app_cluster *c = a->cluster;
	bool owner = c->standby.is && !hw_app_stands_by(a);
	return hw_nodes_is_member(c->nodes) && !owner &&
	       hw_nodes_silent_ns(c->nodes, now) >= a->start->cluster_lease_ms * HW_NS_PER_MS;
}

void hw_app_cluster_totals(const struct hw_app *a, struct hw_cluster_totals *out)
{
	const struct hw_nodes_stats *s = hw_nodes_stats(a->cluster->nodes);
	const struct hw_cluster_seen *seen = &a->cluster->seen;
	*out = seen->before;
	out->claims += s->claims;
	out->releases += s->released;
	out->evictions += s->evictions;
	out->joins += s->joins;
	out->removals += s->removals;
	out->fenced_redis += s->fenced_redis;
	out->fenced_broker += seen->fenced_broker;
	out->takeovers_clean += seen->takeovers_clean;
	out->takeovers_unclean += seen->takeovers_unclean;
	if (seen->takeover_s_last > 0)
		out->takeover_s_last = seen->takeover_s_last;
}

static void show_one(const struct hw_app *a, struct hw_control_node *out, const struct hw_cluster_was *w, bool cut)
{
	const struct hw_member *m = hw_members_find(hw_nodes_members(a->cluster->nodes), w->node);
	bool self = strcmp(w->node, a->start->node_id) == 0;
	*out = (struct hw_control_node){.node = w->node,
	                                .self = self,
	                                .lost = w->lost,
	                                .state = self && !w->lost && cut ? "lapsed" : state_in(w, m && m->ready),
	                                .json = w->json ? w->json : "{}",
	                                .since_ms = w->since_ms,
	                                .owns = owned_by(a->cluster->nodes, w->node)};
}

static void show_counters(const struct hw_app *a, struct hw_control_nodes *out)
{
	struct hw_cluster_totals t;
	hw_app_cluster_totals(a, &t);
	out->takeovers_clean = t.takeovers_clean;
	out->takeovers_unclean = t.takeovers_unclean;
	out->claims = t.claims;
	out->releases = t.releases;
	out->evictions = t.evictions;
	out->fenced_redis = t.fenced_redis;
	out->fenced_broker = t.fenced_broker;
	out->takeover_s = t.takeover_s_last;
	out->peer_messages = hw_monitor_peer_messages(a->monitor);
}

_Static_assert(HW_CONTROL_NODES_MAX >= HW_MEMBERS_MAX + HW_CLUSTER_LOST_MAX, "each node that is seen is shown");

void hw_app_show_nodes(const struct hw_app *a, struct hw_control_nodes *out)
{
	const struct hw_app_cluster *c = a->cluster;
	struct hw_now now = hw_app_now();
	*out = (struct hw_control_nodes){.mode = mode_of(a),
	                                 .name = a->start->cluster_name,
	                                 .lease_ms = a->start->cluster_lease_ms,
	                                 .partitions = HW_PARTITIONS};
	if (!c)
		return;
	bool cut = is_cut(a, now);
	for (size_t i = 0; i < c->seen.n; i++)
		show_one(a, &out->at[out->n++], &c->seen.at[i], cut);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		out->owned += hw_nodes_owns(c->nodes, p);
	const struct hw_partitions none = unowned(c->nodes);
	out->unowned = hw_partitions_count(&none);
	out->orphans = out->unowned ? hw_partitions_count(&c->seen.orphans) : 0;
	out->member = hw_nodes_is_member(c->nodes);
	out->lapsed = hw_nodes_lapsed(c->nodes, now);
	if (out->member && out->lapsed)
		out->as_of_ms = now.wall_ms - hw_nodes_silent_ns(c->nodes, now) / HW_NS_PER_MS;
	out->denied = hw_app_cluster_is_denied(a);
	out->denied_writes = hw_nodes_is_denied(c->nodes);
	out->refused = *c->redis.refused ? c->redis.refused : NULL;
	out->doubted = hw_app_cluster_voices(a, &out->confirm, &out->sentinels);
	out->stream_lag_ms = c->standby.is ? 0 : hw_app_cluster_lag_ms(a, now);
	show_counters(a, out);
}

const char *hw_app_cluster_owner(const struct hw_app *a, const struct hw_device *d)
{
	if (!a->cluster)
		return NULL;
	struct hw_id id = hw_device_id(d);
	const struct hw_record *r = hw_nodes_record(a->cluster->nodes, hw_partition_of(id.text, id.len));
	return r->token.epoch && !r->released ? r->token.node : NULL;
}
