/* SPDX-License-Identifier: MIT */
/* See cluster_peers.h. Cost: each presence is parsed, and its claims are compared with the node's earlier claims,
 * partition by partition. A node publishes a presence when its claims change. */
#include "cluster_peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/broker/broker.h"
#include "mqtt/mqtt.h"
#include "peers.h"

#define EARLY_MAX 64 /* the most nodes that can be known: HW_MEMBERS_MAX members and HW_FORMER_MAX former ones */

static struct hw_cluster_peers *peers_of(const struct hw_app *a)
{
	return &a->cluster->broker.peers;
}

/* --- before reader 0 is subscribed ----------------------------------------------- */

static struct hw_cluster_early *early_of(struct hw_cluster_peers *p, const char *node)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->early[i].node, node) == 0)
			return &p->early[i];
	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 8;
		struct hw_cluster_early *grown = cap <= EARLY_MAX ? reallocarray(p->early, cap, sizeof(*grown)) : NULL;
		if (!grown)
			return NULL;
		p->early = grown;
		p->cap = cap;
	}
	struct hw_cluster_early *e = &p->early[p->n++];
	snprintf(e->node, sizeof(e->node), "%s", node);
	return e;
}

/* Keeps a node's last presence. Without room for it, reader 0 reconnects and reads all presences again. */
static void keep(struct hw_app *a, const char *node, const uint64_t claims[HW_PARTITIONS])
{
	struct hw_cluster_early *e = early_of(peers_of(a), node);
	if (e)
		memcpy(e->claims, claims, sizeof(e->claims));
	else
		hw_app_reread(a);
}

/* Passes a presence to src/nodes. Partitions that this node loses by it are counted as fenced at the broker. */
static void report(struct hw_app *a, struct hw_now now, const char *node, const uint64_t claims[HW_PARTITIONS],
                   const struct hw_fencing_token known[HW_PARTITIONS])
{
	const struct hw_nodes_stats *s = hw_nodes_stats(a->cluster->nodes);
	uint64_t lost = s->lost, impossible = s->impossible;
	hw_nodes_presence(a->cluster->nodes, now, node, claims, known);
	hw_monitor_count_refused(a->monitor, HW_REFUSED_EPOCH, s->impossible - impossible);
	a->cluster->seen.fenced_broker += s->lost - lost;
}

static void begin_reading(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_peers *p = peers_of(a);
	p->reading = true;
	p->asked = p->again = a->cluster->broker.proven = false;
	hw_nodes_reader(a->cluster->nodes, now, true);
	for (size_t i = 0; i < p->n; i++)
		report(a, now, p->early[i].node, p->early[i].claims, NULL);
	p->n = 0;
}

static void end_reading(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_peers *p = peers_of(a);
	p->reading = p->asked = p->again = false;
	p->n = 0;
	p->since = now.mono;
	hw_nodes_reader(a->cluster->nodes, now, false);
}

void hw_app_cluster_reader(struct hw_app *a, unsigned reader, struct hw_now now, bool up)
{
	if (!a->cluster || reader != 0)
		return;
	if (up) {
		begin_reading(a, now);
		return;
	}
	end_reading(a, now);
	peers_of(a)->retained = peers_of(a)->asked_for = false;
}

/* --- after messages may have been lost --------------------------------------------- */

static void ask_again(struct hw_app *a, struct hw_now now)
{
	peers_of(a)->asked = true;
	peers_of(a)->since = now.mono;
	hw_app_replay(a);
}

void hw_app_cluster_lossy(struct hw_app *a, struct hw_now now)
{
	if (!a->cluster || !hw_app_reader_is_up(a, 0))
		return;
	struct hw_cluster_peers *p = peers_of(a);
	if (p->asked) {
		p->again = true;
		return;
	}
	end_reading(a, now);
	ask_again(a, now);
}

void hw_app_cluster_replayed(struct hw_app *a, struct hw_now now)
{
	if (!a->cluster || !peers_of(a)->asked)
		return;
	struct hw_cluster_peers *p = peers_of(a);
	if (!p->again) {
		begin_reading(a, now);
		return;
	}
	p->again = false;
	p->n = 0;
	ask_again(a, now);
}

/* --- reading presences ------------------------------------------------------------- */

static void note_own(uint64_t *greatest, uint64_t seq)
{
	if (seq > *greatest)
		*greatest = seq;
}

