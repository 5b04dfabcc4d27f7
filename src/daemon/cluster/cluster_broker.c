/* SPDX-License-Identifier: MIT */
/*
 * See cluster_broker.h. This file adds two conditions to those of src/nodes. First, a barrier proves nothing while
 * reader 0 may have missed a presence: after a lossy blindness, all presences are read again. Second, this node's own
 * presence must arrive before the barrier that follows the presence. Otherwise the fence would seem to work although
 * the right to read is missing.
 */
#include "cluster_broker.h"

#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/broker/broker.h"
#include "daemon/retained/retained.h"
#include "daemon/visibility/visibility.h"
#include "heartwheel/json_writer.h"
#include "nodes/claims.h"
#include "peers.h"

#define PUBLISH_AGAIN_MS 5000 /* after a refusal */
/* A node that stands by is ready if a barrier came back within the last four fifths of a lease. If the broker stands
 * still for all nodes, the owner gives up after a whole lease, and no other node is ready by then. */
#define HEARD_LEASE_FIFTHS 4
#define KNOWN              (UINT64_C(1) << 61)
#define SERIAL             (KNOWN - 1)

static struct hw_cluster_broker *broker_of(const struct hw_app *a)
{
	return &a->cluster->broker;
}

static const char *user_of(const struct hw_app *a)
{
	return a->start->mqtt.username[0] ? a->start->mqtt.username : "anonymous clients";
}

void hw_app_cluster_broker_free(struct hw_app *a)
{
	hw_app_cluster_evict_free(a);
	hw_app_cluster_peers_free(a);
}

/* --- orders ------------------------------------------------------------------------ */

static void send_barrier(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	b->barrier_seq = b->acked_seq;
	hw_app_send_barrier(a, HW_CLUSTER_BARRIER + ++b->barrier);
	hw_nodes_barrier_sent(a->cluster->nodes, now, b->barrier);
	if (b->out)
		return;
	b->out = b->barrier;
	b->sent = now.mono;
}

void hw_app_cluster_barriers_up(struct hw_app *a, struct hw_now now)
{
	if (a->cluster && broker_of(a)->barrier > broker_of(a)->back_reported)
		send_barrier(a, now);
}

void hw_app_cluster_carry_out(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o)
{
	if (o->kind == HW_NODES_PRESENCE)
		broker_of(a)->due = o->serial;
	else if (o->kind == HW_NODES_BARRIER)
		send_barrier(a, now);
	else if (o->kind == HW_NODES_EVICT)
		hw_app_cluster_evict(a, now, o->node);
}

void hw_app_cluster_session(struct hw_app *a, struct hw_now now, bool up)
{
	if (!a->cluster)
		return;
	struct hw_cluster_broker *b = broker_of(a);
	b->due = b->serial = b->acked_status = b->acked_known = b->acked = b->acked_seq = 0;
	b->refused_ms = 0;
	hw_nodes_session(a->cluster->nodes, now, up);
}

/* --- presence ---------------------------------------------------------------------- */

/* Whether a presence must be published. A refused presence is published again later, because the right may have been
 * granted meanwhile. */
bool hw_app_cluster_presence_due(const struct hw_app *a, struct hw_now now)
{
	if (!a->cluster)
		return false;
	const struct hw_cluster_broker *b = broker_of(a);
	return b->due || (b->refused_ms && now.mono.ns / HW_NS_PER_MS - b->refused_ms > PUBLISH_AGAIN_MS);
}

bool hw_app_cluster_publish_known(struct hw_app *a, uint64_t seq, uint64_t *publish_id)
{
	*publish_id = 0;
	if (!a->cluster)
		return true;
	struct hw_cluster_broker *b = broker_of(a);
	uint64_t serial = b->due ? b->due : b->refused_ms ? b->serial : 0;
	if (!serial)
		return true;
	*publish_id = HW_CLUSTER_PUBLISH_ID | (serial & SERIAL);
	if (!hw_nodes_recalled(a->cluster->nodes))
		return true;
	char topic[sizeof("heartwheel//known") + HW_NODE_ID_MAX], text[HW_PEER_KNOWN_MAX];
	struct hw_fencing_token known[HW_PARTITIONS];
	hw_nodes_known(a->cluster->nodes, known);
	snprintf(topic, sizeof(topic), "heartwheel/%s/known", a->start->node_id);
	int len = hw_peer_print_known(a->start->cluster_name, a->start->node_id, seq, known, text, sizeof(text));
	const struct hw_publication what = {.topic = topic,
	                                    .payload = text,
	                                    .len = len > 0 ? (size_t)len : 0,
	                                    .retain = true,
	                                    .qos = 1,
	                                    .publish_id = HW_CLUSTER_PUBLISH_ID | KNOWN | (serial & SERIAL),
	                                    .subject = HW_CLUSTER_PUBLISH_ID | KNOWN};
	return len > 0 && hw_publisher_room(hw_app_publisher(a)) > 1 &&
	       hw_publisher_publish(hw_app_publisher(a), &what);
}

