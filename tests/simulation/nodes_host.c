/* SPDX-License-Identifier: MIT */
/* What a daemon does around src/nodes: connections, what comes over them, orders carried out. The gate is a file of its
 * own. A lie (enum nw_lie) is told here or in a store, never in src/nodes. */
#include "nodes/nodes_priv.h" /* for lies */
#include "nodes_world.h"

#define GRACE_NS      (HW_NS_PER_S)
#define LINK_BOUND_NS (5 * HW_NS_PER_S)
#define BARRIER_NS    (500 * HW_NS_PER_MS)
#define LOSSY_NS      (5 * HW_NS_PER_S)

static int64_t clock_of(const struct nw_world *w, const struct nw_host *h)
{
	return h->mono_off + w->t + (int64_t)((double)w->t * h->drift);
}

struct hw_now nw_host_now(const struct nw_world *w, const struct nw_host *h)
{
	return (struct hw_now){.mono = {clock_of(w, h)},
	                       .wall_ms = INT64_C(1700000000000) + (w->t + h->wall_off) / HW_NS_PER_MS};
}

bool nw_host_acts(const struct nw_world *w, const struct nw_host *h)
{
	return h->alive && h->paused_until <= w->t;
}

/* What was decided goes out at the end of a step; a host that is stopped there sends it when it goes on. */
static void put(struct nw_host *h, enum nw_wires wire, struct nw_msg msg)
{
	nw_wire_push(&h->sent[wire], msg);
}

static void put_redis(struct nw_world *w, struct nw_host *h, struct nw_msg msg)
{
	msg.conn = h->conn;
	msg.instance = h->instance;
	if (h->redis_waiting++ == 0)
		h->redis_asked = w->t;
	put(h, NW_TO_REDIS, msg);
}

static void flush(struct nw_world *w, struct nw_host *h)
{
	for (int k = 0; k < NW_WIRES; k++)
		while (h->sent[k].n)
			nw_send(w, h, (enum nw_wires)k, nw_wire_pop(&h->sent[k]));
}

/* --- life -------------------------------------------------------------------------------------------------------- */

void nw_host_start(struct nw_world *w, struct nw_host *h)
{
	h->run = sim_draw(&w->random) | 1;
	struct hw_nodes_conf conf = {.node = nw_names[h->name],
	                             .run = h->run,
	                             .mode = w->plan.standby ? HW_NODES_STANDBY : HW_NODES_MIRROR,
	                             .lease_ms = w->plan.lease_ms,
	                             .keepalive_ms = w->plan.keepalive_ms};
	h->n = hw_nodes_new(&conf, nw_host_now(w, h));
	if (!h->n)
		nw_alloc(SIZE_MAX);
	h->alive = true;
	h->instance = -1;
	h->conn++;
	h->redial_at = h->dial_at = h->read_at = w->t;
	h->leave_at = 0;
	h->redis_waiting = 0;
	h->session = h->dialing = h->reader = 0;
	h->reads = h->loaded = h->following = h->told = h->stopping = h->froze = false;
	h->barrier_next = h->out = h->proven = h->due = 0;
	h->lossy_end = clock_of(w, h) + GRACE_NS;
	h->stepped = w->t;
	h->poked = true;
	memset(h->device, 0, sizeof(h->device));
	h->waits = h->compare = h->drained = (struct hw_partitions){{0}};
	for (int k = 0; k < NW_WIRES; k++)
		nw_wire_clear(&h->sent[k]);
	w->subscribed[h->index] = INT64_MAX;
	memset(w->heard[h->index], 0, sizeof(w->heard[h->index]));
	nw_trace(w, "%s: starts", nw_names[h->name]);
}

/* The process is gone: what it has sent arrives, and its connections are closed behind it. */
void nw_host_end(struct nw_world *w, struct nw_host *h)
{
	if (!h->alive)
		return;
	nw_trace(w, "%s: is gone", nw_names[h->name]);
	for (int k = 0; k < NW_WIRES; k++)
		nw_wire_clear(&h->sent[k]);
	if (h->session)
		nw_send(w, h, NW_TO_BROKER, (struct nw_msg){.what = NW_CLOSED, .conn = h->session});
	w->broker.reader[h->index] = 0;
	nw_wire_clear(&h->wire[NW_READ]);
	nw_wire_clear(&h->wire[NW_FROM_BROKER]);
	nw_wire_clear(&h->wire[NW_FROM_REDIS]);
	nw_oracle_forgets(w, h, -1);
	h->alive = false;
	hw_nodes_free(h->n);
	h->n = NULL;
}

