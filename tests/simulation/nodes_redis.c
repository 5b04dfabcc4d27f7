/* SPDX-License-Identifier: MIT */
/* A Redis, as far as the scripts of several nodes go; instances that fail over with what their replica had. */
#include <stdlib.h>

#include "nodes_world.h"

static struct nw_redis *at(struct nw_world *w, int instance)
{
	return &w->redis[instance];
}

static void changed(struct nw_redis *r)
{
	r->d.version++;
}

/* The fence that every script that writes applies first. */
static bool admits(struct nw_world *w, int instance, unsigned p, const struct hw_token *t)
{
	struct nw_redis *r = at(w, instance);
	bool newer = hw_token_is_less(&r->d.owner[p].token, t);
	bool ok = hw_record_admits(&r->d.owner[p], t);
	if (newer)
		changed(r);
	if (!ok && w->lie != NW_LIE_EPOCH) {
		w->count.fenced++;
		return false;
	}
	nw_oracle_accepts(w, instance, p, t);
	return true;
}

/* --- members and owners ------------------------------------------------------------------------------------------ */

static enum hw_nodes_result join(struct nw_world *w, struct nw_redis *r, int name, const struct hw_nodes_order *o)
{
	struct nw_member *m = &r->d.member[name];
	if (m->there && m->run != o->run && w->lie != NW_LIE_JOIN)
		return HW_NODES_TAKEN;
	*m = (struct nw_member){.there = true, .ready = o->ready, .run = o->run};
	return HW_NODES_DONE;
}

static enum hw_nodes_result renew(struct nw_world *w, int instance, int name, const struct nw_order *o)
{
	struct nw_redis *r = at(w, instance);
	struct nw_member *m = &r->d.member[name];
	if (!m->there || m->run != o->o.run)
		return HW_NODES_GONE;
	m->count = o->o.count;
	m->ready = o->o.ready;
	for (unsigned p = 0; p < HW_PARTITIONS && w->lie != NW_LIE_RESTORE; p++)
		if (o->token[p].epoch && hw_token_is_less(&r->d.owner[p].token, &o->token[p])) {
			r->d.owner[p] = (struct hw_record){.token = o->token[p]};
			nw_oracle_accepts(w, instance, p, &o->token[p]);
			changed(r);
		}
	return HW_NODES_DONE;
}

static void remove_member(struct nw_world *w, struct nw_redis *r, const struct hw_nodes_order *o)
{
	for (int name = 0; name < NW_HOSTS; name++) {
		struct nw_member *m = &r->d.member[name];
		if (strcmp(nw_names[name], o->node) != 0 || !m->there)
			continue;
		if ((m->run == o->run && m->count == o->count) || w->lie == NW_LIE_COUNT) {
			m->there = false;
			w->count.removals++;
			nw_trace(w, "redis: %s is removed", o->node);
		}
	}
}

static bool is_member(const struct nw_redis *r, const char *node)
{
	for (int name = 0; name < NW_HOSTS; name++)
		if (r->d.member[name].there && strcmp(nw_names[name], node) == 0)
			return true;
	return false;
}

static bool same_record(const struct hw_record *a, const struct hw_record *b)
{
	return hw_token_compare(&a->token, &b->token) == 0 && a->released == b->released;
}

static enum hw_nodes_result claim(struct nw_world *w, int instance, int name, const struct nw_order *o,
                                  struct hw_partitions *won)
{
	struct nw_redis *r = at(w, instance);
	if (!r->d.member[name].there || r->d.member[name].run != o->o.run)
		return HW_NODES_GONE;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		struct hw_record *rec = &r->d.owner[p];
		if (!hw_partitions_has(&o->o.set, p))
			continue;
		bool free = rec->token.epoch == 0 || rec->released || strcmp(rec->token.node, nw_names[name]) == 0 ||
		            !is_member(r, rec->token.node);
		if ((!free || !same_record(rec, &o->expected[p])) && w->lie != NW_LIE_CLAIM)
			continue;
		rec->token = hw_token_make(o->o.epoch, nw_names[name]);
		rec->released = rec->clean = false;
		changed(r);
		nw_oracle_accepts(w, instance, p, &rec->token);
		nw_oracle_grants(w, p, &rec->token, o->o.run);
		hw_partitions_add(won, p);
		w->count.takeovers++;
	}
	return HW_NODES_DONE;
}

