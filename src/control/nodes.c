/* SPDX-License-Identifier: MIT */
/*
 * Several nodes: /v1/nodes, the member `cluster` of /v1/status, the metrics, and readiness. A node's own data come from
 * Redis, where other programs can write. So they are parsed, and only members of the expected type are shown. Cost:
 * parsing a few hundred bytes for each node.
 */
#include "control/nodes.h"

#include <cjson/cJSON.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/parts.h"
#include "heartwheel/print.h"
#include "http/json.h"
#include "http/metrics.h"

static const char *const states[] = {"joining", "ready", "blind", "leaving", "lapsed", "lost"};
#define N_STATES (sizeof(states) / sizeof(*states))

static const char *const compared[] = {"name", "mode", "protocol", "version", "config", NULL};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct hw_control_node *)a)->node, ((const struct hw_control_node *)b)->node);
}

/* Every node lists the nodes in the same order. */
bool hw_nodes_of(const struct hw_control *c, struct hw_control_nodes *out)
{
	if (!c->ops->nodes)
		return false;
	*out = (struct hw_control_nodes){0};
	c->ops->nodes(c->arg, out);
	qsort(out->at, out->n, sizeof(out->at[0]), by_name);
	return true;
}

const struct hw_control_node *hw_control_nodes_self(const struct hw_control_nodes *n)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->at[i].self)
			return &n->at[i];
	return NULL;
}

static unsigned count(const struct hw_control_nodes *n, const char *state)
{
	unsigned found = 0;
	for (size_t i = 0; i < n->n; i++)
		found += strcmp(n->at[i].state, state) == 0;
	return found;
}

/* --- data of a node */

/* Whether two nodes have different values of a member. If one of them lacks the member, returns false. Only texts and
 * numbers are compared, because the time of cJSON_Compare() doubles with each level of nested objects. */
static bool differ(const cJSON *ours, const cJSON *theirs, const char *key)
{
	const cJSON *a = cJSON_GetObjectItemCaseSensitive(ours, key);
	const cJSON *b = cJSON_GetObjectItemCaseSensitive(theirs, key);
	if (!a || !b)
		return false;
	if (cJSON_IsString(a) && cJSON_IsString(b))
		return strcmp(a->valuestring, b->valuestring) != 0;
	return !cJSON_IsNumber(a) || !cJSON_IsNumber(b) || a->valuedouble < b->valuedouble ||
	       a->valuedouble > b->valuedouble;
}

static unsigned differences(const cJSON *ours, const cJSON *theirs)
{
	unsigned bits = 0;
	for (unsigned i = 0; compared[i]; i++)
		bits |= (unsigned)differ(ours, theirs, compared[i]) << i;
	return bits;
}

unsigned hw_control_differs(const char *ours, const char *theirs)
{
	cJSON *a = cJSON_Parse(ours ? ours : ""), *b = cJSON_Parse(theirs ? theirs : "");
	unsigned bits = differences(a, b);
	cJSON_Delete(a);
	cJSON_Delete(b);
	return bits;
}

const char *hw_control_difference(unsigned i)
{
	return compared[i];
}

static void write_differences(struct hw_json *j, unsigned bits)
{
	hw_json_open_member(j, "differs", '[');
	for (unsigned i = 0; compared[i]; i++)
		if (bits & 1u << i)
			hw_json_item(j, compared[i]);
	hw_json_close(j, ']');
}

static void write_presence(struct hw_json *j, const cJSON *presence)
{
	static const char *const texts[] = {"mode", "name", "version", "blind_cause", "config", "listen", "url"};
	static const char *const counts[] = {"devices", "online", "offline", "owed", "unjudged"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		hw_json_text(j, texts[i], cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(presence, texts[i])));
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(presence, counts[i]);
		if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 9e15)
			hw_json_int(j, counts[i], (int64_t)item->valuedouble);
		else
			hw_json_null(j, counts[i]);
	}
}

static void write_unjudged_groups(struct hw_json *j, const cJSON *presence)
{
	const cJSON *name;
	hw_json_open_member(j, "unjudged_groups", '[');
	cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(presence, "unjudged_groups"))
	{
		if (cJSON_IsString(name))
			hw_json_item(j, name->valuestring);
	}
	hw_json_close(j, ']');
}

/* --- the API */

static void write_age(struct hw_json *j, const struct hw_control_nodes *n)
{
	hw_json_bool(j, "lapsed", n->lapsed);
	if (n->as_of_ms)
		hw_json_int(j, "as_of_ms", n->as_of_ms);
	else
		hw_json_null(j, "as_of_ms");
}

static void write_node(struct hw_json *j, const struct hw_control_node *node, const cJSON *ours)
{
	cJSON *presence = cJSON_Parse(node->json ? node->json : "");
	hw_json_open(j, '{');
	hw_json_text(j, "node", node->node);
	hw_json_bool(j, "self", node->self);
	hw_json_text(j, "state", node->state);
	hw_json_int(j, "since_ms", node->since_ms);
	hw_json_uint(j, "owns", node->owns);
	write_presence(j, presence);
	write_unjudged_groups(j, presence);
	write_differences(j, differences(ours, presence));
	hw_json_close(j, '}');
	cJSON_Delete(presence);
}

