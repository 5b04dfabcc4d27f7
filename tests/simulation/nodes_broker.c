/* SPDX-License-Identifier: MIT */
/* A broker: one session a client id, which a newer one ends; what it has read of an old one is all that it passes on.
 */
#include <stdlib.h>

#include "nodes_world.h"

void nw_presence_unref(struct nw_presence *p)
{
	if (p && --p->refs == 0)
		free(p);
}

bool nw_broker_reachable(const struct nw_world *w, const struct nw_host *h)
{
	return h->cut_broker <= w->t && w->broker.stopped_until <= w->t;
}

static void to_reader(struct nw_world *w, int host, struct nw_msg msg)
{
	msg.conn = w->broker.reader[host];
	if (msg.conn)
		nw_send(w, &w->host[host], NW_READ, msg);
}

static void tell_presence(struct nw_world *w, int host, struct nw_presence *p)
{
	if (!w->broker.reader[host])
		return;
	p->refs++;
	to_reader(w, host, (struct nw_msg){.what = NW_PRESENCE, .body = p});
}

/* Retained, and to every reader. Takes over the reference. */
static void keep_presence(struct nw_world *w, struct nw_presence *p)
{
	nw_presence_unref(w->broker.presence[p->name]);
	w->broker.presence[p->name] = p;
	for (int i = 0; i < w->plan.hosts; i++)
		tell_presence(w, i, p);
}

/* A will, or what an evictor says in its place: nothing is claimed. What is known is a topic of its own, and stays. */
static void keep_offline(struct nw_world *w, int name)
{
	const struct nw_presence *last = w->broker.presence[name];
	struct nw_presence *p = nw_alloc(sizeof(*p));
	p->refs = 1;
	p->name = name;
	if (last && w->lie != NW_LIE_WILL)
		memcpy(p->known, last->known, sizeof(p->known));
	keep_presence(w, p);
}

void nw_broker_end(struct nw_world *w, int name, bool will)
{
	struct nw_broker *b = &w->broker;
	uint64_t session = b->session[name];
	if (!session)
		return;
	b->session[name] = 0;
	b->lapse[name] = INT64_MAX;
	nw_trace(w, "broker: session %d of %s ends", (int)session, nw_names[name]);
	if (will && w->plan.wills)
		keep_offline(w, name);
	nw_send(w, &w->host[b->host_of[name]], NW_FROM_BROKER, (struct nw_msg){.what = NW_CLOSED, .conn = session});
}

static void connect_session(struct nw_world *w, struct nw_host *h, uint64_t id)
{
	nw_broker_end(w, h->name, true);
	w->broker.session[h->name] = id;
	w->broker.host_of[h->name] = h->index;
	nw_trace(w, "broker: session %d of %s", (int)id, nw_names[h->name]);
	nw_send(w, h, NW_FROM_BROKER, (struct nw_msg){.what = NW_CONNACK, .conn = id});
}

static void evict(struct nw_world *w, struct nw_host *h, int name)
{
	if (w->plan.denied) {
		nw_send(w, h, NW_FROM_BROKER, (struct nw_msg){.what = NW_REFUSED, .device = name});
		return;
	}
	w->count.evictions++;
	nw_trace(w, "broker: %s evicts %s", nw_names[h->name], nw_names[name]);
	nw_broker_end(w, name, true);
	keep_offline(w, name);
}

static void status(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg)
{
	nw_oracle_status(w, msg->device, &msg->token);
	w->broker.retained[msg->device] =
		(struct nw_stored){.state = msg->state, .seq = msg->number, .token = msg->token};
	w->count.statuses++;
	nw_send(w, h, NW_FROM_BROKER,
	        (struct nw_msg){.what = NW_PUBACK, .conn = msg->conn, .device = msg->device, .number = msg->number});
}

static void publish(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	if (w->broker.session[h->name] != msg->conn)
		return;
	if (msg->what == NW_BARRIER) {
		to_reader(w, h->index, (struct nw_msg){.what = NW_BARRIER, .number = msg->number});
	} else if (msg->what == NW_STATUS) {
		status(w, h, msg);
	} else {
		nw_send(w, h, NW_FROM_BROKER,
		        (struct nw_msg){.what = NW_PUBACK, .conn = msg->conn, .device = -1, .number = msg->number});
		keep_presence(w, msg->body);
		msg->body = NULL;
	}
}

