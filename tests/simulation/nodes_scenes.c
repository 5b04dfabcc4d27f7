/* SPDX-License-Identifier: MIT */
/*
 * Scenes: troubles that are not drawn at random but planned step by step, because they would hardly ever happen by
 * chance. Each scene is made for one rule, and breaks a promise if that rule is missing. Two or three nodes share the
 * devices; then something happens to the first (FIRST) or the second of them at exactly the right moment.
 */
#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "nodes_world.h"

#define SETTLED_NS (12 * HW_NS_PER_S) /* the nodes have shared the devices by then */
#define NEVER      (INT64_MAX / 2)

enum { FIRST, SECOND, THIRD };

const char *nw_scene_name(enum nw_scene s)
{
	static const char *const names[NW_SCENES] = {"none",           "claimant dies",    "verdict lost",
	                                             "links part",     "late transition",  "deaf pause",
	                                             "newest is gone", "debts wait",       "new devices",
	                                             "namesake",       "mute cut",         "link first",
	                                             "flushed load",   "late goodbye",     "one knows",
	                                             "starved",        "late mark",        "flushed reread",
	                                             "two masters",    "moved reading",    "other groups",
	                                             "strange mark",   "changed filters",  "unknown writer",
	                                             "sink stays",     "behind the stream"};
	return names[s];
}

void nw_plan_scene(struct nw_world *w, enum nw_scene s)
{
	struct nw_plan *p = &w->plan;
	bool three = s == NW_LINKS_PART || s == NW_DEBTS_WAIT || s == NW_LATE_GOODBYE,
	     deaf = s == NW_DEAF_PAUSE || s == NW_LINK_FIRST;
	*p = (struct nw_plan){.hosts = three ? 3 : 2,
	                      .wills = s != NW_DEBTS_WAIT && s != NW_CHANGED_FILTERS,
	                      .denied = s == NW_DEBTS_WAIT,
	                      .namesake = s == NW_NAMESAKE || s == NW_STRANGE_MARK,
	                      .differs = s == NW_OTHER_GROUPS     ? NW_OTHER_FILTERS + w->seed % 2
	                                 : s == NW_UNKNOWN_WRITER ? NW_OTHER_FILTERS
	                                                          : NW_SAME_GROUPS,
	                      .lease_ms = deaf ? 5000 : 1000,
	                      .timeout_ms = s == NW_MUTE_CUT || s == NW_CHANGED_FILTERS ? 5000
	                                    : s == NW_SINK_STAYS                        ? 8000
	                                                                                : 1500,
	                      .keepalive_ms = 4000,
	                      .grace_ms = 500,
	                      .pipe_ms = deaf ? 100 : 0,
	                      .devices = NW_DEVICES,
	                      .trouble_ns = 25 * HW_NS_PER_S,
	                      .calm_ns = 45 * HW_NS_PER_S};
	w->scene = s;
	w->random.state =
		w->seed * UINT64_C(0xd1342543de82ef95); /* so that no seed continues the numbers of another seed */
}

/* --- what they are told by ---------------------------------------------------------------------------------------- */

static void next(struct nw_world *w, int64_t lasts_ns)
{
	w->stage++;
	w->since = w->t;
	w->claimed = w->count.takeovers;
	if (w->t + lasts_ns > w->last_event)
		w->last_event = w->t + lasts_ns;
}

static bool has_claimed(const struct nw_world *w)
{
	return w->count.takeovers > w->claimed;
}

static bool has_passed(const struct nw_world *w, int64_t ms)
{
	return w->t - w->since >= ms * HW_NS_PER_MS;
}

static bool owns(const struct nw_world *w, int host, int device)
{
	return strcmp(w->redis[w->master].d.owner[w->part[device]].token.node, nw_names[host]) == 0;
}

static void turn_those_of(struct nw_world *w, int host)
{
	for (int d = 0; d < w->plan.devices; d++)
		if (w->theirs[d] || (w->stage == 0 && owns(w, host, d))) {
			w->theirs[d] = true;
			nw_fleet_turn(w, d);
		}
}

/* Whether all devices that the scene has killed are offline at the present master. */
static bool are_offline(const struct nw_world *w)
{
	bool all = true;
	for (int d = 0; d < w->plan.devices; d++)
		all &= !w->theirs[d] || w->redis[w->master].d.device[d].state == HW_STATE_OFFLINE;
	return all;
}