static void write_nodes(struct hw_json *j, const struct hw_control_nodes *n)
{
	const struct hw_control_node *self = hw_control_nodes_self(n);
	cJSON *ours = cJSON_Parse(self && self->json ? self->json : "");
	hw_json_open_member(j, "nodes", '[');
	for (size_t i = 0; i < n->n; i++)
		write_node(j, &n->at[i], ours);
	hw_json_close(j, ']');
	cJSON_Delete(ours);
}

void hw_write_nodes(struct hw_json *j, const struct hw_control *c)
{
	struct hw_control_nodes n;
	if (hw_nodes_of(c, &n)) {
		hw_json_text(j, "mode", n.mode);
		hw_json_text(j, "name", n.name);
		hw_json_int(j, "lease_ms", n.lease_ms);
		hw_json_bool(j, "member", n.member);
		write_age(j, &n);
		hw_json_uint(j, "sentinels", n.sentinels);
		hw_json_uint(j, "sentinels_confirm", n.confirm);
		hw_json_uint(j, "partitions", n.partitions);
		hw_json_uint(j, "owned", n.owned);
		hw_json_uint(j, "unowned", n.unowned);
		hw_json_int(j, "stream_lag_ms", n.stream_lag_ms);
	} else {
		n = (struct hw_control_nodes){0};
		hw_json_text(j, "mode", "off");
	}
	write_nodes(j, &n);
	hw_json_int(j, "now_ms", c->ops->now(c->arg).wall_ms);
}

void hw_serve_nodes(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	(void)rest;
	if (!body)
		return;
	hw_write_nodes(&j, arg);
	hw_answer_end(req, &j, body);
}

static const char *own_name(const struct hw_control *c)
{
	struct hw_control_status s = {0};
	c->ops->status(c->arg, &s);
	return s.node;
}

bool hw_stands_by(const struct hw_control *c)
{
	return c->ops->standby && c->ops->standby(c->arg);
}

static const char *state_of(const struct hw_control_nodes *n, const char *node)
{
	for (size_t i = 0; i < n->n; i++)
		if (strcmp(n->at[i].node, node) == 0)
			return n->at[i].state;
	return NULL;
}

/* Called if one node owns the whole fleet. Writes whether another node is the owner, with its name and state. */
static void write_standby(struct hw_json *j, const struct hw_control *c, const struct hw_control_nodes *n)
{
	if (!c->ops->standby)
		return;
	const char *other = c->ops->standby(c->arg), *owner = other ? (*other ? other : NULL) : own_name(c);
	hw_json_bool(j, "standing_by", other != NULL);
	hw_json_text(j, "owner", owner);
	hw_json_text(j, "owner_state", owner ? state_of(n, owner) : NULL);
}

void hw_write_cluster(struct hw_json *j, const struct hw_control *c)
{
	struct hw_control_nodes n;
	if (!hw_nodes_of(c, &n))
		return;
	const struct hw_control_node *self = hw_control_nodes_self(&n);
	unsigned lost = count(&n, "lost");
	hw_json_open_member(j, "cluster", '{');
	hw_json_text(j, "mode", n.mode);
	hw_json_text(j, "name", n.name);
	hw_json_bool(j, "member", n.member);
	write_age(j, &n);
	hw_json_text(j, "state", self ? self->state : NULL);
	hw_json_uint(j, "nodes", n.n - lost);
	hw_json_uint(j, "ready", count(&n, "ready"));
	hw_json_uint(j, "lost", lost);
	hw_json_uint(j, "partitions", n.partitions);
	hw_json_uint(j, "owned", n.owned);
	hw_json_uint(j, "unowned", n.unowned);
	write_standby(j, c, &n);
	hw_json_close(j, '}');
}

/* Finds the first member that cannot watch one fleet together with this node. Sets *what to the first reason why
 * not. */
static const struct hw_control_node *stranger(const struct hw_control_nodes *n, const char **what)
{
	const struct hw_control_node *self = hw_control_nodes_self(n);
	for (size_t i = 0; self && i < n->n; i++) {
		unsigned bits = n->at[i].lost ? 0 : hw_control_differs(self->json, n->at[i].json) & HW_NODES_APART;
		if (!bits)
			continue;
		*what = compared[(bits & HW_DIFFERS_NAME) ? 0 : (bits & HW_DIFFERS_MODE) ? 1 : 2];
		return &n->at[i];
	}
	return NULL;
}

static size_t standby_trouble(const struct hw_control *c, const struct hw_control_nodes *nodes, char *why, size_t n,
                              size_t cap)
{
	const struct hw_control_node *self = hw_control_nodes_self(nodes);
	const char *owner = c->ops->standby ? c->ops->standby(c->arg) : NULL;
	if (!owner)
		return n;
	const char *state = state_of(nodes, owner), *sep = n ? "; " : "";
	if (*owner)
		n += hw_print(why + n, cap - n, "%sstanding by: '%.64s' owns the fleet%s", sep, owner,
		              state && strcmp(state, "blind") == 0 ? " but receives no heartbeats" : "");
	else
		n += hw_print(why + n, cap - n, "%sstanding by: no node is known to own the fleet", sep);
	if (self && strcmp(self->state, "blind") == 0)
		n += hw_print(why + n, cap - n,
		              "; no barrier comes back from the broker, so this node cannot take over");
	return n;
}

