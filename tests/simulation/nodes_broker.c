/* SPDX-License-Identifier: MIT */
/* A model of a broker. A client id has one connection; a newer connection ends the older one. Of the older one, the
 * broker passes on only what it has read already. Retained messages arrive before or after the answer to a
 * subscription. */
#include <stdlib.h>

#include "nodes_world.h"

bool nw_broker_reachable(const struct nw_world *w, const struct nw_host *h)
{
	return h->cut_broker <= w->t && w->broker.stopped_until <= w->t;
}

/* --- what is passed on ------------------------------------------------------------------------------------------- */

static void to_reader(struct nw_world *w, int name, struct nw_msg msg)
{
	const struct nw_client *r = &w->broker.reader[name];
	msg.conn = r->conn;
	if (msg.conn)
		nw_send(w, &w->host[r->host], NW_READ, msg);
	else
		nw_msg_fini(&msg);
}

/* Whether the reader's socket and its queue are full, because the reader has not read for too long. */
static bool is_full(const struct nw_world *w, int name)
{
	const struct nw_wire *wire = &w->host[w->broker.reader[name].host].wire[NW_READ];
	return w->plan.pipe_ms && wire->n && w->t - wire->ring[wire->head].at > w->plan.pipe_ms * HW_NS_PER_MS;
}

static void tell(struct nw_world *w, int name, struct nw_text *t, bool retained)
{
	if (w->broker.reader[name].conn && !(t->kind == NW_BEAT && is_full(w, name)))
		to_reader(w, name, (struct nw_msg){.what = NW_MESSAGE, .text = nw_text_ref(t), .retained = retained});
	else if (t->kind == NW_BEAT)
		nw_oracle_misses(w, name, -1, t->device);
}

static void tell_all(struct nw_world *w, struct nw_text *t)
{
	for (int name = 0; name < NW_HOSTS; name++)
		tell(w, name, t, false);
}

static void tell_retained(struct nw_world *w, int name)
{
	for (int k = 0; k < NW_HOSTS; k++) {
		if (w->broker.presence[k])
			tell(w, name, w->broker.presence[k], true);
		if (w->broker.known[k])
			tell(w, name, w->broker.known[k], true);
	}
}

static void keep(struct nw_text **at, struct nw_text *t)
{
	nw_text_unref(*at);
	*at = t->len ? nw_text_ref(t) : NULL;
}

/* Takes a status: stores it as the device's retained message, and passes its token to the oracle, which compares the
 * tokens. */
static void take_status(struct nw_world *w, const struct nw_text *t)
{
	struct nw_kept k = {.what = NW_K_OFFLINE};
	const char *json = nw_payload(t), *by = strstr(json, "\"by\":\""), *epoch = strstr(json, "\"epoch\":"),
		   *seq = strstr(json, "\"seq\":");
	k.token = hw_fencing_token_make(epoch ? strtoull(epoch + 8, NULL, 10) : 0, by ? (char[]){by[6], '\0'} : "");
	k.seq = seq ? strtoull(seq + 6, NULL, 10) : 0;
	if (strstr(json, "\"online\":true"))
		k.what = NW_K_ONLINE;
	nw_oracle_status(w, nw_name_of(k.token.node, strlen(k.token.node)), t->device, &k.token);
	w->broker.retained[t->device] = k;
	if (k.seq > w->broker.most_seq[t->device])
		w->broker.most_seq[t->device] = k.seq;
	w->count.statuses++;
	nw_trace(w, "broker: dev-%d (%u) %s, (%d %s) seq %d", t->device, w->part[t->device],
	         k.what == NW_K_ONLINE ? "online" : "offline", (int)k.token.epoch, k.token.node, (int)k.seq);
}

/* Takes a message: stores it if it is to be retained, and sends it to every reader. */
static void take(struct nw_world *w, struct nw_text *t)
{
	if (t->kind == NW_PRESENCE)
		keep(&w->broker.presence[t->name], t);
	else if (t->kind == NW_KNOWN)
		keep(&w->broker.known[t->name], t);
	else if (t->kind == NW_STATUS)
		take_status(w, t);
	else if (t->kind == NW_GOODBYE)
		w->broker.retained[t->device].what = NW_K_WILL;
	tell_all(w, t);
}

