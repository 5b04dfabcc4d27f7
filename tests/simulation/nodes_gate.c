/* SPDX-License-Identifier: MIT */
/*
 * The gate, with devices of a plain kind: a watcher notes what it would have decided, an owner decides, writes and
 * publishes (10.6). Heard within the timeout is online; silent for it, as a barrier sent after that proves, is offline.
 */
#include "nodes_world.h"

#define WITHOUT_REDIS_NS HW_NS_PER_S
#define KEPT_NS          (60 * HW_NS_PER_S)

static int64_t clock_of(const struct nw_world *w, const struct nw_host *h)
{
	return nw_host_now(w, h).mono.ns;
}

static bool owns(const struct nw_world *w, const struct nw_host *h, int d)
{
	return hw_nodes_owns(h->n, w->part[d]);
}

static int unconfirmed(const struct nw_record *r)
{
	int n = 0;
	for (int i = 0; i < r->n_edges; i++)
		n += r->edge[i].confirmed == 0;
	return n;
}

static void drop_edge(struct nw_record *r, int i)
{
	memmove(&r->edge[i], &r->edge[i + 1], (size_t)(--r->n_edges - i) * sizeof(*r->edge));
}

static void owe(const struct nw_world *w, const struct nw_host *h, struct nw_record *r)
{
	if (r->state != NW_NONE && !r->owed) {
		r->owed = true;
		r->owed_since = clock_of(w, h);
	}
}

/* --- deciding ---------------------------------------------------------------------------------------------------- */

static enum nw_state evidence(const struct nw_world *w, const struct nw_host *h, const struct nw_record *r)
{
	int64_t timeout = w->plan.timeout_ms * HW_NS_PER_MS, now = clock_of(w, h);
	int64_t since = r->heard > h->lossy_end ? r->heard : h->lossy_end;
	if (r->heard && now - r->heard < timeout && h->reads)
		return NW_ONLINE;
	if (h->reads && h->session && h->proven - since >= timeout && now - h->proven < 2 * HW_NS_PER_S)
		return NW_OFFLINE;
	return NW_NONE;
}

static void add_edge(struct nw_world *w, struct nw_host *h, int d, uint64_t seq)
{
	struct nw_record *r = &h->device[d];
	if (r->n_edges == NW_KEPT)
		drop_edge(r, 0);
	r->edge[r->n_edges++] = (struct nw_edge){
		.state = r->state, .seq = seq, .token = hw_nodes_token(h->n, w->part[d]), .made = clock_of(w, h)};
	r->seq = seq;
}

static uint64_t next_seq(const struct nw_world *w, const struct nw_host *h, const struct nw_record *r)
{
	uint64_t wall = (uint64_t)nw_host_now(w, h).wall_ms;
	return wall > r->seq ? wall : r->seq + 1;
}

static void decide(struct nw_world *w, struct nw_host *h, int d)
{
	struct nw_record *r = &h->device[d];
	enum nw_state state = evidence(w, h, r);
	if (state == NW_NONE || state == r->state || (state == NW_OFFLINE && r->state == NW_NONE) ||
	    unconfirmed(r) >= NW_KEPT / 2)
		return;
	if (state == NW_OFFLINE)
		nw_oracle_offline(w, h, d);
	r->state = state;
	add_edge(w, h, d, next_seq(w, h, r));
	r->owed = false;
	owe(w, h, r);
	nw_trace(w, "%s: dev-%d (%u) is %s, seq %llu", nw_names[h->name], d, w->part[d],
	         state == NW_ONLINE ? "online" : "offline", (unsigned long long)r->seq);
}

/* --- writing and publishing -------------------------------------------------------------------------------------- */

static void write_edges(struct nw_world *w, struct nw_host *h, int d)
{
	struct nw_record *r = &h->device[d];
	for (int i = 0; i < r->n_edges && h->instance >= 0; i++) {
		struct nw_edge *e = &r->edge[i];
		if (e->asked)
			continue;
		e->asked = true;
		if (h->redis_waiting++ == 0)
			h->redis_asked = w->t;
		nw_wire_push(&h->sent[NW_TO_REDIS], (struct nw_msg){.what = NW_EDGES,
		                                                    .conn = h->conn,
		                                                    .instance = h->instance,
		                                                    .device = d,
		                                                    .state = e->state,
		                                                    .number = e->seq,
		                                                    .token = e->token});
	}
}