static void die(struct nw_world *w, int host)
{
	nw_host_end(w, &w->host[host]);
	w->host[host].starts_at = NEVER;
}

/* Fails over to a replica that lacks the entries of the last `lost_ns`. The old master continues. */
static void fail_over(struct nw_world *w, int64_t lost_ns)
{
	w->plan.lag_ms = lost_ns / HW_NS_PER_MS;
	nw_redis_failover(w);
	w->redis[w->master - 1].up = true;
	for (int i = 0; i < w->plan.hosts; i++)
		for (int k = 0; k < NW_LINKS; k++)
			w->host[i].link[k].leave_at = w->t;
}

static void stays(struct nw_world *w, int host, enum nw_links k, int64_t ms)
{
	w->host[host].link[k].leave_at = w->t + ms * HW_NS_PER_MS;
}

/* --- the scenes --------------------------------------------------------------------------------------------------- */

/* Rule 2 of nodes/fence.h. A node that was cut off from Redis begins a session. Another node has claimed its
 * partitions, and has died without a presence at the broker. So only Redis can tell the first node about the claim. */
static void claimant_dies(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		w->host[FIRST].cut_redis = w->t + 8 * HW_NS_PER_S;
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 1 && has_claimed(w)) {
		die(w, SECOND);
		nw_mqtt_drop(w, &w->host[FIRST], NW_C_SESSION);
		next(w, 8 * HW_NS_PER_S);
	}
}

/* An owner writes deaths and dies. The node that claims its partitions has read these entries. The next master has
 * neither the claim nor the entries. */
static void verdict_lost(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		turn_those_of(w, SECOND);
		next(w, 0);
	} else if (w->stage == 1 && are_offline(w)) {
		die(w, SECOND);
		next(w, 0);
	} else if (w->stage == 2 && has_claimed(w)) {
		next(w, 0);
	} else if (w->stage == 3 && has_passed(w, 500)) {
		fail_over(w, 4500 * HW_NS_PER_MS);
		next(w, 2 * HW_NS_PER_S);
	}
}

/* The third node follows the stream of the new master, but still reads hashes from the old one. The second is dead,
 * and only the new master has its last entries. The first claims the second's partitions, and does not know these
 * entries. */
static void links_part(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		turn_those_of(w, SECOND);
		next(w, 0);
	} else if (w->stage == 1 && are_offline(w)) {
		next(w, 0);
	} else if (w->stage == 2 && has_passed(w, 200)) {
		fail_over(w, 2700 * HW_NS_PER_MS);
		stays(w, THIRD, NW_L_SINK, 3000);
		die(w, SECOND);
		turn_those_of(w, SECOND);
		next(w, 3 * HW_NS_PER_S);
	}
}

/* Holds the messages on this wire, or lets them arrive. */
static void hold(struct nw_world *w, int host, int wire_of, bool held)
{
	struct nw_wire *wire = &w->host[host].wire[wire_of];
	wire->last = held ? w->t + 4 * HW_NS_PER_S : w->t;
	for (size_t i = 0; i < wire->n && !held; i++)
		wire->ring[(wire->head + i) % wire->cap].at = w->t;
}

static bool sends_edges(const struct nw_world *w, int host)
{
	const struct nw_wire *wire = &w->host[host].wire[NW_TO_REDIS + NW_L_SINK];
	size_t n = 0;
	for (size_t i = 0; i < wire->n; i++) {
		const struct nw_msg *msg = &wire->ring[(wire->head + i) % wire->cap];
		const struct nw_call *c = msg->what == NW_CALL ? msg->body : NULL;
		for (size_t j = 0; c && j < c->n; j++)
			n += c->item[j].kind == NW_EDGE && c->item[j].to.state == HW_STATE_OFFLINE;
	}
	return n > 0;
}

/* The first node claims the second's partitions at the old master. An entry of the second about a device arrives at
 * the new master just then, before any entry of the first. This entry stays in the store, and is newer. */