/* --- Redis ------------------------------------------------------------------------------------------------------- */

/* What is on its way over the old connection may still arrive. */
void nw_host_relink(struct nw_world *w, struct nw_host *h)
{
	if (sim_chance(&w->random, 0.5))
		nw_wire_clear(&h->wire[NW_TO_REDIS]);
	nw_wire_clear(&h->sent[NW_TO_REDIS]);
	h->conn++;
	h->instance = -1;
	h->redis_waiting = 0;
	h->leave_at = 0;
	h->loaded = h->following = h->told = false;
	h->redial_at = w->t + sim_between(&w->random, 1, 100) * HW_NS_PER_MS;
	hw_nodes_redis(h->n, nw_host_now(w, h), false);
	h->poked = true;
}

static void link_redis(struct nw_world *w, struct nw_host *h)
{
	bool late = h->redis_waiting > 0 && w->t - h->redis_asked > LINK_BOUND_NS;
	bool gone = h->instance >= 0 && !w->redis[h->instance].up;
	bool leaves = h->leave_at != 0 && w->t >= h->leave_at;
	if (h->instance >= 0 && (late || gone || leaves)) {
		nw_trace(w, "%s: leaves redis %d:%s%s%s", nw_names[h->name], h->instance, late ? " late" : "",
		         gone ? " gone" : "", leaves ? " switch" : "");
		nw_host_relink(w, h);
	}
	if (h->instance >= 0 || w->t < h->redial_at || h->cut_redis > w->t || w->redis_stands > w->t)
		return;
	h->instance = w->master;
	nw_trace(w, "%s: connects to redis %d", nw_names[h->name], h->instance);
	nw_oracle_connects(w, h);
	hw_nodes_redis(h->n, nw_host_now(w, h), true);
	put_redis(w, h, (struct nw_msg){.what = NW_LOAD});
	nw_gate_relinked(w, h);
	h->poked = true;
}

static void follow(struct nw_world *w, struct nw_host *h)
{
	if (h->instance < 0 || !h->loaded || w->t < h->follow_next)
		return;
	h->follow_next = w->t + sim_between(&w->random, 20, 200) * HW_NS_PER_MS;
	put_redis(w, h, (struct nw_msg){.what = NW_FOLLOW, .number = h->followed});
}

static void answered(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	struct nw_answer *a = msg->body;
	if (msg->conn != h->conn)
		return;
	h->redis_waiting--;
	h->redis_asked = w->t;
	if (a->of == NW_ORDER) {
		if (w->lie == NW_LIE_GONE && a->nodes.result == HW_NODES_GONE)
			a->nodes.result = HW_NODES_DONE;
		hw_nodes_answer(h->n, nw_host_now(w, h), &a->nodes);
	} else if (a->of == NW_EDGES) {
		nw_gate_answer(w, h, msg);
	} else if (a->of == NW_FOLLOW) {
		nw_gate_entries(w, h, msg);
	} else {
		nw_gate_load(w, h, a);
	}
}

/* --- the broker -------------------------------------------------------------------------------------------------- */

void nw_host_lose_session(struct nw_world *w, struct nw_host *h)
{
	h->dialing = 0;
	h->dial_at = w->t + sim_between(&w->random, 20, 1000) * HW_NS_PER_MS;
	if (!h->session)
		return;
	h->session = 0;
	h->out = 0;
	nw_wire_clear(&h->sent[NW_TO_BROKER]);
	hw_nodes_session(h->n, nw_host_now(w, h), false);
	nw_gate_session(w, h);
	h->poked = true;
}

void nw_host_lose_reader(struct nw_world *w, struct nw_host *h)
{
	w->broker.reader[h->index] = 0;
	w->subscribed[h->index] = INT64_MAX;
	h->reader = 0;
	h->reads = false;
	h->out = 0;
	h->read_at = w->t + sim_between(&w->random, 20, 1000) * HW_NS_PER_MS;
	nw_wire_clear(&h->wire[NW_READ]);
	hw_nodes_reader(h->n, nw_host_now(w, h), false);
	h->poked = true;
}