static void publish(struct nw_world *w, struct nw_host *h, int d)
{
	struct nw_record *r = &h->device[d];
	bool settled = unconfirmed(r) == 0 || clock_of(w, h) - r->owed_since > WITHOUT_REDIS_NS;
	bool fence = hw_nodes_publishes(h->n, w->part[d]) || w->lie == NW_LIE_FENCE;
	if (!r->owed || r->state == NW_NONE || !settled || !fence || !h->session)
		return;
	r->owed = false;
	r->said = r->seq;
	nw_wire_push(&h->sent[NW_TO_BROKER], (struct nw_msg){.what = NW_STATUS,
	                                                     .conn = h->session,
	                                                     .device = d,
	                                                     .state = r->state,
	                                                     .number = r->seq,
	                                                     .token = hw_nodes_token(h->n, w->part[d])});
}

static bool is_settled(const struct nw_record *r)
{
	return unconfirmed(r) == 0 && (!r->owed || r->state == NW_NONE) && !r->said;
}

static void flush_drained(struct nw_world *w, struct nw_host *h)
{
	for (unsigned p = 0; hw_partitions_any(&h->drained) && p < HW_PARTITIONS; p++) {
		bool settled = true;
		if (!hw_partitions_has(&h->drained, p))
			continue;
		for (int d = 0; d < w->plan.devices; d++)
			settled &= w->part[d] != p || is_settled(&h->device[d]);
		if (!settled && w->lie != NW_LIE_FLUSHED)
			continue;
		hw_partitions_del(&h->drained, p);
		hw_nodes_flushed(h->n, nw_host_now(w, h), p, true);
		h->poked = true;
	}
}

/* --- the stream -------------------------------------------------------------------------------------------------- */

static void followed(struct nw_world *w, struct nw_host *h)
{
	if (!h->loaded || (h->followed < h->waits_for && w->lie != NW_LIE_FOLLOW))
		return;
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_record *r = &h->device[d];
		if (hw_partitions_has(&h->compare, w->part[d]) && r->state != NW_NONE && r->n_edges == 0)
			add_edge(w, h, d, r->seq);
	}
	h->waits = h->compare = (struct hw_partitions){{0}};
}

void nw_gate_work(struct nw_world *w, struct nw_host *h)
{
	followed(w, h);
	flush_drained(w, h);
	for (int d = 0; d < w->plan.devices; d++) {
		unsigned p = w->part[d];
		if (w->lie == NW_LIE_GATE && h->loaded && !hw_partitions_has(&h->waits, p) && h->n)
			decide(w, h, d);
		if (!hw_nodes_owns(h->n, p) || hw_partitions_has(&h->waits, p))
			continue;
		if (hw_nodes_decides(h->n, p))
			decide(w, h, d);
		write_edges(w, h, d);
		publish(w, h, d);
	}
}

/* What a watcher knows is what the stream says; so it is for what was won but not followed that far. */
static bool is_watched(const struct nw_world *w, const struct nw_host *h, int d)
{
	return !owns(w, h, d) || hw_partitions_has(&h->waits, w->part[d]);
}

void nw_gate_entries(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg)
{
	const struct nw_answer *a = msg->body;
	if (!h->loaded || msg->number != h->followed)
		return;               /* the answer to an earlier question */
	if (a->stream != h->stream) { /* flushed */
		h->loaded = h->following = false;
		if (h->redis_waiting++ == 0)
			h->redis_asked = w->t;
		nw_wire_push(&h->sent[NW_TO_REDIS],
		             (struct nw_msg){.what = NW_LOAD, .conn = h->conn, .instance = h->instance});
		nw_gate_relinked(w, h);
		return;
	}
	for (size_t i = 0; i < a->n_entries; i++) {
		const struct nw_entry *e = &a->entry[i];
		struct nw_record *r = &h->device[e->device];
		if (is_watched(w, h, e->device)) {
			r->state = e->state;
			r->seq = e->seq;
		}
	}
	h->followed += a->n_entries;
	h->following = h->followed >= a->last;
}

void nw_gate_load(struct nw_world *w, struct nw_host *h, const struct nw_answer *a)
{
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_record *r = &h->device[d];
		if (!is_watched(w, h, d))
			continue;
		/* What a Redis that was emptied does not know is kept, for whoever comes to own it. */
		if (a->stored[d].state == NW_NONE)
			continue;
		r->state = a->stored[d].state;
		r->seq = a->stored[d].seq;
	}
	h->loaded = true;
	h->followed = a->last;
	h->stream = a->stream;
	h->follow_next = w->t;
}

/* --- ownership --------------------------------------------------------------------------------------------------- */