static void late_edge(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		turn_those_of(w, SECOND);
		next(w, 0);
	} else if (w->stage == 1 && has_passed(w, 900)) {
		fail_over(w, 0);
		stays(w, FIRST, NW_L_CLUSTER, 8000);
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 2 && has_passed(w, 300)) {
		hold(w, SECOND, NW_TO_REDIS + NW_L_SINK, true);
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 3 && sends_edges(w, SECOND)) {
		die(w, SECOND);
		turn_those_of(w, SECOND);
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 4 && has_claimed(w)) {
		hold(w, SECOND, NW_TO_REDIS + NW_L_SINK, false);
		next(w, 6 * HW_NS_PER_S);
	}
}

/* The host's process stands still for longer than a timeout and for less than a lease. The broker drops what the
 * host does not read in that time. */
static void deaf_pause(struct nw_world *w)
{
	if (w->stage == 0 && w->t > 2 * SETTLED_NS) {
		nw_host_pause(w, &w->host[FIRST], w->t + 3 * HW_NS_PER_S, false);
		next(w, 3 * HW_NS_PER_S);
	}
}

/* Rule 3 of nodes/fence.h. An owner that was cut off comes back to a Redis that has lost the claim of its successor.
 * The successor's last will is published already, so only its known tokens are left. */
static void newest_is_gone(struct nw_world *w)
{
	struct nw_host *first = &w->host[FIRST];
	if (w->stage == 0 && w->t > SETTLED_NS) {
		first->cut_redis = first->cut_broker = w->t + 8 * HW_NS_PER_S;
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 1 && has_claimed(w)) {
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 2 && has_passed(w, 1500)) {
		fail_over(w, 3200 * HW_NS_PER_MS);
		die(w, SECOND);
		first->cut_redis = first->cut_broker = w->t;
		next(w, 2 * HW_NS_PER_S);
	}
}

/* An owner has pending statuses, which wait for a dead node's presence that it may not end. A third node joins, and
 * must get some of these devices. */
static void debts_wait(struct nw_world *w)
{
	if (w->stage == 0) {
		w->host[THIRD].starts_at = NEVER;
		if (w->t > SETTLED_NS)
			next(w, 0);
	} else if (w->stage == 1) {
		for (int d = 0; d < w->plan.devices; d++)
			w->theirs[d] = owns(w, SECOND, d);
		die(w, SECOND);
		next(w, 0);
	} else if (w->stage == 2 && has_claimed(w)) {
		turn_those_of(w, SECOND);
		next(w, 0);
	} else if (w->stage == 3 && has_passed(w, 1000)) {
		w->host[THIRD].starts_at = w->t;
		next(w, 12 * HW_NS_PER_S);
	}
}

static bool are_told_online(const struct nw_world *w)
{
	bool all = true;
	const struct nw_data *redis = &w->redis[w->master].d;
	for (int d = 0; d < w->plan.devices; d++)
		all &= !w->theirs[d] || (w->broker.retained[d].what == NW_K_ONLINE &&
		                         redis->published[w->part[d]] - 1 > redis->device[d].seq);
	return all;
}

/* Every second one was never there. */
static void lack_half(struct nw_world *w)
{
	for (int d = 0; d < w->plan.devices; d += 2)
		w->device[d].alive = w->device[d].wills = false;
	next(w, 0);
}

/* Chooses the devices with even numbers that this host owns. */
static void pick_those_of(struct nw_world *w, int host)
{
	for (int d = 0; d < w->plan.devices; d += 2)
		w->theirs[d] = owns(w, host, d);
}

/* New devices send one heartbeat while the first node has no reader. The second node writes them, and the entries
 * are on their way to the first when it claims these devices. */
static void new_devices(struct nw_world *w)
{
	if (w->stage == 0) {
		lack_half(w);
	} else if (w->stage == 1 && w->t > SETTLED_NS) {
		pick_those_of(w, SECOND);
		nw_mqtt_drop(w, &w->host[FIRST], NW_C_READER);
		hold(w, FIRST, NW_FROM_REDIS + NW_L_TAIL, true);
		turn_those_of(w, SECOND);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 2) {
		turn_those_of(w, SECOND);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 3 && are_told_online(w)) {
		die(w, SECOND);
		next(w, 4 * HW_NS_PER_S);
	}
}

/* There are two processes with the same name, and no other node. */
static void namesake(struct nw_world *w)
{
	(void)w;
}