static void link_broker(struct nw_world *w, struct nw_host *h)
{
	bool reach = nw_broker_reachable(w, h);
	bool mute = h->out && clock_of(w, h) - h->out > w->plan.keepalive_ms * HW_NS_PER_MS;
	if (h->reader && ((reach && !w->broker.reader[h->index]) || mute))
		nw_host_lose_reader(w, h);
	if (h->session && mute)
		nw_host_lose_session(w, h);
	if (!reach || !hw_nodes_connects(h->n, nw_host_now(w, h)))
		return;
	if (!h->reader && w->t >= h->read_at)
		nw_broker_subscribe(w, h);
	if (h->session || w->t < h->dial_at || (h->dialing && w->t - h->dialed < 3 * HW_NS_PER_S))
		return;
	h->dialing = ++w->broker.ids;
	h->dialed = w->t;
	put(h, NW_TO_BROKER, (struct nw_msg){.what = NW_CONNECT, .conn = h->dialing});
}

static void send_barrier(struct nw_world *w, struct nw_host *h)
{
	int64_t now = clock_of(w, h);
	h->barrier = (uint64_t)now > h->barrier ? (uint64_t)now : h->barrier + 1;
	h->barrier_next = w->t + BARRIER_NS;
	h->out = h->out ? h->out : now;
	put(h, NW_TO_BROKER, (struct nw_msg){.what = NW_BARRIER, .conn = h->session, .number = h->barrier});
	hw_nodes_barrier_sent(h->n, nw_host_now(w, h), h->barrier);
	if (w->lie == NW_LIE_BARRIER)
		hw_nodes_barrier_back(h->n, nw_host_now(w, h), h->barrier);
}

static void pace_barriers(struct nw_world *w, struct nw_host *h)
{
	if (h->session && h->reads && w->t >= h->barrier_next)
		send_barrier(w, h);
}

/* What is sent over a new connection goes behind what the old one still holds; a connection that was ended is told. */
static void heard_broker(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	struct hw_now now = nw_host_now(w, h);
	if (msg->what == NW_REFUSED) {
		hw_nodes_not_evicted(h->n, now, nw_names[msg->device]);
	} else if (msg->what == NW_CONNACK && msg->conn == h->dialing) {
		h->session = msg->conn;
		h->dialing = 0;
		h->barrier_next = w->t;
		hw_nodes_session(h->n, now, true);
		if (w->lie == NW_LIE_CONFIRM)
			h->n->fence.confirmed = true;
		nw_gate_session(w, h);
	} else if (msg->conn == h->session && msg->what == NW_CLOSED) {
		nw_host_lose_session(w, h);
	} else if (msg->conn == h->session && msg->what == NW_PUBACK) {
		if (msg->device < 0)
			hw_nodes_acked(h->n, now, msg->number);
		else
			nw_gate_acked(w, h, msg);
	}
}

static void read_presence(struct nw_world *w, struct nw_host *h, const struct nw_presence *p)
{
	uint64_t claims[HW_PARTITIONS];
	struct hw_token known[HW_PARTITIONS];
	memcpy(claims, p->claims, sizeof(claims));
	memcpy(known, p->known, sizeof(known));
	for (unsigned k = 0; k < HW_PARTITIONS; k++) {
		struct hw_token own = hw_nodes_token(h->n, k), theirs = hw_token_make(claims[k], nw_names[p->name]);
		if (w->lie == NW_LIE_YIELD && own.epoch && hw_token_is_less(&own, &theirs))
			claims[k] = 0;
		if (w->lie == NW_LIE_KNOWN_EPOCHS)
			known[k].node[0] = '\0';
	}
	bool mute = w->lie == NW_LIE_KNOWN || w->lie == NW_LIE_YIELD;
	hw_nodes_presence(h->n, nw_host_now(w, h), nw_names[p->name], claims, mute ? NULL : known);
}

static void heard_reader(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	struct hw_now now = nw_host_now(w, h);
	if (msg->conn != h->reader)
		return;
	if (msg->what == NW_SUBACK) {
		hw_nodes_reader(h->n, now, true);
		h->reads = true;
		h->lossy_end = now.mono.ns + GRACE_NS;
		h->barrier_next = w->t;
		w->subscribed[h->index] = w->t;
	} else if (msg->what == NW_PRESENCE) {
		read_presence(w, h, msg->body);
	} else if (msg->what == NW_BARRIER) {
		h->proven = (int64_t)msg->number;
		h->out = h->barrier > msg->number ? (int64_t)msg->number + 1 : 0;
		hw_nodes_barrier_back(h->n, now, msg->number);
	} else if (msg->what == NW_BEAT) {
		h->device[msg->device].heard = now.mono.ns;
		w->heard[h->index][msg->device] = w->t;
	}
}