/* --- connections ------------------------------------------------------------------------------------------------- */

/* A lie: the node's will also replaces its known tokens. */
static void forget_known(struct nw_world *w, int name)
{
	if (!w->broker.known[name])
		return;
	nw_text_unref(w->broker.known[name]);
	w->broker.known[name] = NULL;
}

static struct nw_client *client_of(struct nw_world *w, int name, enum nw_clients kind)
{
	return kind == NW_C_READER    ? &w->broker.reader[name]
	       : kind == NW_C_SESSION ? &w->broker.session[name]
	                              : &w->broker.barriers[name];
}

void nw_broker_end(struct nw_world *w, int name, enum nw_clients kind, bool will)
{
	static const enum nw_wires back[] = {
		[NW_C_SESSION] = NW_FROM_BROKER, [NW_C_READER] = NW_READ, [NW_C_BARRIERS] = NW_FROM_BARRIERS};
	static const char *const words[] = {"session", "reader", "barriers"};
	struct nw_client *c = client_of(w, name, kind);
	struct nw_client was = *c;
	if (!was.conn)
		return;
	*c = (struct nw_client){.lapse = INT64_MAX};
	nw_trace(w, "broker: %s %d of %s ends", words[kind], (int)was.conn, nw_names[name]);
	if (will && was.will && w->plan.wills) {
		take(w, was.will);
		if (w->lie == NW_LIE_WILL)
			forget_known(w, name);
	}
	nw_text_unref(was.will);
	nw_send(w, &w->host[was.host], back[kind], (struct nw_msg){.what = NW_CLOSED, .conn = was.conn});
}

static void connect_client(struct nw_world *w, struct nw_host *h, struct nw_msg *msg, enum nw_clients kind)
{
	struct nw_client *c = client_of(w, h->name, kind);
	nw_broker_end(w, h->name, kind, true);
	*c = (struct nw_client){.conn = msg->conn, .host = h->index, .lapse = INT64_MAX, .will = msg->text};
	msg->text = NULL;
	nw_trace(w, "broker: client %d of %s", (int)msg->conn, nw_names[h->name]);
	if (kind == NW_C_SESSION)
		nw_oracle_begins(w, h, msg->conn);
	if (kind != NW_C_READER)
		nw_send(w, h, kind == NW_C_SESSION ? NW_FROM_BROKER : NW_FROM_BARRIERS,
		        (struct nw_msg){.what = NW_CONNACK, .conn = msg->conn});
}

static void answer_subscription(struct nw_world *w, struct nw_host *h, enum nw_what how)
{
	bool ahead = sim_chance(&w->random, 0.3);
	if (ahead)
		tell_retained(w, h->name);
	to_reader(w, h->name, (struct nw_msg){.what = how});
	if (!ahead)
		tell_retained(w, h->name);
}

static void evict(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg)
{
	enum nw_what how = w->plan.denied ? NW_REFUSED : NW_EVICTED;
	if (!w->plan.denied) {
		w->count.evictions++;
		nw_trace(w, "broker: %s evicts %s", nw_names[h->name], nw_names[msg->text->name]);
		if (w->lie != NW_LIE_EVICT)
			nw_broker_end(w, msg->text->name, NW_C_SESSION, true);
		take(w, msg->text);
	}
	nw_send(w, h, NW_FROM_EVICT, (struct nw_msg){.what = how, .number = msg->number});
}

static void publish(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg, enum nw_clients kind)
{
	if (client_of(w, h->name, kind)->conn != msg->conn)
		return;
	if (msg->what == NW_BARRIER)
		to_reader(w, h->name, (struct nw_msg){.what = NW_BARRIER, .number = msg->number, .mark = msg->mark});
	else
		take(w, msg->text);
	nw_send(w, h, kind == NW_C_SESSION ? NW_FROM_BROKER : NW_FROM_BARRIERS,
	        (struct nw_msg){.what = NW_PUBACK, .conn = msg->conn, .number = msg->number, .mark = msg->mark});
}

static void serve_reader(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	bool ours = w->broker.reader[h->name].conn == msg->conn;
	if (msg->what == NW_SUBSCRIBE) {
		connect_client(w, h, msg, NW_C_READER);
		answer_subscription(w, h, NW_SUBACK);
	} else if (ours && msg->what == NW_REPLAY) {
		answer_subscription(w, h, NW_REPLAYED);
	} else if (ours) {
		nw_broker_end(w, h->name, NW_C_READER, false);
	}
}

