/* SPDX-License-Identifier: MIT */
/* See cluster_peers.h. Cost: a presence is parsed and compared for all partitions; nodes speak when claims change. */
#include "cluster_peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_priv.h"
#include "mqtt/mqtt.h"
#include "peers.h"

#define EARLY_MAX 64 /* as many as may be known: HW_MEMBERS_MAX, and HW_FORMER_MAX that were members */

static struct hw_cluster_peers *peers_of(const struct hw_app *a)
{
	return &a->cluster->broker.peers;
}

/* --- before it is subscribed ----------------------------------------------------- */

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

/* Of one node the last word counts. Without room for it all is read again. */
static void keep(struct hw_app *a, const char *node, const uint64_t claims[HW_PARTITIONS])
{
	struct hw_cluster_early *e = early_of(peers_of(a), node);
	if (e)
		memcpy(e->claims, claims, sizeof(e->claims));
	else
		hw_reader_reconnect(a->reader[0].reader);
}

/* What is lost by that was fenced by the broker. */
static void tell(struct hw_app *a, struct hw_now now, const char *node, const uint64_t claims[HW_PARTITIONS],
                 const struct hw_token known[HW_PARTITIONS])
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
		tell(a, now, p->early[i].node, p->early[i].claims, NULL);
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

void hw_app_cluster_reader(struct hw_app_reader *r, struct hw_now now, bool up)
{
	if (!r->app->cluster || r->number != 0)
		return;
	if (up) {
		begin_reading(r->app, now);
		return;
	}
	end_reading(r->app, now);
	peers_of(r->app)->retained = peers_of(r->app)->asked_for = false;
}

/* --- after messages may have been lost --------------------------------------------- */

static void ask_again(struct hw_app_reader *r, struct hw_now now)
{
	peers_of(r->app)->asked = true;
	peers_of(r->app)->since = now.mono;
	hw_reader_replay(r->reader);
}

void hw_app_cluster_lossy(struct hw_app_reader *r, struct hw_now now)
{
	if (!r->app->cluster || r->number != 0 || !r->up)
		return;
	struct hw_cluster_peers *p = peers_of(r->app);
	if (p->asked) {
		p->again = true;
		return;
	}
	end_reading(r->app, now);
	ask_again(r, now);
}

void hw_app_cluster_replayed(struct hw_app_reader *r, struct hw_now now)
{
	if (!r->app->cluster || r->number != 0 || !peers_of(r->app)->asked)
		return;
	struct hw_cluster_peers *p = peers_of(r->app);
	if (!p->again) {
		begin_reading(r->app, now);
		return;
	}
	p->again = false;
	p->n = 0;
	ask_again(r, now);
}

/* --- what is read ------------------------------------------------------------------ */

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
	tell(a, now, node, claims, NULL);
	return 0;
}

static int read_known(struct hw_app *a, struct hw_now now, const char *node, const struct hw_reader_event *ev)
{
	struct hw_token known[HW_PARTITIONS];
	uint64_t seq;
	int rc = hw_peer_known(ev->payload, ev->payload_len, a->start->cluster_name, known, &seq);
	if (rc)
		return rc;
	if (strcmp(node, a->start->node_id) == 0)
		note_own(&peers_of(a)->own_known, seq);
	tell(a, now, node, NULL, known);
	return 0;
}

/*
 * Where retained messages keep their place, none comes behind a barrier that was sent after the subscription was
 * granted: then nodes' claims are read again, and whoever is in the way is cut off, though it may have published
 * meanwhile.
 */
static void note_retained(struct hw_app_reader *r, struct hw_now now, const struct hw_reader_event *ev)
{
	struct hw_cluster_broker *b = &r->app->cluster->broker;
	bool late = b->peers.reading && b->proven;
	b->peers.retained = true;
	b->peers.early_barrier = b->barrier;
	if (!late)
		return;
	if (!b->peers.disorder_told)
		hw_log(r->app->log, HW_LOG_WARNING,
		       "the broker sends what it has retained (%.*s) behind later messages: what another node claims "
		       "may "
		       "be known too late, and a status of that node's stay in the place of this one's; use another "
		       "broker "
		       "for several nodes",
		       (int)ev->topic_len, ev->topic);
	b->peers.disorder_told = true;
	hw_app_cluster_lossy(r, now);
}

static void pass_over(struct hw_app *a, struct hw_now now, const char *node, const struct hw_reader_event *ev)
{
	struct hw_cluster_peers *p = peers_of(a);
	if (ev->payload_len == 0)
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

void hw_app_cluster_peers_turn(struct hw_app *a, struct hw_now now)
{
	if (hw_nodes_rereads(a->cluster->nodes))
		hw_app_cluster_lossy(&a->reader[0], now);
}

bool hw_app_cluster_message(struct hw_app_reader *r, struct hw_now now, const struct hw_reader_event *ev)
{
	char node[HW_NODE_ID_MAX + 1];
	struct hw_app *a = r->app;
	enum hw_peer_topic topic = a->cluster ? hw_peer_topic(ev->topic, ev->topic_len, node) : HW_PEER_NONE;
	if (topic == HW_PEER_NONE)
		return false;
	if (r->number != 0) /* it matches a filter for heartbeats, too */
		return true;
	if (ev->retained)
		note_retained(r, now, ev);
	if (!hw_nodes_knows(a->cluster->nodes, node)) {
		pass_over(a, now, node, ev);
		return true;
	}
	int rc = ev->truncated             ? -EMSGSIZE
	         : topic == HW_PEER_STATUS ? read_status(a, now, node, ev)
	                                   : read_known(a, now, node, ev);
	if (rc)
		hw_log_limited(a->log, HW_LIMIT_PEER, HW_LOG_WARNING,
		               "what node '%s' says of itself on %.*s cannot be read, and is passed over", node,
		               (int)ev->topic_len, ev->topic);
	return true;
}

void hw_app_cluster_peers_free(struct hw_app *a)
{
	free(peers_of(a)->early);
}