/* A node starts again after half of the devices have died, and knows them only from the store. It is cut off while
 * it has no publisher, and the cut ends before the node is blind because of it. The silence counts nevertheless: the
 * deaths are found once barriers are back, and no other device goes offline. */
static void mute_cut(struct nw_world *w)
{
	struct nw_host *first = &w->host[FIRST];
	if (w->stage == 0 && w->t > SETTLED_NS) {
		die(w, FIRST);
		die(w, SECOND);
		for (int d = 0; d < w->plan.devices; d += 2) {
			w->device[d].wills = false;
			nw_fleet_turn(w, d);
		}
		first->starts_at = w->t + 500 * HW_NS_PER_MS;
		next(w, 0);
	} else if (w->stage == 1 && has_claimed(w)) {
		next(w, 0);
	} else if (w->stage == 2 && has_passed(w, 500)) {
		first->cut_broker = w->t + 1700 * HW_NS_PER_MS;
		nw_mqtt_drop(w, first, NW_C_SESSION);
		next(w, 1700 * HW_NS_PER_MS);
	}
}

/* Like deaf_pause(), but the first event after the pause is Redis' greeting on a link of the host. */
static void link_first(struct nw_world *w)
{
	const struct nw_link *sink = &w->host[FIRST].link[NW_L_SINK];
	if (w->stage == 0 && w->t > 2 * SETTLED_NS) {
		stays(w, FIRST, NW_L_SINK, 0);
		next(w, 0);
	} else if (w->stage == 1 && has_passed(w, 40) && sink->instance >= 0 && !sink->up) {
		nw_host_pause(w, &w->host[FIRST], w->t + 3 * HW_NS_PER_S, false);
		next(w, 3 * HW_NS_PER_S);
	}
}

/* Whether the last answer to the host's load is on its way. */
static bool has_read_all(const struct nw_world *w, int host)
{
	const struct nw_wire *wire = &w->host[host].wire[NW_FROM_REDIS + NW_L_SINK];
	bool any = false;
	for (size_t i = 0; i < wire->n; i++)
		any |= wire->ring[(wire->head + i) % wire->cap].what == NW_OUTBOX;
	return any;
}

static bool owns_any(const struct nw_world *w, int host)
{
	bool any = false;
	for (int d = 0; d < w->plan.devices; d++)
		any |= owns(w, host, d);
	return any;
}

/* Redis is emptied while a node loads. Devices that are missing then were not forgotten. The node follows the
 * stream, and must read everything again when it owns some of the devices. */
static void flushed_load(struct nw_world *w)
{
	if (w->stage == 0) {
		w->host[SECOND].starts_at = NEVER;
		if (w->t > SETTLED_NS)
			next(w, 0);
	} else if (w->stage == 1) {
		w->host[SECOND].starts_at = w->t;
		next(w, 0);
	} else if (w->stage == 2 && has_read_all(w, SECOND)) {
		nw_redis_flush(w);
		nw_oracle_flush(w);
		hold(w, SECOND, NW_FROM_REDIS + NW_L_TAIL, true);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 3 && owns_any(w, SECOND)) {
		nw_mqtt_drop(w, &w->host[SECOND], NW_C_SESSION);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 4 && hw_app_publisher_is_up(w->host[SECOND].app)) {
		hold(w, SECOND, NW_FROM_REDIS + NW_L_TAIL, false);
		next(w, 4 * HW_NS_PER_S);
	}
}

/* Whether the host is about to release this device's partition. The host then decides nothing for that partition any
 * more. */
static bool hands_over(const struct nw_world *w, int host, int device)
{
	const struct hw_nodes *n = w->host[host].app->cluster->nodes;
	return hw_nodes_owns(n, w->part[device]) && !hw_nodes_is_authoritative(n, w->part[device]);
}

/* The first node has settled the partitions that it hands over, and is cut off before the broker knows. Afterwards
 * it reads wills that may be old. The node that was to get these devices dies, and the first takes them back. */