void nw_broker_serve(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	if (msg->what == NW_CONNECT)
		connect_session(w, h, msg->conn);
	else if (msg->what == NW_EVICT)
		evict(w, h, msg->device);
	else if (msg->what != NW_CLOSED)
		publish(w, h, msg);
	else if (w->broker.session[h->name] == msg->conn)
		nw_broker_end(w, h->name, true);
}

void nw_broker_subscribe(struct nw_world *w, struct nw_host *h)
{
	uint64_t id = ++w->broker.ids;
	w->broker.reader[h->index] = id;
	h->reader = id;
	nw_wire_clear(&h->wire[NW_READ]);
	to_reader(w, h->index, (struct nw_msg){.what = NW_SUBACK});
	for (int name = 0; name < NW_HOSTS; name++)
		if (w->broker.presence[name])
			tell_presence(w, h->index, w->broker.presence[name]);
}

/* --- heartbeats -------------------------------------------------------------------------------------------------- */

/* In standby only the owner of all subscribes to them. */
static bool hears(const struct nw_world *w, const struct nw_host *h)
{
	if (!w->plan.standby)
		return true;
	for (unsigned p = 0; h->n && p < HW_PARTITIONS; p++)
		if (!hw_nodes_owns(h->n, p))
			return false;
	return h->n != NULL;
}

static void pass_on(struct nw_world *w, int device)
{
	for (int i = 0; i < w->plan.hosts; i++)
		if (w->broker.reader[i] && hears(w, &w->host[i]))
			to_reader(w, i, (struct nw_msg){.what = NW_BEAT, .device = device});
}

/* While it stands still they wait before it, and are served first. */
void nw_broker_beat(struct nw_world *w, int device)
{
	struct nw_broker *b = &w->broker;
	if (b->stopped_until <= w->t) {
		pass_on(w, device);
		return;
	}
	if (b->n_held == b->cap_held) {
		size_t cap = b->cap_held ? 2 * b->cap_held : 64;
		struct nw_msg *held = nw_alloc(cap * sizeof(*held));
		if (b->n_held)
			memcpy(held, b->held, b->n_held * sizeof(*held));
		free(b->held);
		b->held = held;
		b->cap_held = cap;
	}
	b->held[b->n_held++] = (struct nw_msg){.device = device};
}

static void lapse(struct nw_world *w)
{
	for (int name = 0; name < NW_HOSTS; name++) {
		struct nw_broker *b = &w->broker;
		const struct nw_host *h = &w->host[b->host_of[name]];
		bool reached = h->alive && nw_host_acts(w, h) && h->cut_broker <= w->t;
		if (reached || !b->session[name])
			b->lapse[name] = INT64_MAX;
		else if (b->lapse[name] == INT64_MAX)
			b->lapse[name] = w->t;
		else if (w->t - b->lapse[name] > w->plan.keepalive_ms * 3 / 2 * HW_NS_PER_MS)
			nw_broker_end(w, name, true);
	}
}

void nw_broker_step(struct nw_world *w)
{
	if (w->broker.stopped_until > w->t)
		return;
	for (size_t i = 0; i < w->broker.n_held; i++)
		pass_on(w, w->broker.held[i].device);
	w->broker.n_held = 0;
	lapse(w);
}

/* All connections end; without persistence what was retained is gone, too. */
void nw_broker_restart(struct nw_world *w, bool keeps)
{
	struct nw_broker *b = &w->broker;
	nw_trace(w, "broker: restarts, and %s", keeps ? "remembers" : "forgets");
	for (int name = 0; name < NW_HOSTS; name++)
		nw_broker_end(w, name, true);
	for (int i = 0; i < NW_HOSTS; i++) {
		b->reader[i] = 0;
		nw_wire_clear(&w->host[i].wire[NW_READ]);
		nw_wire_clear(&w->host[i].wire[NW_TO_BROKER]);
	}
	for (int name = 0; name < NW_HOSTS && !keeps; name++) {
		nw_presence_unref(b->presence[name]);
		b->presence[name] = NULL;
	}
	if (!keeps)
		memset(b->retained, 0, sizeof(b->retained));
	memset(b->most, 0, sizeof(b->most));
}
