/* SPDX-License-Identifier: MIT */
/* A model of Redis with the effects of the scripts of nodes and devices. At a failover, another instance takes over
 * with the data that its replica had. */
#include <stdlib.h>

#include "nodes_world.h"

static struct nw_redis *at(struct nw_world *w, int instance)
{
	return &w->redis[instance];
}

/* Returns the clock of the machine on which all instances run. */
static int64_t clock_ms(const struct nw_world *w)
{
	return NW_WALL_MS + (w->t + w->redis_wall_off) / HW_NS_PER_MS;
}

static void changed(struct nw_redis *r)
{
	r->d.version++;
}

/* The fence that every script that writes applies first. */
static bool admits(struct nw_world *w, int instance, unsigned p, const struct hw_fencing_token *t)
{
	struct nw_redis *r = at(w, instance);
	bool newer = hw_fencing_token_is_less(&r->d.owner[p].token, t);
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

static void say_entry(struct nw_member *m, const struct nw_order *o)
{
	m->unable = o->unable;
	memcpy(m->entry, o->entry, sizeof(m->entry));
}

static enum hw_nodes_result join(struct nw_world *w, struct nw_redis *r, int name, const struct nw_order *order)
{
	const struct hw_nodes_order *o = &order->o;
	struct nw_member *m = &r->d.member[name];
	if (m->there && m->run != o->run && w->lie != NW_LIE_JOIN)
		return HW_NODES_TAKEN;
	int64_t joined = m->there || m->left ? m->joined : w->t;
	*m = (struct nw_member){
		.there = true, .ready = o->ready, .run = o->run, .count = o->count, .renewed = w->t, .joined = joined};
	say_entry(m, order);
	return HW_NODES_DONE;
}

static enum hw_nodes_result renew(struct nw_world *w, int instance, int name, const struct nw_order *o)
{
	struct nw_redis *r = at(w, instance);
	struct nw_member *m = &r->d.member[name];
	if (!m->there || m->run != o->o.run)
		return HW_NODES_GONE;
	m->count = o->o.count;
	m->renewed = w->t;
	m->ready = o->o.ready;
	say_entry(m, o);
	for (unsigned p = 0; p < HW_PARTITIONS && w->lie != NW_LIE_RESTORE; p++)
		if (o->token[p].epoch && hw_fencing_token_is_less(&r->d.owner[p].token, &o->token[p])) {
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
			m->left = true;
			w->count.removals++;
			nw_oracle_removes(w, o->node, m->renewed);
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
	return hw_fencing_token_compare(&a->token, &b->token) == 0 && a->released == b->released;
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
		bool same = w->lie == NW_LIE_SAME && strcmp(rec->token.node, nw_names[name]) == 0;
		rec->token = hw_fencing_token_make(same ? rec->token.epoch : o->o.epoch, nw_names[name]);
		rec->released = rec->clean = false;
		changed(r);
		nw_oracle_accepts(w, instance, p, &rec->token);
		nw_oracle_grants(w, instance, p, &rec->token, o->o.run);
		hw_partitions_add(won, p);
		w->count.takeovers++;
	}
	return HW_NODES_DONE;
}

static void release(struct nw_world *w, struct nw_redis *r, const struct nw_order *o)
{
	for (unsigned p = 0; p < HW_PARTITIONS && w->lie != NW_LIE_RELEASE; p++) {
		struct hw_record *rec = &r->d.owner[p];
		if (!hw_partitions_has(&o->o.set, p) || hw_fencing_token_compare(&rec->token, &o->token[p]) != 0)
			continue;
		rec->released = true;
		rec->clean = hw_partitions_has(&o->o.clean, p);
		changed(r);
		w->count.handovers += rec->clean;
	}
}

static void view(const struct nw_world *w, struct nw_host *h, struct nw_redis *r, struct nw_order *o)
{
	size_t n = 0;
	struct nw_link *l = &h->link[NW_L_CLUSTER];
	for (int name = 0; name < NW_HOSTS; name++) {
		const struct nw_member *m = &r->d.member[name];
		if (!m->there && m->left)
			o->left[o->answer.n_left++] = nw_names[name];
		if (!m->there)
			continue;
		memcpy(o->entries[n], m->entry, sizeof(m->entry));
		o->member[n++] = (struct hw_member_entry){.node = nw_names[name],
		                                          .run = m->run,
		                                          .count = m->count,
		                                          .ready = m->ready,
		                                          .unable = m->unable};
	}
	o->answer.left = o->left;
	o->answer.now_s = (uint64_t)clock_ms(w) / 1000;
	o->answer.members = o->member;
	o->answer.n_members = n;
	if (!o->full && l->version_told == r->d.version)
		return;
	l->version_told = r->d.version;
	memcpy(o->owner, r->d.owner, sizeof(o->owner));
	o->answer.owners = o->owner;
}

static void order(struct nw_world *w, struct nw_host *h, int instance, struct nw_order *o)
{
	struct nw_redis *r = at(w, instance);
	o->answer.serial = o->o.serial;
	if (o->o.kind == HW_NODES_JOIN)
		o->answer.result = join(w, r, h->name, o);
	else if (o->o.kind == HW_NODES_RENEW)
		o->answer.result = renew(w, instance, h->name, o);
	else if (o->o.kind == HW_NODES_REMOVE)
		remove_member(w, r, &o->o);
	else if (o->o.kind == HW_NODES_CLAIM)
		o->answer.result = claim(w, instance, h->name, o, &o->answer.won);
	else if (o->o.kind == HW_NODES_RELEASE)
		release(w, r, o);
	else if (r->d.member[h->name].run == o->o.run)
		r->d.member[h->name] = (struct nw_member){.left = true};
	if (w->lie != NW_LIE_FOLLOW)
		o->answer.last = r->d.last;
	view(w, h, r, o);
}

/* --- the stream -------------------------------------------------------------------------------------------------- */

/* Wakes each host that waits for more entries. */
static void wake(struct nw_world *w, int instance)
{
	struct nw_redis *r = at(w, instance);
	for (int i = 0; i < w->plan.hosts; i++) {
		uint64_t conn = r->blocked[i].conn;
		r->blocked[i].conn = 0;
		if (conn)
			nw_send(w, &w->host[i], NW_FROM_REDIS + NW_L_TAIL,
			        (struct nw_msg){.what = NW_BLOCK, .conn = conn, .instance = instance});
	}
}

/* Returns the id that "*" stands for: by the clock of Redis' host, but always greater than the last id. */
static struct hw_stream_id next_id(const struct nw_world *w, const struct nw_redis *r)
{
	int64_t ms = clock_ms(w);
	if ((uint64_t)ms > r->d.last.ms)
		return (struct hw_stream_id){(uint64_t)ms, 0};
	return (struct hw_stream_id){r->d.last.ms, r->d.last.seq + 1};
}

static void append(struct nw_world *w, int instance, const struct nw_item *i)
{
	struct nw_redis *r = at(w, instance);
	struct nw_entry e = {.at = next_id(w, r),
	                     .device = i->device,
	                     .state = i->to.state,
	                     .reason = i->to.reason,
	                     .time_ms = i->to.since_ms,
	                     .last_seen_ms = i->to.last_seen_ms,
	                     .token = i->to.token,
	                     .seq = i->to.seq,
	                     .has_form = i->to.entry_has_form,
	                     .form = i->to.form};
	nw_oracle_entry(w, instance, &e);
	if (r->d.n_entries == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		struct nw_entry *entry = nw_alloc(cap * sizeof(*entry));
		if (r->d.n_entries)
			memcpy(entry, r->entry, r->d.n_entries * sizeof(*entry));
		free(r->entry);
		r->entry = entry;
		r->cap = cap;
	}
	nw_trace(w, "redis %d: entry: dev-%d is %s, (%d %s) seq %d", instance, e.device, hw_state_name(e.state),
	         (int)e.token.epoch, e.token.node, (int)e.seq);
	r->entry[r->d.n_entries++] = e;
	r->d.last = e.at;
	if (w->plan.trims && r->d.n_entries - r->d.first > 12)
		r->d.first = r->d.n_entries - 6;
	w->count.entries += instance == w->master;
	wake(w, instance);
}

/* Reads a page that begins with the entry at the offset, as the follower of the stream requests it. */
static void range(const struct nw_world *w, int instance, struct nw_range *g)
{
	const struct nw_redis *r = &w->redis[instance];
	bool start = g->after.ms == 0 && g->after.seq == 0;
	size_t i = r->d.first;
	g->server = instance;
	g->last = g->after;
	if (g->end) {
		g->last = r->d.n_entries > r->d.first ? r->entry[r->d.n_entries - 1].at : (struct hw_stream_id){0, 0};
		return;
	}
	while (i < r->d.n_entries && hw_stream_id_compare(r->entry[i].at, g->after) < 0)
		i++;
	/* From the start of the stream, a follower could not notice the loss. That does not matter, because it takes
	 * events_max entries between two reads. */
	g->gone = start ? i > 0 : i == r->d.n_entries || hw_stream_id_compare(r->entry[i].at, g->after) != 0;
	if (g->gone)
		return;
	for (i += !start; i < r->d.n_entries && g->n < NW_PAGE; i++) {
		g->entry[g->n++] = r->entry[i];
		g->last = r->entry[i].at;
	}
	g->more = i < r->d.n_entries;
}

static bool has_more(const struct nw_world *w, int instance, struct hw_stream_id place)
{
	const struct nw_redis *r = &w->redis[instance];
	return r->d.n_entries > r->d.first && hw_stream_id_compare(r->d.last, place) > 0;
}

/* --- devices ----------------------------------------------------------------------------------------------------- */

static enum nw_result newer(struct nw_item *i, const struct nw_hash *h)
{
	i->stored = h->seq;
	i->newer = h->token;
	return NW_NEWER;
}

/* Does what transition.lua does for one device. */
static enum nw_result transition(struct nw_world *w, int instance, struct nw_item *i)
{
	struct nw_redis *r = at(w, instance);
	struct nw_hash *h = &r->d.device[i->device];
	bool ours = hw_fencing_token_compare(&h->token, &i->to.token) == 0, is_edge = i->kind == NW_EDGE;
	if (h->there && h->seq > i->to.seq)
		return newer(i, h);
	if (h->there && h->seq == i->to.seq && is_edge)
		return ours ? NW_WRITTEN : newer(i, h);
	bool quiet = h->there && h->state == i->to.state && (w->lie != NW_LIE_TWICE || !is_edge);
	if (!quiet && (is_edge || w->lie != NW_LIE_REWRITE))
		append(w, instance, i);
	uint64_t form = i->to.form ? i->to.form : h->form;
	*h = i->to;
	h->form = form;
	h->there = true;
	nw_oracle_published(w, instance);
	return quiet ? NW_WRITTEN : NW_ENTERED;
}

static enum nw_result refresh(struct nw_redis *r, const struct nw_item *i)
{
	struct nw_hash *h = &r->d.device[i->device];
	if (!h->there || h->seq != i->to.seq || h->state != i->to.state)
		return NW_ANEW;
	h->last_seen_ms = i->to.last_seen_ms;
	h->once = i->to.once;
	h->own_timeout_ms = i->to.own_timeout_ms;
	memcpy(h->gaps, i->to.gaps, sizeof(h->gaps));
	h->form = i->to.form ? i->to.form : h->form;
	return NW_WRITTEN;
}

static enum nw_result item(struct nw_world *w, int instance, struct nw_item *i)
{
	struct nw_redis *r = at(w, instance);
	unsigned p = w->part[i->device];
	if (!admits(w, instance, p, &i->to.token)) {
		i->newer = r->d.owner[p].token;
		return NW_FENCED;
	}
	return i->kind == NW_REFRESH ? refresh(r, i) : transition(w, instance, i);
}

static void call(struct nw_world *w, int instance, struct nw_call *c)
{
	for (size_t k = 0; k < c->n; k++)
		c->item[k].result = item(w, instance, &c->item[k]);
}

static void load(const struct nw_redis *r, uint64_t from, struct nw_hashes *out)
{
	for (uint64_t k = 0; k < NW_HASHES && from + k < NW_DEVICES; k++)
		out->hash[k] = r->d.device[from + k];
}

/* published.lua. */
static void publish(struct nw_world *w, int instance, struct nw_published *p)
{
	struct nw_redis *r = at(w, instance);
	if (!admits(w, instance, p->partition, &p->token)) {
		p->newer = r->d.owner[p->partition].token;
		return;
	}
	r->d.published[p->partition] = p->p + 1;
	nw_oracle_published(w, instance);
}

static void read_published(const struct nw_redis *r, struct nw_published_all *all)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		all->p[p] = r->d.published[p] - 1;
}

