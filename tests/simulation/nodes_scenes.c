/* SPDX-License-Identifier: MIT */
/*
 * Scenes: what goes wrong is not drawn but told, step by step, since it hardly ever happens by chance just so. Each is
 * made for a rule without which it ends in a breach. Two or three nodes have shared the devices, and then what happens
 * to the first (FIRST) or the second of them happens at the moment that it needs.
 */
#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "nodes_world.h"

#define SETTLED_NS (12 * HW_NS_PER_S) /* the nodes have shared the devices by then */
#define NEVER      (INT64_MAX / 2)

enum { FIRST, SECOND, THIRD };

const char *nw_scene_name(enum nw_scene s)
{
	static const char *const names[NW_SCENES] = {
		"none",         "claimant dies",  "verdict lost",    "links part",     "late transition",
		"deaf pause",   "newest is gone", "debts wait",      "new devices",    "namesake",
		"mute cut",     "link first",     "flushed load",    "late goodbye",   "one knows",
		"starved",      "late mark",      "flushed reread",  "two masters",    "moved reading",
		"other groups", "strange mark",   "changed filters", "unknown writer", "sink stays"};
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
	w->random.state = w->seed * UINT64_C(0xd1342543de82ef95); /* no seed goes on where another one began */
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

/* All those whose deaths were waited for, by the present master. */
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

/* To a replica that lacks what was written since then; the old master goes on. */
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

/* 10.5, rule 2. Whoever was cut from Redis begins a session while who has claimed what it had is dead and had not said
 * so at the broker: nothing but Redis can tell it. */
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

/* 10.6. An owner tells of deaths and dies; who claims what it had has read of them; the next master has neither the
 * claim nor the deaths. */
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

/* 10.6. The third follows the new master's stream, and reads hashes of the old one still; the second, whose last words
 * only that one has, is dead; and the first, who claims what it had, knows nothing of them. */
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

/* Holds what is on this wire, or lets it arrive. */
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

/* The first claims at the old master what the second has. A word of the second's about a device arrives at the new one
 * just then, before any of the first's: it stands, and is newer. */
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

/* It stands still for longer than a timeout and for less than a lease, and the broker drops what it does not read. */
static void deaf_pause(struct nw_world *w)
{
	if (w->stage == 0 && w->t > 2 * SETTLED_NS) {
		nw_host_pause(w, &w->host[FIRST], w->t + 3 * HW_NS_PER_S, false);
		next(w, 3 * HW_NS_PER_S);
	}
}

/* 10.5, rule 3. An owner that was cut off comes back to a Redis that has lost the claim of the one that followed it,
 * and that one's last will has been said: what it knew is all that is left. */
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

/* 10.4. An owner waits for a dead one's presence, which it may not end, and owes statuses; a third comes, and is to
 * have some of these devices. */
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
	for (int d = 0; d < w->plan.devices; d++)
		all &= !w->theirs[d] || (w->broker.retained[d].what == NW_K_ONLINE && !w->redis[w->master].d.outbox[d]);
	return all;
}

/* Every second one was never there. */
static void lack_half(struct nw_world *w)
{
	for (int d = 0; d < w->plan.devices; d += 2)
		w->device[d].alive = w->device[d].wills = false;
	next(w, 0);
}

/* Of those, what this host owns. */
static void pick_those_of(struct nw_world *w, int host)
{
	for (int d = 0; d < w->plan.devices; d += 2)
		w->theirs[d] = owns(w, host, d);
}

/* 10.6. Devices that were never there beat once, while the first has no reader; what the second writes of them is on
 * its way to the first, on the stream, when that claims them. */
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

/* 10.3. Two processes of one name, and no other. */
static void namesake(struct nw_world *w)
{
	(void)w;
}

/* DESIGN, 2. Who starts anew when half the devices have died knows them from the store alone. A cut without a
 * publisher, over before that blinds it, is no silence less: the dead are told of once barriers are back, and nobody
 * else is. */
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

/* The same, and what it finds first behind the pause is that Redis has greeted its link. */
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

/* The last answer to its load is on its way. */
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

/* 10.2. Redis is emptied while what a node loads is on its way to it: what it has not any more was not forgotten. The
 * node follows the stream, and reads all again for that, when some of it is its own and is to be told of. */
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

/* Whether it is about to release what this device is in: nothing of that is decided any more. */
static bool hands_over(const struct nw_world *w, int host, int device)
{
	const struct hw_nodes *n = w->host[host].app->cluster->nodes;
	return hw_nodes_owns(n, w->part[device]) && !hw_nodes_is_authoritative(n, w->part[device]);
}

/* 10.4. The first has settled what it hands over, and is cut off before the broker knows; what it reads behind that are
 * wills that may be old. Who was to have these devices dies, and it takes them back. */
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

