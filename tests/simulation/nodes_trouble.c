/* SPDX-License-Identifier: MIT */
/* What a seed plans: how many nodes with which lease, and the troubles. */
#include "nodes_world.h"

const char *nw_trouble_name(enum nw_trouble k)
{
	static const char *const names[NW_TROUBLES] = {
		"pause",         "suspend",        "cut from redis", "cut from broker", "cut from both", "crash",
		"roll",          "drop",           "drop reader",    "failover",        "flush",         "redis stands",
		"broker stands", "broker restart", "clock",          "mass death"};
	return names[k];
}

const char *nw_lie_name(enum nw_lie k)
{
	static const char *const names[NW_LIES] = {
		"none",   "evict",   "barrier", "ack",     "confirm", "peers", "will",   "epoch",   "twice",  "count",
		"kept",   "restore", "follow",  "compare", "flushed", "claim", "gone",   "gate",    "fence",  "join",
		"silent", "release", "sweep",   "reread",  "stall",   "newer", "stream", "rewrite", "relink", "same",
		"mark",   "doubt",   "who",     "form",    "prove",   "links", "proofs"};
	return names[k];
}

/* How often a trouble begins in a second, for each host or for the world, if the plan of the seed has this kind of
 * trouble. */
static const double often[NW_TROUBLES] = {0.04, 0.01, 0.03, 0.03, 0.02, 0.02, 0.02, 0.03,
                                          0.02, 0.04, 0.01, 0.02, 0.02, 0.02, 0.02, 0.02};

void nw_plan_draw(struct nw_world *w)
{
	static const int64_t leases[] = {1000, 1000, 2000, 5000};
	struct sim_random *r = &w->random;
	struct nw_plan *p = &w->plan;
	p->hosts = sim_chance(r, 0.7) ? (int)sim_between(r, 2, 3) : (int)sim_between(r, 4, NW_HOSTS);
	p->wills = sim_chance(r, 0.7);
	p->denied = sim_chance(r, 0.05);
	p->namesake = p->hosts > 2 && sim_chance(r, 0.1);
	p->other_timeouts = sim_chance(r, 0.1);
	p->trims = sim_chance(r, 0.1);
	p->lease_ms = leases[sim_below(r, 4)];
	p->timeout_ms = sim_between(r, 1500, 5000);
	p->grace_ms = sim_between(r, 500, 2500);
	p->keepalive_ms = sim_between(r, 2000, 6000);
	p->lag_ms = sim_chance(r, 0.3) ? 0 : sim_between(r, 100, 3000);
	p->devices = (int)sim_between(r, 4, NW_DEVICES);
	p->turns = sim_chance(r, 0.2) ? 1 : 0.15;
	p->trouble_ns = (20 + 8 * p->lease_ms / 1000) * HW_NS_PER_S;
	p->calm_ns = (60 + 12 * p->lease_ms / 1000) * HW_NS_PER_S + (p->denied ? 40 * HW_NS_PER_S : 0);
	/* These numbers come from another stream, so that seeds without this trouble keep their runs. */
	struct sim_random apart = {.state = w->seed ^ UINT64_C(0x5851f42d4c957f2d)};
	sim_draw(&apart);
	if (p->hosts > 2 && !p->namesake && sim_chance(&apart, 0.15))
		p->differs = sim_chance(&apart, 0.5) ? NW_OTHER_FILTERS : NW_OTHER_NAMES;
	struct sim_random apart_too = {.state = w->seed ^ UINT64_C(0x14057b7ef767814f)};
	sim_draw(&apart_too);
	if (!p->differs && sim_chance(&apart_too, 0.4))
		p->family = sim_chance(&apart_too, 0.5) ? NW_TAKES : NW_PROVES;
	p->online_after = sim_chance(&apart_too, 0.25) ? 3 : 1;
	struct sim_random apart_again = {.state = w->seed ^ UINT64_C(0x2545f4914f6cdd1d)};
	sim_draw(&apart_again);
	if (p->family == NW_PROVES && p->hosts > 2 && !p->namesake && sim_chance(&apart_again, 0.3))
		p->differs = NW_OTHER_CHILDREN;
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
	w->plan.denied = false;
	w->plan.differs = NW_SAME_GROUPS;
	w->plan.hosts = 3;
	w->plan.devices = NW_DEVICES;
	w->plan.turns = 3;
	w->plan.lease_ms = 1000;
}

