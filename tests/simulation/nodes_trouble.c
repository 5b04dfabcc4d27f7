/* SPDX-License-Identifier: MIT */
/* What a seed says: how many nodes with which lease, and what goes wrong. */
#include "nodes_world.h"

const char *nw_trouble_name(enum nw_trouble k)
{
	static const char *const names[NW_TROUBLES] = {
		"pause",        "cut from redis", "cut from broker", "cut from both", "crash",
		"roll",         "drop",           "drop reader",     "failover",      "flush",
		"redis stands", "broker stands",  "broker restart",  "clock"};
	return names[k];
}

const char *nw_lie_name(enum nw_lie k)
{
	static const char *const names[NW_LIES] = {"none",  "evict",   "barrier",      "ack",     "confirm", "yield",
	                                           "known", "will",    "known epochs", "epoch",   "twice",   "count",
	                                           "kept",  "restore", "follow",       "unclean", "flushed", "claim",
	                                           "gone",  "gate",    "fence",        "join",    "silent",  "release"};
	return names[k];
}

/* How often each happens in a second, to each host or to the world, where a seed has it. */
static const double often[NW_TROUBLES] = {0.04, 0.03, 0.03, 0.02, 0.02, 0.02, 0.03,
                                          0.02, 0.04, 0.01, 0.02, 0.02, 0.02, 0.02};

void nw_plan_draw(struct nw_world *w)
{
	static const int64_t leases[] = {1000, 1000, 2000, 5000};
	struct sim_random *r = &w->random;
	struct nw_plan *p = &w->plan;
	p->hosts = (int)sim_between(r, 2, NW_HOSTS);
	p->standby = sim_chance(r, 0.1);
	p->wills = sim_chance(r, 0.7);
	p->denied = sim_chance(r, 0.05);
	p->namesake = p->hosts > 2 && sim_chance(r, 0.1);
	p->lease_ms = leases[sim_below(r, 4)];
	p->timeout_ms = sim_between(r, 1000, 4000);
	p->keepalive_ms = sim_between(r, 2000, 6000);
	p->lag_ms = sim_chance(r, 0.3) ? 0 : sim_between(r, 100, 3000);
	p->devices = (int)sim_between(r, 4, NW_DEVICES);
	p->turns = sim_chance(r, 0.2) ? 1 : 0.15;
	p->trouble_ns = (20 + 8 * p->lease_ms / 1000) * HW_NS_PER_S;
	p->calm_ns = (60 + 12 * p->lease_ms / 1000) * HW_NS_PER_S + (p->denied ? 40 * HW_NS_PER_S : 0);
	bool all = sim_chance(r, 0.6);
	for (int k = 0; k < NW_TROUBLES; k++)
		p->rate[k] = all || sim_chance(r, 0.15) ? often[k] : 0;
}

void nw_plan_only(struct nw_world *w, enum nw_trouble k)
{
	for (int i = 0; i < NW_TROUBLES; i++)
		w->plan.rate[i] = i == (int)k ? 2 * often[k] : 0;
}

void nw_plan_harsh(struct nw_world *w)
{
	for (int i = 0; i < NW_TROUBLES; i++)
		w->plan.rate[i] = 2 * often[i];
	w->plan.standby = w->plan.denied = false;
	w->plan.hosts = 3;
	w->plan.devices = NW_DEVICES;
	w->plan.turns = 3;
	w->plan.lease_ms = 1000;
}

static bool happens(struct nw_world *w, enum nw_trouble k)
{
	return w->plan.rate[k] > 0 && sim_chance(&w->random, w->plan.rate[k] * NW_STEP_NS / 1e9);
}

/* From a twentieth of a lease to three leases. */
static int64_t length(struct nw_world *w)
{
	return sim_spread(&w->random, w->plan.lease_ms / 20, 3 * w->plan.lease_ms) * HW_NS_PER_MS;
}

static void note(struct nw_world *w, int64_t until)
{
	w->last_event = until > w->last_event ? until : w->last_event;
}

static void cut(struct nw_world *w, struct nw_host *h)
{
	bool both = happens(w, NW_CUT_BOTH);
	int64_t until = w->t + length(w);
	if (happens(w, NW_PAUSE))
		note(w, h->paused_until = w->t + length(w));
	if (both || happens(w, NW_CUT_REDIS)) {
		nw_trace(w, "%s: cut from redis for %.2f s", nw_names[h->name], (double)(until - w->t) / 1e9);
		note(w, h->cut_redis = until);
	}
	if (both || happens(w, NW_CUT_BROKER)) {
		nw_trace(w, "%s: cut from the broker for %.2f s", nw_names[h->name], (double)(until - w->t) / 1e9);
		note(w, h->cut_broker = until);
	}
}

static void end(struct nw_world *w, struct nw_host *h)
{
	if (!h->alive)
		return;
	if (happens(w, NW_CRASH)) {
		nw_host_end(w, h);
		note(w, h->starts_at = w->t + sim_between(&w->random, 50, 4 * w->plan.lease_ms) * HW_NS_PER_MS);
		return;
	}
	if (happens(w, NW_ROLL) && !h->stopping && nw_host_acts(w, h)) {
		nw_trace(w, "%s: stops", nw_names[h->name]);
		h->stopping = true;
		h->stop_by = w->t + 10 * HW_NS_PER_S;
		hw_nodes_stop(h->n, nw_host_now(w, h));
		h->poked = true;
		note(w, h->stop_by + 5 * HW_NS_PER_S);
	}
}

static void trouble_host(struct nw_world *w, struct nw_host *h)
{
	cut(w, h);
	end(w, h);
	if (h->alive && nw_host_acts(w, h) && happens(w, NW_DROP) && h->session) {
		nw_send(w, h, NW_TO_BROKER, (struct nw_msg){.what = NW_CLOSED, .conn = h->session});
		nw_host_lose_session(w, h);
		note(w, w->t);
	}
	if (h->alive && nw_host_acts(w, h) && happens(w, NW_DROP_READER)) {
		nw_host_lose_reader(w, h);
		note(w, w->t);
	}
	if (happens(w, NW_CLOCK))
		h->wall_off += sim_between(&w->random, -30000, 30000) * HW_NS_PER_MS;
}

static void trouble_world(struct nw_world *w)
{
	if (happens(w, NW_FAILOVER)) {
		nw_redis_failover(w);
		nw_oracle_failover(w);
		note(w, w->t + 2 * w->plan.lease_ms * HW_NS_PER_MS);
	}
	if (happens(w, NW_FLUSH)) {
		nw_redis_flush(w);
		nw_oracle_flush(w);
		note(w, w->t);
	}
	if (happens(w, NW_REDIS_STANDS))
		note(w, w->redis_stands = w->t + 2 * length(w));
	if (happens(w, NW_BROKER_STANDS))
		note(w, w->broker.stopped_until = w->t + length(w));
	if (happens(w, NW_BROKER_RESTART)) {
		nw_broker_restart(w, sim_chance(&w->random, 0.5));
		note(w, w->t);
	}
}

void nw_trouble_step(struct nw_world *w)
{
	if (w->t / NW_STEP_NS % 10 == 0)
		nw_redis_snapshot(w);
	if (w->t >= w->trouble_end)
		return;
	for (int i = 0; i < w->plan.hosts; i++)
		trouble_host(w, &w->host[i]);
	trouble_world(w);
}