void nw_gate_own(struct nw_world *w, struct nw_host *h, const struct hw_nodes_order *o)
{
	h->waits_for = o->last.ms;
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++) {
		h->waits.bits[k] |= o->set.bits[k];
		h->compare.bits[k] |= o->set.bits[k] & ~o->clean.bits[k];
	}
	if (w->plan.standby && h->loaded)
		h->lossy_end = clock_of(w, h) + HW_NS_PER_S;
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_record *r = &h->device[d];
		unsigned p = w->part[d];
		if (!hw_partitions_has(&o->set, p))
			continue;
		nw_trace(w, "%s: owns %u (dev-%d) with %llu, %s", nw_names[h->name], p, d,
		         (unsigned long long)hw_nodes_token(h->n, p).epoch,
		         hw_partitions_has(&o->clean, p) ? "clean" : "unclean");
		r->n_edges = 0;
		r->said = 0;
		r->owed = false;
		if (!hw_partitions_has(&o->clean, p) && w->lie != NW_LIE_UNCLEAN) {
			r->owed = true; /* also of one that is not known yet */
			r->owed_since = clock_of(w, h);
		}
	}
}

void nw_gate_lose(struct nw_world *w, struct nw_host *h, const struct hw_partitions *set)
{
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++) {
		h->waits.bits[k] &= ~set->bits[k];
		h->compare.bits[k] &= ~set->bits[k];
		h->drained.bits[k] &= ~set->bits[k];
	}
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_record *r = &h->device[d];
		if (!hw_partitions_has(set, w->part[d]))
			continue;
		nw_trace(w, "%s: %u (dev-%d) is not its own any more", nw_names[h->name], w->part[d], d);
		nw_oracle_forgets(w, h, d);
		r->n_edges = 0;
		r->owed = false;
		r->said = 0;
	}
	/* What was told beyond the stream may not have been taken: the stream says what is so. */
	if (h->loaded && h->instance >= 0) {
		h->loaded = h->following = false;
		if (h->redis_waiting++ == 0)
			h->redis_asked = w->t;
		nw_wire_push(&h->sent[NW_TO_REDIS],
		             (struct nw_msg){.what = NW_LOAD, .conn = h->conn, .instance = h->instance});
	}
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

/* The store has a newer record: its seq is adopted, and ours written anew if it says otherwise. */
static void adopt(struct nw_world *w, struct nw_host *h, int d, const struct nw_stored *s)
{
	struct nw_record *r = &h->device[d];
	r->seq = s->seq > r->seq ? s->seq : r->seq;
	if (s->state == r->state || unconfirmed(r) > 0)
		return;
	add_edge(w, h, d, next_seq(w, h, r));
	r->owed = false;
	owe(w, h, r);
}

void nw_gate_answer(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg)
{
	const struct nw_answer *a = msg->body;
	struct nw_record *r = &h->device[msg->device];
	struct hw_now now = nw_host_now(w, h);
	unsigned p = w->part[msg->device];
	if (a->result == NW_FENCED) {
		hw_nodes_refused(h->n, now, p, &a->owner[p].token);
		return;
	}
	for (int i = 0; i < r->n_edges; i++) {
		struct nw_edge *e = &r->edge[i];
		if (e->seq != msg->number || hw_token_compare(&e->token, &msg->token) != 0)
			continue;
		if (a->result == NW_WRITTEN) {
			e->confirmed = now.mono.ns;
			nw_oracle_confirms(w, h, msg);
			return;
		}
		bool again = e->confirmed != 0;
		if (!again)
			drop_edge(r, i);
		else if (a->stored[msg->device].seq == r->seq)
			return; /* a kept one that is in the store, behind others of ours */
		adopt(w, h, msg->device, &a->stored[msg->device]);
		return;
	}
}

void nw_gate_acked(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg)
{
	struct nw_record *r = &h->device[msg->device];
	(void)w;
	if (r->said == msg->number)
		r->said = 0;
}

/* Over a new connection, or to a Redis that came back empty: edges not confirmed, and those that are kept, in order;
 * then every device's present state (10.8). */
void nw_gate_relinked(struct nw_world *w, struct nw_host *h)
{
	int64_t now = clock_of(w, h);
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_record *r = &h->device[d];
		for (int i = 0; i < r->n_edges; i++) {
			struct nw_edge *e = &r->edge[i];
			bool old = e->confirmed && (now - e->confirmed > KEPT_NS || w->lie == NW_LIE_KEPT);
			if (old)
				drop_edge(r, i--);
			else
				e->asked = false;
		}
		if (owns(w, h, d) && r->n_edges == 0 && r->state != NW_NONE &&
		    !hw_partitions_has(&h->waits, w->part[d]))
			add_edge(w, h, d, r->seq);
	}
}

/* A session begins: every status is owed again; or ends: what was not acknowledged. */
void nw_gate_session(struct nw_world *w, struct nw_host *h)
{
	for (int d = 0; d < w->plan.devices; d++) {
		struct nw_record *r = &h->device[d];
		if (owns(w, h, d) && (r->said || h->session))
			owe(w, h, r);
		r->said = 0;
	}
}