/* The first runs alone, and every second device dies without a will. */
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

/* 10.6. Redis and the broker lose all of the dead while who knows of them stands still. Who comes meanwhile owns all,
 * and gives the first a part of it that it owes nothing of; what that part lacks is seen when the first compares. */
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

/* The same, and the one that knows finds no memory by which to tell what the store lacks, for longer than it would need
 * to read all of it. */
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

/* 10.2. A mark is on its way while Redis is emptied, and arrives over a link that is lost by then. Who sent it finds it
 * behind that, and alone knows what the second, which is dead, had told of: before it has claimed that it follows a
 * stream that has no place of its own any more, and reads all again. */
static void late_mark(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		turn_those_of(w, SECOND);
		stays(w, FIRST, NW_L_SINK, 0); /* what was read over the first link is read again over the next one */
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

/* 10.2. Redis is emptied once the first has found that it is not, and reads it again; and the second, which had written
 * what it lacks from then on, is dead. */
static void flushed_reread(struct nw_world *w)
{
	if (w->stage == 0 && w->t > SETTLED_NS) {
		turn_those_of(w, SECOND);
		stays(w, FIRST, NW_L_SINK, 0); /* what was read over the first link is read again over the next one */
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

/* 10.6. Devices that were never there beat; the second writes of them to the old master, whose stream the first follows
 * still. What that reads then is the new one, which has nothing of them yet. */
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

/* 10.6. What the first reads again for a gap it begins to read from one Redis and ends to read from the next one, which
 * has its last mark, and lacks what the second, which is dead, has written behind that. */
static void moved_reading(struct nw_world *w)
{
	const struct nw_host *first = &w->host[FIRST];
	if (w->stage == 0) {
		lack_half(w);
	} else if (w->stage == 1 && w->t > SETTLED_NS) {
		pick_those_of(w, SECOND);
		spare_one(w);
		stays(w, FIRST, NW_L_SINK, 0); /* what was read over the first link is read again over the next one */
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
		hold(w, FIRST, NW_TO_REDIS + NW_L_TAIL, true); /* it follows the next one, and has not told so */
		next(w, 4 * HW_NS_PER_S);
	}
}

static void turn_every_fourth(struct nw_world *w)
{
	for (int d = 0; d < w->plan.devices; d += 4)
		nw_fleet_turn(w, d);
	next(w, 4 * HW_NS_PER_S);
}

/* 10.4. The second has other groups, and hears no device. When the first dies, it owns all devices and judges none. It
 * has some of them while they die. The first finds these deaths when it is back. */
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

/* It starts again with other filters, by which it hears the same devices. */
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

/* 10.4. The filters of the first are changed, and after more than a timeout those of the second. Just before that,
 * devices of the second die. Only the first has heard these with the changed filters: it must judge them. */
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

/* 10.4. The second has other filters, and hears no device. It starts again, and Redis' answer to its JOIN is late. So
 * it reads of new devices before it knows the filters of the first, which wrote of them. It must judge none of them. */
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

/* It is the member of its name, and its mark is there. */
static bool has_the_name(const struct nw_world *w, int host)
{
	const struct nw_host *h = &w->host[host];
	const struct nw_data *d = &w->redis[w->master].d;
	return h->app && d->member[h->name].there && d->member[h->name].run == h->run && d->mark[h->name].there &&
	       d->mark[h->name].run == h->run;
}

/* 10.2. Redis is emptied, and a second process under the name of the first joins, puts its mark, and dies. The first
 * looks at Redis only then. A mark is there, of another run, and Redis lacks the dead devices. Only the first knows
 * these: it must keep them when it reads all again. */
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

/* All links of the first to Redis but that of its sink leave after so long. */
static void others_leave(struct nw_world *w, int64_t ms)
{
	stays(w, FIRST, NW_L_CLUSTER, ms);
	stays(w, FIRST, NW_L_TAIL, ms);
	stays(w, FIRST, NW_L_HEAR, ms);
}

/* 10.4. Redis fails over. The first stays at the old master, is cut from the broker, and claims all there when it is
 * back. So it publishes devices of the second as online, whose deaths only the new master has. Then its links go to the
 * new master, but for that of its sink. There it hands these devices over to the second: as not clean. */
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
		NULL,         claimant_dies,  verdict_lost,    links_part,     late_edge,
		deaf_pause,   newest_is_gone, debts_wait,      new_devices,    namesake,
		mute_cut,     link_first,     flushed_load,    late_goodbye,   one_knows,
		starved,      late_mark,      flushed_reread,  two_masters,    moved_reading,
		other_groups, strange_mark,   changed_filters, unknown_writer, sink_stays};
	if (w->scene)
		scenes[w->scene](w);
}