static void late_goodbye(struct nw_world *w)
{
	if (w->stage == 0) {
		w->host[THIRD].starts_at = NEVER;
		if (w->t > SETTLED_NS)
			next(w, 0);
	} else if (w->stage == 1) {
		w->host[THIRD].starts_at = w->t;
		next(w, 0);
	} else if (w->stage == 2) {
		bool any = false;
		for (int d = 0; d < w->plan.devices; d++)
			any |= w->theirs[d] = hands_over(w, FIRST, d);
		if (!any)
			return;
		w->host[FIRST].cut_broker = w->t + 800 * HW_NS_PER_MS;
		next(w, 800 * HW_NS_PER_MS);
	} else if (w->stage == 3 && has_passed(w, 600)) {
		for (int d = 0; d < w->plan.devices; d++)
			if (w->theirs[d])
				nw_broker_hears(w, w->device[d].false_goodbye);
		die(w, THIRD);
		next(w, 2 * HW_NS_PER_S);
	}
}

/* The first node runs alone, and every second device dies without a will. */
static void kill_half(struct nw_world *w)
{
	w->host[SECOND].starts_at = NEVER;
	if (w->t < SETTLED_NS)
		return;
	for (int d = 0; d < w->plan.devices; d += 2) {
		w->theirs[d] = true;
		w->device[d].wills = false;
		nw_fleet_turn(w, d);
	}
	next(w, 0);
}

/* Redis and the broker lose all dead devices while the only node that knows them stands still. A node that joins
 * meanwhile owns everything, and hands a part over to the first with no write pending. The first finds what this
 * part lacks when it compares. */
static void one_knows(struct nw_world *w)
{
	if (w->stage == 0) {
		kill_half(w);
	} else if (w->stage == 1 && are_offline(w)) {
		nw_host_pause(w, &w->host[FIRST], w->t + 4 * HW_NS_PER_S, false);
		nw_broker_restart(w, false);
		nw_redis_flush(w);
		nw_oracle_flush(w);
		w->host[SECOND].starts_at = w->t;
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 2 && has_passed(w, 4500) && owns_any(w, FIRST)) {
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 3 && has_passed(w, 4000)) {
		stays(w, FIRST, NW_L_SINK, 0);
		next(w, 2 * HW_NS_PER_S);
	}
}

/* The same scene, but the node that knows the devices has no memory to note what the store lacks, for longer than it
 * needs to read the whole store. */
static void starved(struct nw_world *w)
{
	if (w->stage == 1 && are_offline(w))
		w->starved = w->t + 5 * HW_NS_PER_S;
	one_knows(w);
}

static bool sends(const struct nw_world *w, int host, enum nw_what what)
{
	const struct nw_wire *wire = &w->host[host].wire[NW_TO_REDIS + NW_L_SINK];
	bool any = false;
	for (size_t i = 0; i < wire->n; i++)
		any |= wire->ring[(wire->head + i) % wire->cap].what == what;
	return any;
}

/* A sight record is on its way while Redis is emptied, and arrives over a link that is then lost. The node that sent
 * it finds it afterwards. Only this node knows the entries of the second node, which is dead. It follows a stream
 * that does not have its offset any more, and must read everything again before it claims. */
static void late_mark(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		turn_those_of(w, SECOND);
		stays(w, FIRST, NW_L_SINK, 0); /* What the node has read over the first link is read again over the
		                                * next one. */
		next(w, 0);
	} else if (w->stage == 1 && are_offline(w)) {
		hold(w, FIRST, NW_TO_REDIS + NW_L_SINK, true);
		next(w, 2 * HW_NS_PER_S);
	} else if (w->stage == 2 && sends(w, FIRST, NW_MARK)) {
		nw_redis_flush(w);
		nw_oracle_flush(w);
		die(w, SECOND);
		stays(w, FIRST, NW_L_SINK, 0);
		hold(w, FIRST, NW_TO_REDIS + NW_L_CLUSTER, true);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 3 && has_passed(w, 100)) {
		hold(w, FIRST, NW_TO_REDIS + NW_L_SINK, false);
		next(w, 4 * HW_NS_PER_S);
	}
}

/* The first node has found that Redis was not emptied, and reads it again. Redis is emptied just then. The second
 * node, which has written missing devices since, is dead. */