static void mark(struct nw_redis *r, int name, bool put, struct nw_mark *m)
{
	const struct nw_member *holder = &r->d.member[name];
	struct nw_mark was = r->d.mark[name];
	bool left = put && holder->there && holder->run != m->run;
	if (put && !left && (was.there || m->anew))
		r->d.mark[name] = *m;
	was.anew = m->anew;
	*m = was;
	m->left = left;
}

const char *nw_redis_run(int instance)
{
	static char runs[NW_INSTANCES][HW_SERVER_RUN_ID + 1];
	if (instance < 0)
		return "";
	snprintf(runs[instance], sizeof(runs[instance]), "%0*d", HW_SERVER_RUN_ID, instance);
	return runs[instance];
}

/* --- requests ---------------------------------------------------------------------------------------------------- */

static void shout(struct nw_world *w, const struct nw_msg *msg)
{
	for (int i = 0; i < w->plan.hosts; i++) {
		const struct nw_link *l = &w->host[i].link[NW_L_HEAR];
		if (l->instance == msg->instance && l->up)
			nw_send(w, &w->host[i], NW_FROM_REDIS + NW_L_HEAR,
			        (struct nw_msg){.what = NW_SHOUT, .conn = l->conn, .text = nw_text_ref(msg->text)});
	}
}

