/* SPDX-License-Identifier: MIT */
/*
 * See cluster_broker.h. Two things are asked for beyond what src/nodes does itself. No proof is complete while
 * reader 0 may have missed a presence: after a blindness that may have lost messages they are read anew.
 * And what we say ourselves must have come back before the barrier behind it: a right that is missing would otherwise
 * look like a fence.
 */
#include "cluster_broker.h"

#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"
#include "nodes/claims.h"
#include "peers.h"

#define SAY_AGAIN_MS 5000 /* what was refused */
/* A node that stands by is ready while a barrier of the last four fifths of a lease came back. If the broker stands
 * still for all nodes, no node is ready any more by the time that the owner gives the fleet up after a lease. */
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
	hw_publisher_barrier(a->barriers.publisher, a->run_mark, HW_CLUSTER_BARRIER + ++b->barrier);
	hw_nodes_barrier_sent(a->cluster->nodes, now, b->barrier);
	if (b->out)
		return;
	b->out = b->barrier;
	b->sent = now.mono;
}

void hw_app_cluster_barriers_up(struct hw_app *a, struct hw_now now)
{
	if (a->cluster && broker_of(a)->barrier > broker_of(a)->back_told)
		send_barrier(a, now);
}

void hw_app_cluster_say(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o)
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

/* Refused, it is said again: the right may be given meanwhile. */
bool hw_app_cluster_presence_due(const struct hw_app *a, struct hw_now now)
{
	if (!a->cluster)
		return false;
	const struct hw_cluster_broker *b = broker_of(a);
	return b->due || (b->refused_ms && now.mono.ns / HW_NS_PER_MS - b->refused_ms > SAY_AGAIN_MS);
}

bool hw_app_cluster_say_known(struct hw_app *a, uint64_t seq, uint64_t *token)
{
	*token = 0;
	if (!a->cluster)
		return true;
	struct hw_cluster_broker *b = broker_of(a);
	uint64_t serial = b->due ? b->due : b->refused_ms ? b->serial : 0;
	if (!serial)
		return true;
	*token = HW_CLUSTER_TOKEN | (serial & SERIAL);
	if (!hw_nodes_recalled(a->cluster->nodes))
		return true;
	char topic[sizeof("heartwheel//known") + HW_NODE_ID_MAX], text[HW_PEER_KNOWN_MAX];
	struct hw_token known[HW_PARTITIONS];
	hw_nodes_known(a->cluster->nodes, known);
	snprintf(topic, sizeof(topic), "heartwheel/%s/known", a->start->node_id);
	int len = hw_peer_print_known(a->start->cluster_name, a->start->node_id, seq, known, text, sizeof(text));
	const struct hw_publication what = {.topic = topic,
	                                    .payload = text,
	                                    .len = len > 0 ? (size_t)len : 0,
	                                    .retain = true,
	                                    .qos = 1,
	                                    .token = HW_CLUSTER_TOKEN | KNOWN | (serial & SERIAL),
	                                    .subject = HW_CLUSTER_TOKEN | KNOWN};
	return len > 0 && hw_publisher_room(a->publisher) > 1 && hw_publisher_publish(a->publisher, &what);
}

void hw_app_cluster_said(struct hw_app *a, uint64_t seq, uint64_t token)
{
	if (!token)
		return;
	struct hw_cluster_broker *b = broker_of(a);
	bool whole = hw_nodes_recalled(a->cluster->nodes); /* with what is known */
	b->serial = token & SERIAL;
	b->said[b->serial % HW_CLUSTER_SAID].serial = b->serial;
	b->said[b->serial % HW_CLUSTER_SAID].seq = whole ? seq : 0;
	b->acked_known = whole ? b->acked_known : b->serial;
	b->due = 0;
	b->refused_ms = 0;
}

static const char *state_of(const struct hw_app *a, bool online)
{
	if (!online)
		return "gone";
	if (a->stopping)
		return "leaving";
	if (!hw_nodes_is_member(a->cluster->nodes))
		return "joining";
	return a->fleet_blind && !hw_app_stands_by(a) ? "blind" : "ready";
}