static void flushed_reread(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		turn_those_of(w, SECOND);
		stays(w, FIRST, NW_L_SINK, 0); /* What the node has read over the first link is read again over the
		                                * next one. */
		next(w, 0);
	} else if (w->stage == 1 && are_offline(w) && has_passed(w, 2000)) {
		hw_app_cluster_reread(w->host[FIRST].app, false);
		next(w, 2 * HW_NS_PER_S);
	} else if (w->stage == 2 && sends(w, FIRST, NW_LOAD)) {
		nw_redis_flush(w);
		nw_oracle_flush(w);
		die(w, SECOND);
		next(w, 4 * HW_NS_PER_S);
	}
}

static bool are_seen_online(const struct nw_world *w, int host)
{
	bool all = true;
	for (int d = 0; d < w->plan.devices; d++)
		all &= !w->theirs[d] || nw_view(&w->host[host], d) == HW_STATE_ONLINE;
	return all;
}

/* New devices send heartbeats. The second node writes them to the old master, whose stream the first still follows.
 * The first then reads the new master, which does not have the devices yet. */
static void two_masters(struct nw_world *w)
{
	if (w->stage == 0) {
		lack_half(w);
	} else if (w->stage == 1 && w->t > SETTLED_NS) {
		pick_those_of(w, SECOND);
		fail_over(w, 0);
		stays(w, FIRST, NW_L_TAIL, 8000);
		stays(w, SECOND, NW_L_SINK, 8000);
		stays(w, SECOND, NW_L_CLUSTER, 8000);
		turn_those_of(w, SECOND);
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 2 && are_seen_online(w, FIRST) && w->host[FIRST].link[NW_L_SINK].up) {
		hw_app_cluster_reread(w->host[FIRST].app, false);
		next(w, 8 * HW_NS_PER_S);
	}
}

static bool has_read_of_theirs(const struct nw_world *w, int host)
{
	bool all = true;
	for (int d = 0; d < w->plan.devices; d++)
		all &= !w->theirs[d] || w->host[host].knew[d];
	return all;
}

static void spare_one(struct nw_world *w)
{
	for (int d = 0; d < w->plan.devices; d++)
		if (w->theirs[d]) {
			w->theirs[d] = false;
			return;
		}
}

static void turn_one(struct nw_world *w, int host)
{
	for (int d = 0; d < w->plan.devices; d += 2)
		if (!w->theirs[d] && owns(w, host, d)) {
			nw_fleet_turn(w, d);
			return;
		}
}

static int64_t mark_of(const struct nw_world *w, int host)
{
	return w->redis[w->master].d.mark[w->host[host].name].ms;
}

/* The first node reads the store again because of a gap. It begins with one Redis and ends with the next one. That
 * one has its last sight record, but lacks later entries of the second node, which is dead. */
static void moved_reading(struct nw_world *w)
{
	const struct nw_host *first = &w->host[FIRST];
	if (w->stage == 0) {
		lack_half(w);
	} else if (w->stage == 1 && w->t > SETTLED_NS) {
		pick_those_of(w, SECOND);
		spare_one(w);
		stays(w, FIRST, NW_L_SINK, 0); /* What the node has read over the first link is read again over the
		                                * next one. */
		next(w, 0);
	} else if (w->stage == 2 && has_passed(w, 1500)) {
		w->marked = mark_of(w, FIRST);
		next(w, 0);
	} else if (w->stage == 3 && mark_of(w, FIRST) != w->marked) {
		turn_those_of(w, SECOND);
		next(w, 0);
	} else if (w->stage == 4 && has_read_of_theirs(w, FIRST)) {
		w->redis[w->master].d.first = w->redis[w->master].d.n_entries;
		turn_one(w, SECOND);
		w->moved_ns = w->t - w->since;
		next(w, 0);
	} else if (w->stage == 5 && first->app->cluster->stream.reading == HW_CLUSTER_REREADS &&
	           !first->app->cluster->stream.keeping) {
		fail_over(w, w->moved_ns + w->t - w->since);
		die(w, SECOND);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 6 && w->seed % 2 == 0 && !first->link[NW_L_TAIL].up &&
	           first->link[NW_L_TAIL].instance == w->master) {
		hold(w, FIRST, NW_TO_REDIS + NW_L_TAIL,
		     true); /* this link uses the next master, and the node does not know this yet */
		next(w, 4 * HW_NS_PER_S);
	}
}