bool hw_nodes_is_lapsed(const struct hw_control_nodes *nodes)
{
	const struct hw_control_node *self = hw_control_nodes_self(nodes);
	return self && strcmp(self->state, "lapsed") == 0 && nodes->as_of_ms > 0;
}

static size_t lapse_trouble(const struct hw_control *c, const struct hw_control_nodes *nodes, char *why, size_t n,
                            size_t cap)
{
	if (!hw_nodes_is_lapsed(nodes))
		return n;
	return n + hw_print(why + n, cap - n,
	                    "%sRedis %s for %" PRId64 " s, longer than the lease: all that is shown is from then",
	                    n ? "; " : "", nodes->refused ? "refused this node's entry" : "was not reached",
	                    (c->ops->now(c->arg).wall_ms - nodes->as_of_ms) / 1000);
}

size_t hw_nodes_trouble(const struct hw_control *c, char *why, size_t n, size_t cap)
{
	struct hw_control_nodes nodes;
	const char *what;
	if (!hw_nodes_of(c, &nodes))
		return n;
	if (!nodes.member)
		n += hw_print(why + n, cap - n, "%snot a member of the nodes '%.64s'", n ? "; " : "", nodes.name);
	n = lapse_trouble(c, &nodes, why, n, cap);
	if (nodes.refused)
		n += hw_print(why + n, cap - n, "%s%.300s", n ? "; " : "", nodes.refused);
	if (nodes.denied)
		n += hw_print(why + n, cap - n, "%sRedis' ACL denies this node the right to read the event stream",
		              n ? "; " : "");
	if (nodes.denied_writes)
		n += hw_print(why + n, cap - n, "%sRedis' ACL denies this node the right to write devices",
		              n ? "; " : "");
	if (nodes.doubted)
		n += hw_print(why + n, cap - n, "%sonly %u of %u Sentinels confirm that this Redis is the master",
		              n ? "; " : "", nodes.confirm, nodes.sentinels);
	n = standby_trouble(c, &nodes, why, n, cap);
	if (nodes.member && nodes.orphans && !c->ops->standby)
		n += hw_print(why + n, cap - n, "%s%u of %u partitions have no owner", n ? "; " : "", nodes.orphans,
		              nodes.partitions);
	const struct hw_control_node *other = stranger(&nodes, &what);
	if (other)
		n += hw_print(why + n, cap - n, "%snode '%.64s' has another %s", n ? "; " : "", other->node, what);
	return n;
}

/* --- metrics */

void hw_control_nodes_metrics(struct evbuffer *b, const struct hw_control_nodes *n, bool stands_by)
{
	if (strcmp(n->mode, "standby") == 0)
		hw_metric_one(
			b, "standing_by", "gauge",
			"1 while this node stands by: another node watches the fleet, and this node knows no device.",
			stands_by);
	hw_metric_family(b, "nodes", "gauge", "Nodes as this node sees them, itself included.");
	for (size_t i = 0; i < N_STATES; i++)
		hw_metric_labelled(b, "nodes", "state", states[i], count(n, states[i]));
	hw_metric_one(b, "partitions_owned", "gauge", "Partitions of the fleet that this node owns.", n->owned);
	hw_metric_one(b, "partitions_unowned", "gauge", "Partitions of the fleet that no node owns.", n->unowned);
	hw_metric_family(b, "takeovers_total", "counter",
	                 "Partitions that this node has taken over, by whether the old owner released them with no "
	                 "write pending.");
	hw_metric_labelled(b, "takeovers_total", "kind", "clean", (double)n->takeovers_clean);
	hw_metric_labelled(b, "takeovers_total", "kind", "unclean", (double)n->takeovers_unclean);
	hw_metric_one(b, "takeover_seconds", "gauge",
	              "How long the last take-over took, from the claim until this node was authoritative.",
	              n->takeover_s);
	hw_metric_family(b, "fenced_total", "counter",
	                 "Partitions that this node lost to a newer fencing token, by where it saw the token.");
	hw_metric_labelled(b, "fenced_total", "by", "redis", (double)n->fenced_redis);
	hw_metric_labelled(b, "fenced_total", "by", "broker", (double)n->fenced_broker);
	hw_metric_one(b, "evictions_total", "counter", "Nodes that this node has disconnected from the broker.",
	              (double)n->evictions);
	hw_metric_one(b, "peer_messages_total", "counter",
	              "Statuses of other nodes that a heartbeat filter matches; they are ignored, and no fault.",
	              (double)n->peer_messages);
	hw_metric_one(b, "stream_lag_seconds", "gauge",
	              "For how long this node has not reached the end of the event stream.",
	              (double)n->stream_lag_ms / 1e3);
}