int hw_app_cluster_presence(const struct hw_app *a, bool online, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (!a->cluster)
		return 0;
	char name[512], claims[HW_CLAIMS_TEXT] = "";
	if (hw_json_quote(a->start->cluster_name, strlen(a->start->cluster_name), name, sizeof(name)) >= sizeof(name))
		return -1;
	if (online)
		hw_claims_text(hw_nodes_claims(a->cluster->nodes), claims);
	int n = snprintf(buf, cap, ",\"cluster\":%s,\"state\":\"%s\",\"claims\":\"%s\"", name, state_of(a, online),
	                 claims);
	return n > 0 && (size_t)n < cap ? n : -1;
}

/* --- answers ----------------------------------------------------------------------- */

static void acked(struct hw_app *a, struct hw_now now, uint64_t token)
{
	struct hw_cluster_broker *b = broker_of(a);
	uint64_t *which = token & KNOWN ? &b->acked_known : &b->acked_status;
	if ((token & SERIAL) > *which)
		*which = token & SERIAL;
	uint64_t both = b->acked_known < b->acked_status ? b->acked_known : b->acked_status;
	if (both <= b->acked)
		return;
	b->acked = both;
	b->refused_told = false;
	if (b->said[both % HW_CLUSTER_SAID].serial == both)
		b->acked_seq = b->said[both % HW_CLUSTER_SAID].seq;
	hw_nodes_acked(a->cluster->nodes, now, both);
}

void hw_app_cluster_answered(struct hw_app *a, struct hw_now now, const struct hw_publisher_event *ev)
{
	if (!a->cluster)
		return;
	struct hw_cluster_broker *b = broker_of(a);
	if (ev->kind == HW_PUBLISHER_ACKED) {
		acked(a, now, ev->token);
		return;
	}
	b->refused_ms = now.mono.ns / HW_NS_PER_MS;
	if (!b->refused_told)
		hw_log(a->log, HW_LOG_ERROR,
		       "the broker refused what this node says of itself on heartwheel/%s/%s: %s; nothing is published "
		       "for the devices it owns: allow %.64s to write heartwheel/+/status and heartwheel/+/known",
		       a->start->node_id, ev->token & KNOWN ? "known" : "status",
		       ev->text[0] ? ev->text : "it closes the connection on it", user_of(a));
	b->refused_told = true;
}

/* What was acknowledged before the barrier was sent is read before it, or never is. */
static bool own_is_read(const struct hw_cluster_broker *b)
{
	return b->peers.own_status >= b->barrier_seq && b->peers.own_known >= b->barrier_seq;
}

/* A right is missing, or the broker has lost what was retained. It is said, and asked for, once more. */
static void own_is_missing(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	const char *what = b->peers.own_status >= b->barrier_seq ? "known" : "status";
	if (!b->unread_told)
		hw_log(a->log, HW_LOG_ERROR,
		       "what this node says of itself on heartwheel/%s/%s does not come back; nothing is published for "
		       "the devices it owns: allow %.64s to write and to read heartwheel/+/%s",
		       a->start->node_id, what, user_of(a), what);
	b->unread_told = true;
	if (!b->due)
		b->due = b->serial;
	hw_app_cluster_lossy(&a->reader[0], now);
}

/*
 * Nothing that is retained has come in this connection, though our own words are: perhaps they were not there yet when
 * reader 0 subscribed, so it asks once more. A broker that never sends them cannot tell a node what its peers claim.
 */
static void none_is_retained(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	bool asked = b->peers.asked_for;
	if (asked && now.mono.ns - b->peers.since.ns < SAY_AGAIN_MS * HW_NS_PER_MS)
		return;
	if (asked && !b->unretained_told)
		hw_log(a->log, HW_LOG_ERROR,
		       "the broker sends no retained messages to who subscribes to heartwheel/+/status, so that nodes "
		       "do "
		       "not learn what others claim: nothing is published for the devices that this node owns, and "
		       "only Redis has their states; use another broker for several nodes, or [cluster] mode = off");
	b->unretained_told |= asked;
	b->peers.asked_for = true;
	hw_app_cluster_lossy(&a->reader[0], now);
}