static bool happens(struct nw_world *w, enum nw_trouble k)
{
	return w->plan.rate[k] > 0 && sim_chance(&w->random, w->plan.rate[k] * NW_TROUBLE_STEPS * NW_STEP_NS / 1e9);
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

static void stand(struct nw_world *w, struct nw_host *h)
{
	bool suspends = happens(w, NW_SUSPEND);
	if (!h->app || !(suspends || happens(w, NW_PAUSE)))
		return;
	int64_t until = w->t + length(w);
	nw_host_pause(w, h, until, suspends);
	note(w, until);
}

static void cut(struct nw_world *w, struct nw_host *h)
{
	bool both = happens(w, NW_CUT_BOTH);
	int64_t until = w->t + length(w);
	if (both || happens(w, NW_CUT_REDIS)) {
		nw_trace(w, "%s: cut from redis for %.2f s", nw_names[h->name], (double)(until - w->t) / 1e9);
		note(w, h->cut_redis = until);
	}
	if (both || happens(w, NW_CUT_BROKER)) {
		nw_trace(w, "%s: cut from the broker for %.2f s", nw_names[h->name], (double)(until - w->t) / 1e9);
		note(w, h->cut_broker = until);
	}
}

static void crash(struct nw_world *w, struct nw_host *h)
{
	nw_host_end(w, h);
	note(w, h->starts_at = w->t + sim_between(&w->random, 50, 4 * w->plan.lease_ms) * HW_NS_PER_MS);
}

static void end(struct nw_world *w, struct nw_host *h)
{
	if (h->app && happens(w, NW_CRASH)) {
		crash(w, h);
	} else if (happens(w, NW_ROLL) && nw_host_acts(w, h) && !h->stopping) {
		nw_host_stop(w, h);
		note(w, h->stop_by + 5 * HW_NS_PER_S);
	}
}

static void trouble_host(struct nw_world *w, struct nw_host *h)
{
	stand(w, h);
	cut(w, h);
	end(w, h);
	if (happens(w, NW_DROP) && nw_host_acts(w, h)) {
		nw_mqtt_drop(w, h, sim_chance(&w->random, 0.5) ? NW_C_SESSION : NW_C_BARRIERS);
		note(w, w->t);
	}
	if (happens(w, NW_DROP_READER) && nw_host_acts(w, h)) {
		nw_mqtt_drop(w, h, NW_C_READER);
		note(w, w->t);
	}
	if (happens(w, NW_CLOCK))
		h->wall_off += sim_between(&w->random, -30000, 30000) * HW_NS_PER_MS;
}

/* Half the fleet stops or returns; perhaps a node dies with the devices, or joins. */
static void mass(struct nw_world *w)
{
	struct nw_host *h = &w->host[sim_below(&w->random, w->plan.hosts)];
	for (int d = 0; d < w->plan.devices; d++)
		if (sim_chance(&w->random, 0.5))
			nw_fleet_turn(w, d);
	if (h->app && sim_chance(&w->random, 0.3))
		crash(w, h);
	else if (!h->app && sim_chance(&w->random, 0.5))
		h->starts_at = w->t;
	note(w, w->t);
}

static void trouble_redis(struct nw_world *w)
{
	if (happens(w, NW_FAILOVER)) {
		nw_redis_failover(w);
		note(w, w->t + 2 * w->plan.lease_ms * HW_NS_PER_MS);
	}
	if (happens(w, NW_FLUSH)) {
		nw_redis_flush(w);
		nw_oracle_flush(w);
		note(w, w->t);
	}
	if (happens(w, NW_REDIS_STANDS)) {
		w->redis_stands = w->t + (sim_chance(&w->random, 0.1) ? 20 * HW_NS_PER_S : 2 * length(w));
		nw_trace(w, "redis: stands for %.2f s", (double)(w->redis_stands - w->t) / 1e9);
		note(w, w->redis_stands);
	}
	if (happens(w, NW_CLOCK))
		w->redis_wall_off += sim_between(&w->random, -30000, 30000) * HW_NS_PER_MS;
}

static void trouble_broker(struct nw_world *w)
{
	if (happens(w, NW_BROKER_STANDS)) {
		w->broker.stopped_until = w->t + length(w);
		nw_trace(w, "broker: stands for %.2f s", (double)(w->broker.stopped_until - w->t) / 1e9);
		note(w, w->broker.stopped_until);
	}
	if (happens(w, NW_BROKER_RESTART)) {
		nw_broker_restart(w, sim_chance(&w->random, 0.5));
		note(w, w->t);
	}
	if (happens(w, NW_MASS))
		mass(w);
}

void nw_trouble_step(struct nw_world *w)
{
	if (w->t / NW_STEP_NS % 10 == 0)
		nw_redis_snapshot(w);
	nw_scene_step(w);
	if (w->t >= w->trouble_end || w->t / NW_STEP_NS % NW_TROUBLE_STEPS != 0)
		return;
	for (int i = 0; i < w->plan.hosts; i++)
		trouble_host(w, &w->host[i]);
	trouble_redis(w);
	trouble_broker(w);
}