static void release(struct nw_world *w, struct nw_redis *r, const struct nw_order *o)
{
	for (unsigned p = 0; p < HW_PARTITIONS && w->lie != NW_LIE_RELEASE; p++) {
		struct hw_record *rec = &r->d.owner[p];
		if (!hw_partitions_has(&o->o.set, p) || hw_token_compare(&rec->token, &o->token[p]) != 0)
			continue;
		rec->released = true;
		rec->clean = hw_partitions_has(&o->o.clean, p);
		changed(r);
		w->count.handovers += rec->clean;
	}
}

static void view(struct nw_world *w, struct nw_host *h, struct nw_redis *r, bool full, struct nw_answer *a)
{
	size_t n = 0;
	for (int name = 0; name < NW_HOSTS; name++) {
		const struct nw_member *m = &r->d.member[name];
		if (m->there)
			a->member[n++] = (struct hw_member_entry){
				.node = nw_names[name], .run = m->run, .count = m->count, .ready = m->ready};
	}
	(void)w;
	a->nodes.members = a->member;
	a->nodes.n_members = n;
	if (!full && h->version_told == r->d.version)
		return;
	h->version_told = r->d.version;
	memcpy(a->owner, r->d.owner, sizeof(a->owner));
	a->nodes.owners = a->owner;
}

static void order(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg, struct nw_answer *a)
{
	struct nw_redis *r = at(w, msg->instance);
	const struct nw_order *o = msg->body;
	a->nodes.serial = o->o.serial;
	if (o->o.kind == HW_NODES_JOIN)
		a->nodes.result = join(w, r, h->name, &o->o);
	else if (o->o.kind == HW_NODES_RENEW)
		a->nodes.result = renew(w, msg->instance, h->name, o);
	else if (o->o.kind == HW_NODES_REMOVE)
		remove_member(w, r, &o->o);
	else if (o->o.kind == HW_NODES_CLAIM)
		a->nodes.result = claim(w, msg->instance, h->name, o, &a->nodes.won);
	else if (o->o.kind == HW_NODES_RELEASE)
		release(w, r, o);
	else if (r->d.member[h->name].run == o->o.run)
		r->d.member[h->name].there = false;
	a->nodes.last = (struct hw_event_id){.ms = r->d.n_entries};
	view(w, h, r, o->full, a);
}

/* --- transitions ------------------------------------------------------------------------------------------------- */

static void append(struct nw_world *w, int instance, const struct nw_entry *e)
{
	struct nw_redis *r = at(w, instance);
	nw_oracle_entry(w, instance, e);
	if (r->d.n_entries == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		struct nw_entry *entry = nw_alloc(cap * sizeof(*entry));
		if (r->d.n_entries)
			memcpy(entry, r->entry, r->d.n_entries * sizeof(*entry));
		free(r->entry);
		r->entry = entry;
		r->cap = cap;
	}
	r->entry[r->d.n_entries++] = *e;
	w->count.entries += instance == w->master;
}

static int edge(struct nw_world *w, const struct nw_msg *msg, struct nw_answer *a)
{
	struct nw_redis *r = at(w, msg->instance);
	struct nw_stored *s = &r->d.device[msg->device];
	unsigned p = w->part[msg->device];
	if (!admits(w, msg->instance, p, &msg->token)) {
		a->owner[p] = r->d.owner[p];
		return NW_FENCED;
	}
	if (msg->number <= s->seq) {
		a->stored[msg->device] = *s;
		bool same = msg->number == s->seq && hw_token_compare(&msg->token, &s->token) == 0;
		return same ? NW_WRITTEN : NW_NEWER;
	}
	struct nw_entry e = {.device = msg->device, .state = msg->state, .token = msg->token, .seq = msg->number};
	if (s->state != msg->state || w->lie == NW_LIE_TWICE)
		append(w, msg->instance, &e);
	*s = (struct nw_stored){.state = msg->state, .seq = msg->number, .token = msg->token};
	return NW_WRITTEN;
}