/*
 * Whether reader 0 may have missed a presence since what is retained was asked for: anything but a lost link has
 * hindered the monitor then, and it is not known yet whether messages were lost. A link that was lost has its own
 * begin.
 */
static bool is_doubtful(const struct hw_app *a, bool *lasts)
{
	const struct hw_blind *blind = hw_monitor_blind(a->monitor);
	bool ended = false;
	*lasts = false;
	for (unsigned c = HW_CAUSE_LINK + 1; c < HW_CAUSE_DEAF; c++) {
		*lasts |= blind->active >> c & 1;
		ended |= blind->cause_since[c].ns > broker_of(a)->peers.since.ns;
	}
	return *lasts || (ended && a->fleet_blind);
}

static uint64_t back_on_all(const struct hw_app *a)
{
	const struct hw_cluster_broker *b = broker_of(a);
	uint64_t least = b->back[0];
	for (unsigned i = 1; i < a->n_readers; i++)
		least = b->back[i] < least ? b->back[i] : least;
	return least;
}

static bool are_links_up(const struct hw_app *a)
{
	for (unsigned i = 0; i < a->n_readers; i++)
		if (!a->reader[i].up)
			return false;
	return a->publisher_up && a->barriers.up;
}

/* One barrier is out at a time. If it is lost, the next one goes out once this node is not ready any more. */
bool hw_app_cluster_broker_answers(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	int64_t lease_ns = a->start->cluster_lease_ms * HW_NS_PER_MS, bound_ns = lease_ns * HEARD_LEASE_FIFTHS / 5;
	if (!are_links_up(a)) {
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

/* A barrier by which nothing is proven yet, but that our own words of an earlier run would have come before, needs none
 * of what is asked of the others: a broker may have nothing to retain yet. */
static void tell_back(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_broker *b = broker_of(a);
	uint64_t least = back_on_all(a);
	bool lasts, recalled = hw_nodes_recalled(a->cluster->nodes);
	if (!b->peers.reading || least <= b->back_told)
		return;
	if (is_doubtful(a, &lasts)) {
		if (!lasts)
			hw_app_cluster_lossy(&a->reader[0], now);
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
	b->back_told = least;
	if (recalled) {
		b->proven = true;
		b->unread_told = b->unretained_told = false;
	}
	hw_nodes_barrier_back(a->cluster->nodes, now, least);
}

void hw_app_cluster_back(struct hw_app_reader *r, struct hw_now now, uint64_t number)
{
	struct hw_app *a = r->app;
	if (!a->cluster || number <= broker_of(a)->back[r->number])
		return;
	struct hw_cluster_broker *b = broker_of(a);
	b->back[r->number] = number;
	if (b->out && back_on_all(a) >= b->out) {
		b->heard = b->sent;
		b->out = 0;
	}
	tell_back(a, now);
}

void hw_app_cluster_sees(struct hw_app *a, struct hw_now now, bool lossy)
{
	if (!a->cluster)
		return;
	if (lossy) {
		hw_app_cluster_lossy(&a->reader[0], now);
		return;
	}
	broker_of(a)->peers.since = now.mono;
	tell_back(a, now);
}

/* --- the gate ---------------------------------------------------------------------- */

void hw_app_cluster_open(struct hw_app *a)
{
	const struct hw_partitions passes = hw_nodes_publishing(a->cluster->nodes);
	struct hw_cluster_broker *b = broker_of(a);
	if (memcmp(&passes, &b->passes, sizeof(passes)) == 0)
		return;
	b->passes = passes;
	hw_retained_retry(&a->status);
	hw_retained_retry(&a->discovery);
}

bool hw_app_may_publish(const struct hw_app *a, const struct hw_device *d)
{
	return !a->cluster || hw_nodes_publishes(a->cluster->nodes, hw_device_partition(d));
}