void hw_app_cluster_published(struct hw_app *a, uint64_t seq, uint64_t publish_id)
{
	if (!publish_id)
		return;
	struct hw_cluster_broker *b = broker_of(a);
	bool whole = hw_nodes_recalled(a->cluster->nodes); /* with the greatest fencing tokens known */
	b->serial = publish_id & SERIAL;
	b->published[b->serial % HW_CLUSTER_PUBLISHED].serial = b->serial;
	b->published[b->serial % HW_CLUSTER_PUBLISHED].seq = whole ? seq : 0;
	b->acked_known = whole ? b->acked_known : b->serial;
	b->due = 0;
	b->refused_ms = 0;
}

static const char *state_of(const struct hw_app *a, bool online)
{
	if (!online)
		return "gone";
	if (a->life.stopping)
		return "leaving";
	if (!hw_nodes_is_member(a->cluster->nodes))
		return "joining";
	return hw_app_fleet_is_blind(a) && !hw_app_stands_by(a) ? "blind" : "ready";
}

void hw_app_cluster_presence(const struct hw_app *a, bool online, struct hw_json *j)
{
	char claims[HW_CLAIMS_TEXT] = "";
	if (!a->cluster)
		return;
	if (online)
		hw_claims_text(hw_nodes_claims(a->cluster->nodes), claims);
	hw_json_text(j, "cluster", a->start->cluster_name);
	hw_json_text(j, "state", state_of(a, online));
	hw_json_text(j, "claims", claims);
}

/* --- answers ----------------------------------------------------------------------- */

static void acked(struct hw_app *a, struct hw_now now, uint64_t publish_id)
{
	struct hw_cluster_broker *b = broker_of(a);
	uint64_t *which = publish_id & KNOWN ? &b->acked_known : &b->acked_status;
	if ((publish_id & SERIAL) > *which)
		*which = publish_id & SERIAL;
	uint64_t both = b->acked_known < b->acked_status ? b->acked_known : b->acked_status;
	if (both <= b->acked)
		return;
	b->acked = both;
	b->refused_reported = false;
	if (b->published[both % HW_CLUSTER_PUBLISHED].serial == both)
		b->acked_seq = b->published[both % HW_CLUSTER_PUBLISHED].seq;
	hw_nodes_acked(a->cluster->nodes, now, both);
}

void hw_app_cluster_answered(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev)
{
	if (!a->cluster)
		return;
	struct hw_cluster_broker *b = broker_of(a);
	if (ev->kind == HW_PUBLISHER_ACKED) {
		acked(a, now, ev->publish_id);
		return;
	}
	b->refused_ms = now.mono.ns / HW_NS_PER_MS;
	if (!b->refused_reported)
		hw_log(a->log, HW_LOG_ERROR,
		       "the broker refused this node's message on heartwheel/%s/%s: %s; this node publishes no status "
		       "of its devices until the broker takes that message: allow %.64s to write heartwheel/+/status "
		       "and heartwheel/+/known",
		       a->start->node_id, ev->publish_id & KNOWN ? "known" : "status",
		       ev->text[0] ? ev->text : "the broker closes the connection", user_of(a));
	b->refused_reported = true;
}

/* Whether this node's own presence was read before the barrier that followed it. The broker acknowledges the
 * presence before the barrier is sent. So reader 0 receives the presence before the barrier or not at all. */
static bool own_is_read(const struct hw_cluster_broker *b)
{
	return b->peers.own_status >= b->barrier_seq && b->peers.own_known >= b->barrier_seq;
}

/* Called when this node did not receive its own presence: a right is missing, or the broker has lost the retained
 * messages. Publishes the presence again, and requests the retained messages again. */
static void own_is_missing(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	const char *what = b->peers.own_status >= b->barrier_seq ? "known" : "status";
	if (!b->unread_reported)
		hw_log(a->log, HW_LOG_ERROR,
		       "this node's message on heartwheel/%s/%s does not come back; this node publishes no status of "
		       "its devices until it does: allow %.64s to write and to read heartwheel/+/%s",
		       a->start->node_id, what, user_of(a), what);
	b->unread_reported = true;
	if (!b->due)
		b->due = b->serial;
	hw_app_cluster_lossy(a, now);
}

/*
 * Called when this node's own presence has arrived on this connection, but no message with the retain flag. Perhaps the
 * broker had no retained message when reader 0 subscribed. So reader 0 requests the retained messages once more. If the
 * broker never sends retained messages, a node cannot learn the claims of its peers.
 */