static void follow(struct nw_world *w, const struct nw_msg *msg, struct nw_answer *a)
{
	const struct nw_redis *r = at(w, msg->instance);
	a->last = r->d.n_entries;
	a->stream = r->d.stream;
	for (size_t i = msg->number; i < r->d.n_entries && a->n_entries < 64; i++)
		a->entry[a->n_entries++] = r->entry[i];
}

static void load(struct nw_world *w, const struct nw_msg *msg, struct nw_answer *a)
{
	const struct nw_redis *r = at(w, msg->instance);
	a->last = r->d.n_entries;
	a->stream = r->d.stream;
	memcpy(a->stored, r->d.device, sizeof(a->stored));
}

void nw_redis_serve(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	struct nw_answer *a;
	if (!at(w, msg->instance)->up)
		return;
	a = nw_alloc(sizeof(*a));
	a->of = msg->what;
	if (msg->what == NW_ORDER)
		order(w, h, msg, a);
	else if (msg->what == NW_EDGES)
		a->result = edge(w, msg, a);
	else if (msg->what == NW_FOLLOW)
		follow(w, msg, a);
	else
		load(w, msg, a);
	struct nw_msg answer = *msg;
	answer.what = NW_ANSWER;
	answer.body = a;
	nw_send(w, h, NW_FROM_REDIS, answer);
}

/* --- replicas ---------------------------------------------------------------------------------------------------- */

void nw_redis_snapshot(struct nw_world *w)
{
	int k = w->snapshots++ % NW_SNAPSHOTS;
	w->snapshot[k] = w->redis[w->master].d;
	w->snapshot_at[k] = w->t;
}

/* The replica had all but the last `lag`; the old master is dead, or goes on with those that have not left it. */
void nw_redis_failover(struct nw_world *w)
{
	const struct nw_data *d = NULL;
	if (w->instances == NW_INSTANCES)
		return;
	for (int k = w->snapshots > NW_SNAPSHOTS ? w->snapshots - NW_SNAPSHOTS : 0; k < w->snapshots; k++)
		if (w->snapshot_at[k % NW_SNAPSHOTS] <= w->t - w->plan.lag_ms * HW_NS_PER_MS)
			d = &w->snapshot[k % NW_SNAPSHOTS];
	struct nw_redis *old = &w->redis[w->master], *new = &w->redis[w->instances];
	if (w->plan.lag_ms == 0 || !d)
		d = &old->d;
	new->d = *d;
	new->d.version = old->d.version + 1000;
	new->cap = d->n_entries;
	if (d->n_entries) {
		new->entry = nw_alloc(d->n_entries * sizeof(*new->entry));
		memcpy(new->entry, old->entry, d->n_entries * sizeof(*new->entry));
	}
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		new->most[p] = new->d.owner[p].token;
	new->up = true;
	old->up = sim_chance(&w->random, 0.6);
	w->master = w->instances++;
	w->snapshots = 0;
	w->count.failovers++;
	nw_trace(w, "redis: fails over to %d with %zu of %zu entries, the old one is %s", w->master, new->d.n_entries,
	         old->d.n_entries, old->up ? "up" : "dead");
	for (int i = 0; i < w->plan.hosts; i++)
		w->host[i].leave_at = w->t + sim_between(&w->random, 0, 2 * w->plan.lease_ms) * HW_NS_PER_MS;
}

void nw_redis_flush(struct nw_world *w)
{
	struct nw_redis *r = &w->redis[w->master];
	uint64_t version = r->d.version;
	unsigned stream = r->d.stream;
	memset(&r->d, 0, sizeof(r->d));
	memset(r->most, 0, sizeof(r->most));
	r->d.version = version + 1;
	r->d.stream = stream + 1;
	w->snapshots = 0;
	nw_trace(w, "redis: flushed");
}