static void turn_every_fourth(struct nw_world *w)
{
	for (int d = 0; d < w->plan.devices; d += 4)
		nw_fleet_turn(w, d);
	next(w, 4 * HW_NS_PER_S);
}

/* The second node has other groups, and hears no device. When the first dies, the second owns all devices and judges
 * none. Some devices die in that time. The first finds these deaths when it is back. */
static void other_groups(struct nw_world *w)
{
	struct nw_host *first = &w->host[FIRST];
	if (w->stage == 0 && w->t > SETTLED_NS) {
		if (w->seed % 3)
			die(w, FIRST);
		else
			nw_host_stop(w, first);
		first->starts_at = NEVER;
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 1 && has_claimed(w)) {
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 2 && has_passed(w, 5000)) {
		turn_every_fourth(w);
	} else if (w->stage == 3 && has_passed(w, 2000)) {
		first->starts_at = w->t;
		next(w, 8 * HW_NS_PER_S);
	}
}

/* The host starts again with other filters. These filters match the same devices. */
static void change_filters(struct nw_world *w, int host)
{
	struct nw_host *h = &w->host[host];
	h->has_changed = true;
	if (w->seed % 2)
		die(w, host);
	else
		nw_host_stop(w, h);
	h->starts_at = w->t + 300 * HW_NS_PER_MS;
}

/* The filters of the first node are changed, and more than a timeout later those of the second. Just before that,
 * devices of the second die. Only the first has heard them with the changed filters, so it must judge them. */
static void changed_filters(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		pick_those_of(w, SECOND);
		change_filters(w, FIRST);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 1 && has_passed(w, 9000)) {
		turn_those_of(w, SECOND);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 2 && has_passed(w, 1000)) {
		change_filters(w, SECOND);
		next(w, 4 * HW_NS_PER_S);
	}
}

/* The second node has other filters, and hears no device. It starts again, and the answer of Redis to its JOIN is
 * late. So it reads about new devices before it knows the filters of the first node, which has written them. It must
 * judge none of them. */
static void unknown_writer(struct nw_world *w)
{
	if (w->stage == 0) {
		lack_half(w);
	} else if (w->stage == 1 && w->t > SETTLED_NS) {
		die(w, SECOND);
		w->host[SECOND].starts_at = w->t + 3 * HW_NS_PER_S;
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 2 && w->host[SECOND].app) {
		pick_those_of(w, FIRST);
		hold(w, SECOND, NW_FROM_REDIS + NW_L_CLUSTER, true);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 3 && has_passed(w, 2000)) {
		turn_those_of(w, FIRST);
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 4 && are_told_online(w)) {
		hold(w, SECOND, NW_FROM_REDIS + NW_L_CLUSTER, false);
		next(w, 4 * HW_NS_PER_S);
	}
}

/* Whether the host is the member with its name, and its sight record is there. */
static bool has_the_name(const struct nw_world *w, int host)
{
	const struct nw_host *h = &w->host[host];
	const struct nw_data *d = &w->redis[w->master].d;
	return h->app && d->member[h->name].there && d->member[h->name].run == h->run && d->mark[h->name].there &&
	       d->mark[h->name].run == h->run;
}

/* Redis is emptied. A second process with the name of the first node joins, writes its sight record, and dies. Only
 * then does the first check Redis. It finds a sight record of another run, and Redis lacks the dead devices. Only
 * the first knows these, and must keep them when it reads everything again. */
static void strange_mark(struct nw_world *w)
{
	if (w->stage == 0) {
		kill_half(w);
	} else if (w->stage == 1 && are_offline(w)) {
		nw_redis_flush(w);
		nw_oracle_flush(w);
		hold(w, FIRST, NW_TO_REDIS + NW_L_SINK, true);
		hold(w, FIRST, NW_TO_REDIS + NW_L_CLUSTER, true);
		w->host[SECOND].starts_at = w->t;
		next(w, 4 * HW_NS_PER_S);
	} else if (w->stage == 2 && has_the_name(w, SECOND)) {
		die(w, SECOND);
		hold(w, FIRST, NW_TO_REDIS + NW_L_SINK, false);
		hold(w, FIRST, NW_TO_REDIS + NW_L_CLUSTER, false);
		next(w, 4 * HW_NS_PER_S);
	}
}

