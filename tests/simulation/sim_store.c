/* SPDX-License-Identifier: MIT */
/* See sim_store.h. */
#include "sim_store.h"

#include <string.h>

#include "redis/redis.h"
#include "sim.h"

#define DELAY_MAX_NS (20 * HW_NS_PER_MS)
#define LATE_NS      HW_NS_PER_S
#define BACK_NS      HW_NS_PER_S
#define DELETED      50 /* one of so many plain refreshes finds that another program has deleted the key */

void sim_store_init(struct sim *s)
{
	s->store.record = sim_calloc(s->plan.devices, sizeof(*s->store.record));
	s->store.key = sim_calloc(s->plan.devices, sizeof(*s->store.key));
	s->store.snapshot = sim_calloc(s->plan.devices, sizeof(*s->store.snapshot));
	s->store.published = s->store.snapshot_published = HW_PUBLISHED_UNKNOWN;
}

void sim_store_fini(struct sim *s)
{
	free(s->store.record);
	free(s->store.snapshot);
	free(s->store.key);
	free(s->store.order);
}

struct sim_record sim_store_picture(const struct sim *s, const struct hw_device *d)
{
	struct sim_record r = {.known = hw_device_state(d) != HW_STATE_FORGOTTEN,
	                       .once = d->flags & HW_FLAG_ONCE,
	                       .state = hw_device_state(d),
	                       .reason = hw_device_reason(d),
	                       .since_ms = d->since_ms,
	                       .last_seen_ms = hw_device_last_seen_ms(d, sim_host_now(s)),
	                       .own_timeout_ms = hw_device_own_timeout_ms(d),
	                       .seq = d->seq,
	                       .group = d->group};
	hw_monitor_gaps(s->host.m, d, r.gaps);
	return r;
}

static struct sim_order *order_at(const struct sim_store *t, size_t i)
{
	return &t->order[(t->head + i) % t->cap];
}

static void grow(struct sim_store *t)
{
	size_t cap = t->cap ? 2 * t->cap : 64;
	struct sim_order *order = sim_calloc(cap, sizeof(*order));
	for (size_t i = 0; i < t->n; i++)
		order[i] = *order_at(t, i);
	free(t->order);
	t->order = order;
	t->head = 0;
	t->cap = cap;
}

void sim_store_give(struct sim *s, struct sim_order o)
{
	struct sim_store *t = &s->store;
	if (t->n == t->cap)
		grow(t);
	o.run = s->host.run;
	o.at = s->now + HW_NS_PER_MS / 10 + sim_below(&s->random, DELAY_MAX_NS);
	if (o.at < t->last_at)
		o.at = t->last_at;
	t->last_at = o.at;
	o.given_at = s->now;
	t->edges += o.kind == SIM_EDGE;
	t->n++;
	*order_at(t, t->n - 1) = o;
	sim_at(s, o.at, SIM_STORE, 0, 0, 0);
}

static void set_key(struct sim *s, const struct sim_order *o)
{
	bool online = o->record.state == HW_STATE_ONLINE;
	s->store.key[o->device] = (struct sim_key){
		.until = online ? s->now + o->ttl_ns : 0, .set_at = s->now, .set_mono = sim_oracle_mono(s)};
}

/* Whether the monitor was blind for much of the time since then. */
static bool was_blind_since(const struct sim *s, int64_t mono)
{
	int64_t now = sim_oracle_mono(s), seen = sim_oracle_seen(&s->oracle, now) - sim_oracle_seen(&s->oracle, mono);
	return now - mono - seen > (now - mono) / 6;
}

/*
 * The key of a device that was online until `at` must exist. It may be missing if orders were late or lost since it was
 * set. It may also end in many short blindnesses that the monitor learns of only afterwards (lost messages): meanwhile
 * the wheel stands still, and nothing else refreshes. A deleted key must be back soon.
 */
static void check_key(struct sim *s, const struct sim_order *o, int64_t at)
{
	const struct sim_key *k = &s->store.key[o->device];
	int64_t ended_ns = at - k->until - (k->deleted ? BACK_NS : 0);
	if (k->set_at > s->store.disturbed_at && ended_ns >= 0 && !was_blind_since(s, k->set_mono))
		sim_breach(s, "d%u: its key ended %.3f s ago, and it is online", o->device, (double)ended_ns / 1e9);
}

/* Whether the key exists and was extended. */
static bool extend_key(struct sim *s, const struct sim_order *o)
{
	struct sim_key *k = &s->store.key[o->device];
	check_key(s, o, s->now);
	if (++s->store.plain % DELETED == 0) {
		k->until = s->now;
		k->deleted = true;
	}
	if (k->until <= s->now)
		return false;
	set_key(s, o);
	return true;
}