static bool serve_sink(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	struct nw_redis *r = at(w, msg->instance);
	switch (msg->what) {
	case NW_CALL:
		call(w, msg->instance, msg->body);
		break;
	case NW_LOAD:
	case NW_DEVICE:
	case NW_OUTBOX:
		load(r, msg->number, msg->body);
		break;
	case NW_PUBLISHED:
		publish(w, msg->instance, msg->body);
		break;
	case NW_PUBLISHED_ALL:
		read_published(r, msg->body);
		break;
	case NW_MARK:
	case NW_LOOK:
	case NW_HELLO:
		mark(r, h->name, msg->what == NW_MARK, msg->body);
		break;
	default:
		return false;
	}
	return true;
}

static bool serve_other(struct nw_world *w, struct nw_host *h, struct nw_msg *msg)
{
	struct nw_redis *r = at(w, msg->instance);
	if (msg->what == NW_ORDER) {
		order(w, h, msg->instance, msg->body);
	} else if (msg->what == NW_RANGE) {
		range(w, msg->instance, msg->body);
	} else if (msg->what == NW_SHOUT) {
		shout(w, msg);
		return false;
	} else if (msg->what == NW_BLOCK) {
		struct hw_stream_id place = {msg->number, msg->mark};
		if (has_more(w, msg->instance, place))
			return true;
		r->blocked[h->index].conn = msg->conn;
		r->blocked[h->index].place = place;
		return false;
	}
	return true;
}