static void none_is_retained(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	bool asked = b->peers.asked_for;
	if (asked && now.mono.ns - b->peers.since.ns < PUBLISH_AGAIN_MS * HW_NS_PER_MS)
		return;
	if (asked && !b->unretained_reported)
		hw_log(a->log, HW_LOG_ERROR,
		       "the broker sends no retained messages to a subscriber of heartwheel/+/status, so nodes cannot "
		       "learn the claims of other nodes; this node publishes no status of its devices, and only Redis "
		       "has their states; use another broker for several nodes, or [cluster] mode = off");
	b->unretained_reported |= asked;
	b->peers.asked_for = true;
	hw_app_cluster_lossy(a, now);
}

/* Whether reader 0 may have missed a presence since it requested the retained messages. True until it is known that no
 * blindness since the request was lossy. *lasts: such a blindness has not ended. A lost connection does not count,
 * because reader 0 subscribes again afterwards. */
static bool is_doubtful(const struct hw_app *a, bool *lasts)
{
	const struct hw_blind *blind = hw_monitor_blind(a->monitor);
	bool ended = false;
	*lasts = false;
	for (unsigned c = HW_CAUSE_LINK + 1; c < HW_CAUSE_DEAF; c++) {
		*lasts |= blind->active >> c & 1;
		ended |= blind->cause_since[c].ns > broker_of(a)->peers.since.ns;
	}
	return *lasts || (ended && hw_app_fleet_is_blind(a));
}

static uint64_t back_on_all(const struct hw_app *a)
{
	const struct hw_cluster_broker *b = broker_of(a);
	uint64_t least = b->back[0];
	for (unsigned i = 1; i < (unsigned)a->start->mqtt.readers; i++)
		least = b->back[i] < least ? b->back[i] : least;
	return least;
}

/* Sends a barrier if it is due. Returns whether a recent barrier is back. On a node that stands by, at most one
 * barrier is on its way. If that barrier is lost, the next barrier is sent only when this node is no longer ready. */
bool hw_app_cluster_broker_answers(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	int64_t lease_ns = a->start->cluster_lease_ms * HW_NS_PER_MS, bound_ns = lease_ns * HEARD_LEASE_FIFTHS / 5;
	if (!hw_app_links_are_up(a)) {
		b->out = 0;
		b->heard.ns = 0;
		return false;
	}
	if (b->out && now.mono.ns - b->sent.ns >= bound_ns)
		b->out = 0;
	if (!b->out && now.mono.ns - b->sent.ns >= lease_ns / 5)
		send_barrier(a, now);
	return b->heard.ns && now.mono.ns - b->heard.ns < bound_ns;
}

/* Reports to src/nodes which barrier is back. Before hw_nodes_recalled(), a barrier only shows that the presences of
 * earlier runs of this node have arrived. So no retained message is required, because the broker may not have one yet.
 */
static void report_back(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	uint64_t least = back_on_all(a);
	bool lasts, recalled = hw_nodes_recalled(a->cluster->nodes);
	if (!b->peers.reading || least <= b->back_reported)
		return;
	if (is_doubtful(a, &lasts)) {
		if (!lasts)
			hw_app_cluster_lossy(a, now);
		return;
	}
	if (!own_is_read(b)) {
		if (least == b->barrier)
			own_is_missing(a, now);
		return;
	}
	if (!b->peers.retained && recalled) {
		if (least == b->barrier)
			none_is_retained(a, now);
		return;
	}
	if (least <= b->peers.early_barrier) {
		if (least == b->barrier)
			send_barrier(a, now);
		return;
	}
	b->back_reported = least;
	if (recalled) {
		b->proven = true;
		b->unread_reported = b->unretained_reported = false;
	}
	hw_nodes_barrier_back(a->cluster->nodes, now, least);
}

void hw_app_cluster_back(struct hw_app *a, unsigned reader, struct hw_now now, uint64_t number)
{
	if (!a->cluster || number <= broker_of(a)->back[reader])
		return;
	struct hw_cluster_broker *b = broker_of(a);
	b->back[reader] = number;
	if (b->out && back_on_all(a) >= b->out) {
		b->heard = b->sent;
		b->out = 0;
	}
	report_back(a, now);
}

void hw_app_cluster_sees(struct hw_app *a, struct hw_now now, bool lossy)
{
	if (!a->cluster)
		return;
	if (lossy) {
		hw_app_cluster_lossy(a, now);
		return;
	}
	broker_of(a)->peers.since = now.mono;
	report_back(a, now);
}

/* --- the gate ---------------------------------------------------------------------- */

void hw_app_cluster_open(struct hw_app *a)
{
	const struct hw_partitions passes = hw_nodes_publishing(a->cluster->nodes);
	struct hw_cluster_broker *b = broker_of(a);
	if (memcmp(&passes, &b->passes, sizeof(passes)) == 0)
		return;
	b->passes = passes;
	hw_retained_retry(hw_app_status_sink(a));
	hw_retained_retry(hw_app_discovery_sink(a));
}

bool hw_app_may_publish(const struct hw_app *a, const struct hw_device *d)
{
	return !a->cluster || hw_nodes_publishes(a->cluster->nodes, hw_device_partition(d));
}