/* Carries out one order, and reports the result to the monitor. */
static void carry_out(struct sim *s, const struct sim_order *o)
{
	struct sim_record *r = &s->store.record[o->device];
	bool listens = s->host.m && s->host.run == o->run && !s->store.away;
	if (s->lie == SIM_LOST_WRITE && o->kind == SIM_EDGE && o->record.state == HW_STATE_OFFLINE)
		return;
	if (s->now - o->at > LATE_NS)
		s->store.disturbed_at = s->now;
	switch (o->kind) {
	case SIM_MARK:
		s->store.mark_ms = o->mark_ms;
		break;
	case SIM_PUBLISHED:
		s->store.published = o->published;
		sim_oracle_published(s);
		break;
	case SIM_EDGE:
	case SIM_REWRITE:
		if (r->known && r->seq > o->record.seq) {
			if (listens)
				sim_redis_newer(s, o->ref, r->seq);
			break;
		}
		if (o->kind == SIM_EDGE && (!r->known || r->seq < o->record.seq))
			sim_oracle_stored(s, o, r);
		if (o->kind == SIM_EDGE && r->known && r->state == HW_STATE_ONLINE)
			check_key(s, o, o->given_at);
		*r = o->record;
		set_key(s, o);
		sim_oracle_published(s);
		if (listens)
			sim_redis_confirmed(s, o->ref, o->record.seq);
		break;
	case SIM_REFRESH:
		if (r->known && r->seq == o->record.seq && r->state == o->record.state) {
			if (r->state == HW_STATE_ONLINE && !o->instead)
				check_key(s, o, s->now);
			*r = o->record;
			set_key(s, o);
		} else if (listens) {
			sim_redis_rewrite(s, o->ref);
		}
		break;
	case SIM_PLAIN:
		if (!extend_key(s, o) && listens)
			sim_redis_without_key(s, o->ref);
	}
}

void sim_store_on_due(struct sim *s)
{
	struct sim_store *t = &s->store;
	if (s->host.m && !sim_host_is_awake(s)) /* while the process is stopped, the orders and their answers wait */
		return;
	while (!t->away && !t->full && t->n > 0 && t->order[t->head].at <= s->now) {
		/* With `half`, the store refuses an order now and then, and the sink sends it again. */
		if (t->half && sim_chance(&s->random, 0.5)) {
			sim_at(s, s->now + HW_NS_PER_S / 10, SIM_STORE, 0, 0, 0);
			return;
		}
		struct sim_order o = t->order[t->head];
		t->head = (t->head + 1) % t->cap;
		t->n--;
		t->edges -= o.kind == SIM_EDGE;
		t->edges_done += o.kind == SIM_EDGE;
		carry_out(s, &o);
	}
}

void sim_store_leave(struct sim *s, bool away)
{
	s->store.away = away;
	s->host.cut |= away && s->host.redis;
	sim_redis_look(s);
}

void sim_store_save(struct sim *s)
{
	struct sim_store *t = &s->store;
	memcpy(t->snapshot, t->record, s->plan.devices * sizeof(*t->snapshot));
	t->snapshot_mark_ms = t->mark_ms;
	t->snapshot_published = t->published;
}

void sim_store_roll_back(struct sim *s)
{
	struct sim_store *t = &s->store;
	memcpy(t->record, t->snapshot, s->plan.devices * sizeof(*t->record));
	t->mark_ms = t->snapshot_mark_ms;
	memset(t->key, 0, s->plan.devices * sizeof(*t->key));
	t->published = t->snapshot_published;
	s->oracle.damaged = true;
}

/* Empties the store: the monitor will find its sight record missing. */
void sim_store_empty(struct sim *s)
{
	struct sim_store *t = &s->store;
	memset(t->record, 0, s->plan.devices * sizeof(*t->record));
	t->mark_ms = 0;
	memset(t->key, 0, s->plan.devices * sizeof(*t->key));
	t->published = HW_PUBLISHED_UNKNOWN;
	s->host.store_lost = true;
	s->oracle.damaged = true;
}

void sim_store_crash(struct sim *s)
{
	struct sim_store *t = &s->store;
	t->disturbed_at = s->now;
	if (t->n > 0)
		t->n = t->away || t->full ? 0 : (size_t)sim_below(&s->random, (int64_t)t->n + 1);
	t->edges = 0;
	for (size_t i = 0; i < t->n; i++)
		t->edges += order_at(t, i)->kind == SIM_EDGE;
}

int64_t sim_store_oldest_ms(const struct sim *s)
{
	const struct sim_store *t = &s->store;
	return t->edges ? (s->now - order_at(t, 0)->given_at) / HW_NS_PER_MS + 1 : 0;
}

struct sim_record sim_store_newest(const struct sim *s, uint32_t device)
{
	struct sim_record r = s->store.record[device];
	for (size_t i = 0; i < s->store.n; i++) {
		const struct sim_order *o = order_at(&s->store, i);
		if (o->kind != SIM_MARK && o->kind != SIM_PUBLISHED && o->kind != SIM_PLAIN && o->device == device)
			r = o->record;
	}
	return r;
}