/* --- what src/nodes orders --------------------------------------------------------------------------------------- */

static void ask_redis(struct nw_world *w, struct nw_host *h, const struct hw_nodes_order *o)
{
	struct nw_order *body = nw_alloc(sizeof(*body));
	body->o = *o;
	body->full = !h->told;
	h->told = true;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		body->token[p] = o->kind == HW_NODES_RELEASE ? *hw_nodes_given(h->n, p) : hw_nodes_token(h->n, p);
		if (o->kind == HW_NODES_CLAIM)
			body->expected[p] = *hw_nodes_record(h->n, p);
	}
	if (o->kind == HW_NODES_RELEASE)
		nw_gate_lose(w, h, &o->set);
	if (o->kind != HW_NODES_RENEW)
		nw_trace(w, "%s: asks redis %d for %d of %u", nw_names[h->name], h->instance, (int)o->kind,
		         hw_partitions_count(&o->set));
	put_redis(w, h, (struct nw_msg){.what = NW_ORDER, .body = body});
}

static void say_presence(struct nw_world *w, struct nw_host *h, uint64_t serial)
{
	struct nw_presence *p = nw_alloc(sizeof(*p));
	struct nw_msg msg = {.what = NW_PRESENCE, .conn = h->session, .number = serial, .body = p};
	p->refs = 1;
	p->name = h->name;
	p->online = true;
	memcpy(p->claims, hw_nodes_claims(h->n), sizeof(p->claims));
	hw_nodes_known(h->n, p->known);
	if (w->lie == NW_LIE_ACK) {
		hw_nodes_acked(h->n, nw_host_now(w, h), serial);
		msg.at = w->t + 400 * HW_NS_PER_MS;
		nw_wire_push(&h->wire[NW_TO_EVICT], msg);
		return;
	}
	put(h, NW_TO_BROKER, msg);
}

static int name_of(const char *node)
{
	int name = 0;
	while (strcmp(nw_names[name], node) != 0)
		name++;
	return name;
}

static void order_eviction(struct nw_world *w, struct nw_host *h, const char *node)
{
	static const uint64_t nothing[HW_PARTITIONS];
	if (w->lie == NW_LIE_EVICT)
		hw_nodes_presence(h->n, nw_host_now(w, h), node, nothing, NULL);
	else
		put(h, NW_TO_EVICT, (struct nw_msg){.what = NW_EVICT, .device = name_of(node)});
}

static void attend(struct nw_world *w, struct nw_host *h)
{
	for (int i = 0; i < w->plan.hosts; i++) {
		struct nw_host *other = &w->host[i];
		if (other == h || !nw_host_acts(w, other) || other->instance != h->instance || other->cut_redis > w->t)
			continue;
		hw_nodes_attend(other->n, nw_host_now(w, other));
		other->poked = true;
	}
}

static void carry_out(struct nw_world *w, struct nw_host *h, const struct hw_nodes_order *o)
{
	switch (o->kind) {
	case HW_NODES_PRESENCE:
		say_presence(w, h, o->serial);
		break;
	case HW_NODES_BARRIER:
		if (h->session && h->reads)
			send_barrier(w, h);
		break;
	case HW_NODES_EVICT:
		order_eviction(w, h, o->node);
		break;
	case HW_NODES_OWN:
		nw_oracle_moves(w, h, "owns");
		nw_gate_own(w, h, o);
		break;
	case HW_NODES_LOSE:
		nw_oracle_moves(w, h, "loses");
		nw_gate_lose(w, h, &o->set);
		break;
	case HW_NODES_DRAIN:
		for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
			h->drained.bits[k] |= o->set.bits[k];
		break;
	case HW_NODES_RESUME:
		for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
			h->drained.bits[k] &= ~o->set.bits[k];
		break;
	case HW_NODES_ATTEND:
		attend(w, h);
		break;
	case HW_NODES_NAMESAKE:
	case HW_NODES_STOPPED:
		h->stop_by = w->t;
		h->stopping = true;
		break;
	default:
		ask_redis(w, h, o);
	}
}