void nw_broker_serve(struct nw_world *w, struct nw_host *h, enum nw_wires k, struct nw_msg *msg)
{
	enum nw_clients kind = k == NW_TO_BARRIERS ? NW_C_BARRIERS : NW_C_SESSION;
	if (k == NW_TO_READER)
		serve_reader(w, h, msg);
	else if (k == NW_TO_EVICT)
		evict(w, h, msg);
	else if (msg->what == NW_CONNECT)
		connect_client(w, h, msg, kind);
	else if (msg->what != NW_CLOSED)
		publish(w, h, msg, kind);
	else if (client_of(w, h->name, kind)->conn == msg->conn)
		nw_broker_end(w, h->name, kind, msg->number == 0);
}

/* --- devices ----------------------------------------------------------------------------------------------------- */

/* Receives a message of a device. While the broker stands still, the message waits in front of the broker. After the
 * standstill, waiting messages are handled first. */
void nw_broker_hears(struct nw_world *w, struct nw_text *t)
{
	struct nw_broker *b = &w->broker;
	if (b->stopped_until <= w->t)
		take(w, t);
	else if (b->n_held < sizeof(b->held) / sizeof(*b->held))
		b->held[b->n_held++] = t;
}

static void lapse(struct nw_world *w, int name, enum nw_clients kind)
{
	struct nw_client *c = client_of(w, name, kind);
	const struct nw_host *h = &w->host[c->host];
	bool reached = h->app && nw_host_acts(w, h) && h->cut_broker <= w->t;
	if (reached || !c->conn)
		c->lapse = INT64_MAX;
	else if (c->lapse == INT64_MAX)
		c->lapse = w->t;
	else if (w->t - c->lapse > w->plan.keepalive_ms * 3 / 2 * HW_NS_PER_MS)
		nw_broker_end(w, name, kind, true);
}

void nw_broker_step(struct nw_world *w)
{
	struct nw_broker *b = &w->broker;
	if (b->stopped_until > w->t)
		return;
	for (size_t i = 0; i < b->n_held; i++)
		take(w, b->held[i]);
	b->n_held = 0;
	for (int name = 0; name < NW_HOSTS; name++) {
		lapse(w, name, NW_C_SESSION);
		lapse(w, name, NW_C_READER);
		lapse(w, name, NW_C_BARRIERS);
	}
}

/* Ends all connections. Without persistence, the retained messages are lost, too. A broker that is stopped cleanly
 * first publishes the wills of all connected clients. */
void nw_broker_restart(struct nw_world *w, bool keeps)
{
	struct nw_broker *b = &w->broker;
	bool clean = sim_chance(&w->random, 0.5);
	nw_trace(w, "broker: restarts%s, and %s", clean ? " cleanly" : "", keeps ? "remembers" : "forgets");
	nw_fleet_torn(w, clean);
	for (int name = 0; name < NW_HOSTS; name++) {
		nw_broker_end(w, name, NW_C_SESSION, clean);
		nw_broker_end(w, name, NW_C_READER, false);
		nw_broker_end(w, name, NW_C_BARRIERS, false);
	}
	for (int i = 0; i < NW_HOSTS; i++) {
		nw_wire_clear(&w->host[i].wire[NW_TO_BROKER]);
		nw_wire_clear(&w->host[i].wire[NW_TO_BARRIERS]);
		nw_wire_clear(&w->host[i].wire[NW_TO_READER]);
	}
	for (int name = 0; name < NW_HOSTS && !keeps; name++) {
		nw_text_unref(b->presence[name]);
		nw_text_unref(b->known[name]);
		b->presence[name] = b->known[name] = NULL;
	}
	if (!keeps)
		memset(b->retained, 0, sizeof(b->retained));
	memset(b->most, 0, sizeof(b->most));
}

void nw_broker_fini(struct nw_world *w)
{
	for (int name = 0; name < NW_HOSTS; name++) {
		nw_text_unref(w->broker.presence[name]);
		nw_text_unref(w->broker.known[name]);
		nw_text_unref(w->broker.session[name].will);
		nw_text_unref(w->broker.reader[name].will);
	}
}