void nw_redis_serve(struct nw_world *w, struct nw_host *h, enum nw_links k, struct nw_msg *msg)
{
	if (!at(w, msg->instance)->up || !(k == NW_L_SINK ? serve_sink(w, h, msg) : serve_other(w, h, msg)))
		return;
	struct nw_msg answer = *msg;
	msg->body = NULL;
	msg->text = NULL;
	nw_send(w, h, NW_FROM_REDIS + k, answer);
}

/* --- replicas ---------------------------------------------------------------------------------------------------- */

void nw_redis_snapshot(struct nw_world *w)
{
	int k = w->snapshots++ % NW_SNAPSHOTS;
	w->snapshot[k] = w->redis[w->master].d;
	w->snapshot_at[k] = w->t;
}

/* Fails over to the replica, which has all entries except those of the last `lag`. The old master has stopped, or
 * continues to serve the hosts that are still connected to the old master. */
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
	nw_oracle_failover(w);
	nw_trace(w, "redis: fails over to %d with %zu of %zu entries, the old one is %s", w->master, new->d.n_entries,
	         old->d.n_entries, old->up ? "up" : "dead");
	for (int i = 0; i < w->plan.hosts; i++)
		for (int k = 0; k < NW_LINKS; k++)
			w->host[i].link[k].leave_at =
				w->t + sim_between(&w->random, 0, 2 * w->plan.lease_ms) * HW_NS_PER_MS;
}

void nw_redis_flush(struct nw_world *w)
{
	struct nw_redis *r = &w->redis[w->master];
	uint64_t version = r->d.version;
	memset(&r->d, 0, sizeof(r->d));
	memset(r->most, 0, sizeof(r->most));
	r->d.version = version + 1;
	w->snapshots = 0;
	nw_trace(w, "redis: flushed");
}