/* --- a step ------------------------------------------------------------------------------------------------------ */

static void take(struct nw_world *w, struct nw_host *h, enum nw_wires k)
{
	struct nw_wire *wire = &h->wire[k];
	int64_t budget = sim_chance(&w->random, 0.2) ? 1 : 1000000;
	bool cut = k == NW_FROM_REDIS ? h->cut_redis > w->t : !nw_broker_reachable(w, h);
	while (!cut && budget-- > 0 && h->alive && wire->n && wire->ring[wire->head].at <= w->t) {
		struct nw_msg msg = nw_wire_pop(wire);
		h->poked |= msg.what != NW_BEAT;
		if (k == NW_FROM_REDIS)
			answered(w, h, &msg);
		else if (k == NW_FROM_BROKER)
			heard_broker(w, h, &msg);
		else
			heard_reader(w, h, &msg);
		nw_msg_fini(&msg);
	}
}

static void take_all(struct nw_world *w, struct nw_host *h)
{
	static const enum nw_wires in[3] = {NW_FROM_REDIS, NW_FROM_BROKER, NW_READ};
	int64_t first = sim_below(&w->random, 3);
	for (int64_t i = 0; i < 3; i++)
		take(w, h, in[(first + i) % 3]);
}

/* Stopped for so long, it may have lost messages: its reader begins anew. */
static void wake(struct nw_world *w, struct nw_host *h)
{
	if (w->t - h->stepped > LOSSY_NS && h->reader)
		nw_host_lose_reader(w, h);
	h->stepped = w->t;
}

static void look_at_itself(struct nw_world *w, struct nw_host *h)
{
	struct hw_now now = nw_host_now(w, h);
	bool stands = h->out && now.mono.ns - h->out > 2 * BARRIER_NS;
	bool blind = !h->reads || !h->session || stands || now.mono.ns < h->lossy_end;
	bool ready = w->plan.standby ? h->session != 0 : !blind && h->loaded && h->following;
	if (ready != h->n->ready || blind != h->n->blind)
		h->poked = true;
	hw_nodes_ready(h->n, now, ready);
	hw_nodes_blind(h->n, now, blind);
}

static void pull(struct nw_world *w, struct nw_host *h)
{
	struct hw_now now = nw_host_now(w, h);
	struct hw_nodes_order o;
	if (!h->poked && now.mono.ns < h->due)
		return;
	h->poked = false;
	while (hw_nodes_next(h->n, now, &o)) {
		if (o.kind == HW_NODES_REMOVE && w->lie == NW_LIE_SILENT)
			continue;
		carry_out(w, h, &o);
	}
	h->due = hw_nodes_due(h->n, now).ns;
}

static void stop_or_freeze(struct nw_world *w, struct nw_host *h)
{
	if (h->stopping && w->t >= h->stop_by) {
		flush(w, h);
		nw_host_end(w, h);
		h->starts_at = w->t + sim_between(&w->random, 100, 4000) * HW_NS_PER_MS;
		return;
	}
	h->froze = h->paused_until > w->t;
	if (!h->froze)
		flush(w, h);
}

void nw_host_step(struct nw_world *w, struct nw_host *h)
{
	if (!h->alive && w->t >= h->starts_at && h->paused_until <= w->t)
		nw_host_start(w, h);
	if (!nw_host_acts(w, h))
		return;
	flush(w, h); /* what it had decided when it was stopped */
	wake(w, h);
	take_all(w, h);
	link_redis(w, h);
	follow(w, h);
	link_broker(w, h);
	pace_barriers(w, h);
	look_at_itself(w, h);
	nw_gate_work(w, h);
	pull(w, h);
	nw_gate_work(w, h);
	if (w->trouble_end > w->t && sim_chance(&w->random, w->plan.rate[NW_PAUSE] / 3 * NW_STEP_NS / 1e9)) {
		h->paused_until =
			w->t + sim_spread(&w->random, w->plan.lease_ms / 20, 3 * w->plan.lease_ms) * HW_NS_PER_MS;
		w->last_event = h->paused_until;
		nw_trace(w, "%s: stopped between check and write", nw_names[h->name]);
	}
	stop_or_freeze(w, h);
}