static bool are_retained(const struct nw_world *w, int what)
{
	bool all = true;
	for (int d = 0; d < w->plan.devices; d++)
		all &= !w->theirs[d] || (int)w->broker.retained[d].what == what;
	return all;
}

static bool own_theirs(const struct nw_world *w, int host)
{
	bool all = true;
	for (int d = 0; d < w->plan.devices; d++)
		all &= !w->theirs[d] || owns(w, host, d);
	return all;
}

/* The second node writes deaths and dies. The first claims its partitions before it has read these entries, and its
 * link for devices is made again just then, so that it compares all devices with Redis. */
static void behind_the_stream(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		stays(w, FIRST, NW_L_SINK, 0); /* What the node has read over the first link is read again over the
		                                * next one. */
		next(w, 2 * HW_NS_PER_S);
	} else if (w->stage == 1 && has_passed(w, 2000)) {
		hold(w, FIRST, NW_FROM_REDIS + NW_L_TAIL, true);
		w->host[FIRST].wire[NW_FROM_REDIS + NW_L_TAIL].last += 4 * HW_NS_PER_S;
		for (int d = 0; d < w->plan.devices; d++)
			w->theirs[d] = owns(w, SECOND, d);
		turn_those_of(w, SECOND);
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 2 && are_offline(w)) {
		die(w, SECOND);
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 3 && has_claimed(w) && own_theirs(w, FIRST)) {
		stays(w, FIRST, NW_L_SINK, 0);
		next(w, 8 * HW_NS_PER_S);
	} else if (w->stage == 4 && !are_offline(w)) {
		nw_breach(w, "a node that has not read a death writes that the device is online");
		next(w, 8 * HW_NS_PER_S);
	}
}

/* After this time, all links of the first node to Redis move to the new master, except that of its sink. */
static void others_leave(struct nw_world *w, int64_t ms)
{
	stays(w, FIRST, NW_L_CLUSTER, ms);
	stays(w, FIRST, NW_L_TAIL, ms);
	stays(w, FIRST, NW_L_HEAR, ms);
}

/* Redis fails over. The first node stays at the old master, is cut off from the broker, and claims everything there
 * when it is back. So it publishes devices of the second as online, although the new master has their deaths. Then
 * all its links except that of its sink move to the new master. There it hands these devices over to the second, and
 * must not release them as clean. */
static void sink_stays(struct nw_world *w)
{
	struct nw_host *first = &w->host[FIRST], *second = &w->host[SECOND];
	if (w->stage == 0 && w->t > SETTLED_NS) {
		for (int d = 0; d < w->plan.devices; d++)
			w->device[d].wills = false;
		turn_those_of(w, SECOND);
		fail_over(w, 0);
		stays(w, FIRST, NW_L_SINK, 30000);
		others_leave(w, 30000);
		first->cut_broker = w->t + 10 * HW_NS_PER_S;
		next(w, 10 * HW_NS_PER_S);
	} else if (w->stage == 1 && are_offline(w) && are_retained(w, NW_K_OFFLINE)) {
		second->cut_redis = w->t + 10 * HW_NS_PER_S;
		next(w, 10 * HW_NS_PER_S);
	} else if (w->stage == 2 && are_retained(w, NW_K_ONLINE)) {
		stays(w, FIRST, NW_L_SINK, 6000);
		others_leave(w, 0);
		next(w, 6 * HW_NS_PER_S);
	} else if (w->stage == 3 && own_theirs(w, FIRST)) {
		second->cut_redis = w->t;
		next(w, 6 * HW_NS_PER_S);
	}
}

void nw_scene_step(struct nw_world *w)
{
	static void (*const scenes[NW_SCENES])(struct nw_world *) = {
		NULL,           claimant_dies,    verdict_lost, links_part,   late_edge,       deaf_pause,
		newest_is_gone, debts_wait,       new_devices,  namesake,     mute_cut,        link_first,
		flushed_load,   late_goodbye,     one_knows,    starved,      late_mark,       flushed_reread,
		two_masters,    moved_reading,    other_groups, strange_mark, changed_filters, unknown_writer,
		sink_stays,     behind_the_stream};
	if (w->scene)
		scenes[w->scene](w);
}