static int read_status(struct hw_app *a, struct hw_now now, const char *node, const struct hw_reader_event *ev)
{
	uint64_t claims[HW_PARTITIONS], seq;
	int rc = hw_peer_claims(ev->payload, ev->payload_len, a->start->cluster_name, claims, &seq);
	if (rc)
		return rc;
	if (strcmp(node, a->start->node_id) == 0)
		note_own(&peers_of(a)->own_status, seq);
	hw_app_cluster_evict_heard(a, node);
	if (!peers_of(a)->reading)
		keep(a, node, claims);
	report(a, now, node, claims, NULL);
	return 0;
}

static int read_known(struct hw_app *a, struct hw_now now, const char *node, const struct hw_reader_event *ev)
{
	struct hw_fencing_token known[HW_PARTITIONS];
	uint64_t seq;
	int rc = hw_peer_known(ev->payload, ev->payload_len, a->start->cluster_name, known, &seq);
	if (rc)
		return rc;
	if (strcmp(node, a->start->node_id) == 0)
		note_own(&peers_of(a)->own_known, seq);
	report(a, now, node, NULL, known);
	return 0;
}

/*
 * Handles a presence with the retain flag. Most brokers send retained messages before they send back a barrier that was
 * sent when the subscription was granted. If a retained presence arrives after such a barrier, this node reads all
 * claims again, and evicts nodes with older claims, although it may already have published. If a filter of the groups
 * also delivers new messages with the retain flag, the flag does not show that a message is old.
 */
static void note_retained(struct hw_app *a, struct hw_now now, const struct hw_reader_event *ev)
{
	struct hw_cluster_broker *b = &a->cluster->broker;
	bool late = b->peers.reading && b->proven;
	b->peers.retained = true;
	b->peers.early_barrier = b->barrier;
	if (!late || hw_app_nodes_are_flagged(a))
		return;
	if (!b->peers.disorder_reported)
		hw_log(a->log, HW_LOG_WARNING,
		       "the broker sends retained messages (%.*s) too late: newer messages arrive before them; this "
		       "node may learn another node's claim too late, and an old status may replace a new one; use "
		       "another broker for several nodes",
		       (int)ev->topic_len, ev->topic);
	b->peers.disorder_reported = true;
	hw_app_cluster_lossy(a, now);
}

/* Ignores a message of a node that is no member. If the node is a monitor of another fleet at the same broker,
 * nothing is logged. */
static void pass_over(struct hw_app *a, struct hw_now now, const char *node, const struct hw_reader_event *ev)
{
	struct hw_cluster_peers *p = peers_of(a);
	if (ev->payload_len == 0 || hw_peer_is_of_another(ev->payload, ev->payload_len, a->start->cluster_name))
		return;
	snprintf(p->stranger, sizeof(p->stranger), "%s", node);
	hw_monitor_count_refused(a->monitor, HW_REFUSED_STRANGER, 1);
	hw_nodes_passed_over(a->cluster->nodes, now);
}

const char *hw_app_cluster_stranger(const struct hw_app *a)
{
	const char *node = a->cluster ? peers_of(a)->stranger : "";
	return *node && !hw_nodes_knows(a->cluster->nodes, node) ? node : NULL;
}

bool hw_app_cluster_knows(const struct hw_app *a, const char *node)
{
	return a->cluster && hw_nodes_knows(a->cluster->nodes, node);
}

void hw_app_cluster_peers_turn(struct hw_app *a, struct hw_now now)
{
	if (hw_nodes_rereads(a->cluster->nodes))
		hw_app_cluster_lossy(a, now);
}

bool hw_app_cluster_message(struct hw_app *a, unsigned reader, struct hw_now now, const struct hw_reader_event *ev)
{
	char node[HW_NODE_ID_MAX + 1];
	enum hw_peer_topic topic = a->cluster ? hw_peer_topic(ev->topic, ev->topic_len, node) : HW_PEER_NONE;
	if (topic == HW_PEER_NONE)
		return false;
	if (reader != 0) /* a group's filter also matches the topic */
		return true;
	if (ev->retained)
		note_retained(a, now, ev);
	if (!hw_nodes_knows(a->cluster->nodes, node)) {
		pass_over(a, now, node, ev);
		return true;
	}
	int rc = ev->truncated             ? -EMSGSIZE
	         : topic == HW_PEER_STATUS ? read_status(a, now, node, ev)
	                                   : read_known(a, now, node, ev);
	if (rc)
		hw_log_limited(a->log, HW_LIMIT_PEER, HW_LOG_WARNING,
		               "the message of node '%s' on %.*s is malformed and was ignored", node,
		               (int)ev->topic_len, ev->topic);
	return true;
}

void hw_app_cluster_peers_free(struct hw_app *a)
{
	free(peers_of(a)->early);
}
