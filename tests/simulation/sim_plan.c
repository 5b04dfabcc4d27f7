/* SPDX-License-Identifier: MIT */
/* See sim_plan.h. */
#include "sim_plan.h"

#include <string.h>

#include "sim.h"

#define DAY_NS   (86400 * HW_NS_PER_S)
#define GATEWAYS 0.15 /* share of runs that have gateways */
#define BARRIERS 0.3  /* ... that have troubles of the connection of barriers */
#define RETURNS  0.3  /* ... that have devices which come online only after several heartbeats */
#define PARENTS  0.3  /* ... that have a device that is the parent of all devices */
#define BRIDGES  0.15 /* ... that have a group whose messages come through a bridge */

/* --- drawing ----------------------------------------------------------------- */

static int64_t pick(struct sim *s, const int64_t *of, int64_t n)
{
	return of[sim_below(&s->random, n)];
}

static void draw_conf(struct sim *s)
{
	static const int64_t graces_ms[] = {0, 2000, 5000, 15000}, slows_ms[] = {100, 250, 250, 1000};
	s->plan.conf = (struct hw_monitor_conf){.max_devices = 100000,
	                                        .forget_after_ms = INT64_C(30) * 86400000,
	                                        .forget_once_after_ms = 86400000,
	                                        .grace_ms = pick(s, graces_ms, 4),
	                                        .barrier_slow_ms = pick(s, slows_ms, 4),
	                                        .barrier_timeout_ms = sim_chance(&s->random, 0.8) ? 5000 : 2000,
	                                        .readers = s->plan.readers,
	                                        .ttl_factor = 3,
	                                        .node = "sim",
	                                        .canaries = true,
	                                        .loading = true};
}

/* The length of the run and its timeouts: mostly minutes, now and then days or years. */
static void draw_times(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	int64_t scale = sim_below(&s->random, 100);
	for (int g = 0; g < SIM_GROUPS_MAX; g++)
		p->timeout_ns[g] = scale < 90   ? sim_spread(&s->random, HW_NS_PER_S, 60 * HW_NS_PER_S)
		                   : scale < 96 ? sim_spread(&s->random, 600 * HW_NS_PER_S, DAY_NS / 6)
		                                : sim_spread(&s->random, DAY_NS, 300 * DAY_NS);
	for (int g = 0; g < SIM_GROUPS_MAX; g++)
		p->timeout_ns[g] -= p->timeout_ns[g] % HW_NS_PER_MS;
	int64_t longest = p->timeout_ns[0];
	if (p->groups > 1 && p->timeout_ns[1] > longest)
		longest = p->timeout_ns[1];
	p->sleepers = scale < 90 && sim_chance(&s->random, 0.4) ? 0.3 : 0;
	p->trouble_ns = scale < 90 ? 60 * HW_NS_PER_S + longest * sim_between(&s->random, 10, 40)
	                           : longest * sim_between(&s->random, 2, 4);
	p->calm_ns = 200 * HW_NS_PER_S + longest * (p->sleepers > 0 ? 11 : 3);
	p->tick_ns = scale < 90 ? HW_NS_PER_S : scale < 96 ? 10 * HW_NS_PER_S : 3600 * HW_NS_PER_S;
	p->sparse = scale >= 96;
	if (p->sparse)
		p->devices = 3 + p->devices % 4;
}

static enum sim_trouble_kind any_kind(struct sim *s)
{
	return (enum sim_trouble_kind)sim_below(&s->random, SIM_TROUBLES_DRAWN);
}

static struct sim_trouble draw_trouble(struct sim *s, enum sim_trouble_kind kind)
{
	struct sim_plan *p = &s->plan;
	struct sim_random *r = &s->random;
	struct sim_trouble t = {.kind = kind, .at = sim_below(r, p->trouble_ns)};
	t.length_ns = sim_spread(r, HW_NS_PER_S / 10, 40 * HW_NS_PER_S);
	if (sim_chance(r, 0.3))
		t.length_ns = sim_spread(r, HW_NS_PER_S, p->timeout_ns[0] * 3 + 2 * HW_NS_PER_S);
	if (t.length_ns > p->trouble_ns - t.at)
		t.length_ns = p->trouble_ns - t.at;
	if (t.kind == SIM_HOST_SLEEPS && p->tick_ns > HW_NS_PER_S)
		t.kind = SIM_HOST_STANDS; /* a suspension is noticed by the tick */
	static const int64_t steps_ms[] = {86400000, -86400000, 3600000, -3600000, 1500, -1500};
	switch (t.kind) {
	case SIM_SOCKETS_SLOW:
		t.arg = sim_spread(r, 5 * HW_NS_PER_MS, 100 * HW_NS_PER_MS);
		break;
	case SIM_PIPES_SLOW:
		t.arg = sim_spread(r, 100 * HW_NS_PER_MS, 6 * HW_NS_PER_S);
		break;
	case SIM_WALL_STEP:
		t.arg = pick(s, steps_ms, 6);
		break;
	default:
		t.arg = sim_below(r, 1 << 20);
	}
	return t;
}

/* Thousands of devices, for some minutes, on a broker and a network that are fast enough. */
static void crowd(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	p->devices = (uint32_t)sim_between(&s->random, 1000, 4000);
	for (int g = 0; g < SIM_GROUPS_MAX; g++)
		p->timeout_ns[g] = sim_between(&s->random, 10, 20) * HW_NS_PER_S;
	p->sparse = false;
	p->sleepers = 0;
	p->tick_ns = HW_NS_PER_S;
	p->conf.barrier_timeout_ms = 5000;
	p->trouble_ns = 100 * HW_NS_PER_S;
	p->calm_ns = 300 * HW_NS_PER_S;
	p->service_ns = 10000;
	p->buffer_bound = p->pipe_bound = 100000;
	p->budget = 2048;
	p->load_pace_ns = HW_NS_PER_MS;
	for (unsigned k = 0; k < p->troubles; k++)
		p->trouble[k] = draw_trouble(s, any_kind(s));
}

void sim_plan_gateways(struct sim *s, uint32_t devices, uint32_t gateways)
{
	struct sim_plan *p = &s->plan;
	p->batch[0] = p->batch[1] = true;
	p->gateways = gateways;
	p->devices = devices;
	p->service_ns = 10000;
	p->budget = 2048;
	p->load_pace_ns = HW_NS_PER_MS;
}

/* Drawn from another stream, so that a seed without gateways has the same run as before. */
static void draw_gateways(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	struct sim_random own = {.state = ~s->seed};
	if (!sim_chance(&own, GATEWAYS))
		return;
	uint32_t gateways = (uint32_t)sim_between(&own, 1, SIM_GATEWAYS_MAX);
	uint32_t group = (uint32_t)sim_below(&own, p->groups);
	if (!p->sparse && sim_chance(&own, 0.4)) {
		sim_plan_gateways(s, (uint32_t)sim_between(&own, 150, 400), gateways);
		return;
	}
	p->gateways = gateways;
	p->batch[group] = true;
}

/* These numbers come from another stream, too. */
static void draw_barriers(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	struct sim_random own = {.state = s->seed ^ UINT64_C(0x6261727269657273)};
	if (p->troubles == 0 || !sim_chance(&own, BARRIERS))
		return;
	for (int64_t n = sim_between(&own, 1, 3); n > 0; n--) {
		struct sim_trouble t = {.at = sim_below(&own, p->trouble_ns), .arg = sim_below(&own, 1 << 20)};
		t.kind = sim_chance(&own, 0.5) ? SIM_READS_ON : SIM_BARRIERS_LOST;
		t.length_ns = sim_spread(&own, HW_NS_PER_S / 10, 40 * HW_NS_PER_S);
		if (t.length_ns > p->trouble_ns - t.at)
			t.length_ns = p->trouble_ns - t.at;
		p->trouble[p->troubles++] = t;
	}
}

/* Not drawn if devices nap, or if the run lasts for years: the calm would end before the device was heard often
 * enough. */
static void draw_online_after(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	struct sim_random own = {.state = s->seed ^ UINT64_C(0x6166746572)};
	for (int g = 0; g < SIM_GROUPS_MAX; g++) {
		int64_t after = sim_chance(&own, RETURNS) ? sim_between(&own, 2, 4) : 1;
		p->online_after[g] = p->sparse || p->sleepers > 0 ? 1 : (unsigned)after;
		p->calm_ns += p->online_after[g] > 1 ? 4 * p->timeout_ns[g] : 0;
	}
}

static void draw_bridge(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	struct sim_random own = {.state = s->seed ^ UINT64_C(0x627269646765)};
	uint32_t group = (uint32_t)sim_below(&own, p->groups);
	if (p->troubles == 0 || p->sparse || p->batch[group] || !sim_chance(&own, BRIDGES))
		return;
	p->bridge[group] = true;
	for (int64_t n = sim_between(&own, 1, 3); n > 0; n--) {
		struct sim_trouble t = {.kind = SIM_BRIDGE_AWAY, .at = sim_below(&own, p->trouble_ns), .arg = group};
		t.length_ns = sim_spread(&own, HW_NS_PER_S / 10, 3 * p->timeout_ns[group] + HW_NS_PER_S);
		if (t.length_ns > p->trouble_ns - t.at)
			t.length_ns = p->trouble_ns - t.at;
		p->trouble[p->troubles++] = t;
	}
}

void sim_plan_draw(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	struct sim_random *r = &s->random;
	static const int64_t budgets[] = {1, 3, 64, 2048}, bounds[] = {40, 200, 2000};
	memset(p, 0, sizeof(*p));
	p->devices = (uint32_t)sim_between(r, 3, 30);
	p->readers = sim_chance(r, 0.75) ? 1 : (uint32_t)sim_between(r, 2, SIM_READERS_MAX);
	p->groups = (uint32_t)sim_between(r, 1, 2);
	draw_times(s);
	draw_conf(s);
	if (p->sparse) /* otherwise the rests of the publisher would make the monitor blind */
		p->conf.barrier_timeout_ms = p->timeout_ns[0] / HW_NS_PER_MS / 4;
	p->jitter = 0.1 * sim_unit(r);
	p->loss = sim_chance(r, 0.5) ? 0 : 0.4 * sim_unit(r);
	p->lossy_share = 0.3;
	p->wills = sim_chance(r, 0.7) ? 0.7 : 0;
	p->delay_max_ns = sim_spread(r, HW_NS_PER_MS, 25 * HW_NS_PER_MS);
	p->delay_ns = sim_spread(r, HW_NS_PER_MS / 5, 50 * HW_NS_PER_MS);
	p->service_ns = sim_spread(r, 20000, HW_NS_PER_MS);
	p->backoff_max_ns = sim_spread(r, 2 * HW_NS_PER_S, 60 * HW_NS_PER_S);
	p->goodbye_delay_ms = sim_chance(r, 0.3) ? 3000 : 0;
	for (int g = 0; g < SIM_GROUPS_MAX; g++)
		p->no_canary[g] = sim_chance(r, 0.1);
	/* A group without canaries becomes deaf for three timeouts whenever it is silent for one timeout while a
	 * device is due. After that, silence counts from zero. So while the last device but one naps, the death of a
	 * sleeping device may be found up to three of its own timeouts later. */
	if (p->no_canary[0] || p->no_canary[1])
		p->calm_ns += 60 * HW_NS_PER_S +
		              (p->sleepers > 0 ? 40 : 5) *
		                      (p->timeout_ns[0] > p->timeout_ns[1] ? p->timeout_ns[0] : p->timeout_ns[1]);
	p->replays = sim_chance(r, 0.3);
	p->takeover_wills = p->goodbye_delay_ms > 0;
	p->buffer_bound = (size_t)pick(s, bounds, 3);
	p->pipe_bound = p->buffer_bound + (size_t)pick(s, bounds, 3);
	p->budget = (unsigned)pick(s, budgets, 4);
	p->load_pace_ns = sim_spread(r, HW_NS_PER_MS, 300 * HW_NS_PER_MS);
	p->deaths = sim_unit(r) * 2;
	p->net_share = 0.25;
	p->troubles = sim_chance(r, 0.1) ? 0 : (unsigned)sim_between(r, 1, SIM_TROUBLES_MAX / 2);
	for (unsigned k = 0; k < p->troubles; k++)
		p->trouble[k] = draw_trouble(s, any_kind(s));
	p->reads_whole = sim_chance(r, 0.5);
	p->tight = p->timeout_ns[0] < 10 * HW_NS_PER_S && sim_chance(r, 0.3);
	if (s->seed % 500 == 0)
		crowd(s);
	else
		draw_gateways(s);
	draw_barriers(s);
	draw_bridge(s);
	draw_online_after(s);
	/* Parents are checked each second, which would be too many checks in years. */
	p->parent = p->tick_ns == HW_NS_PER_S &&
	            sim_chance(&(struct sim_random){.state = s->seed ^ UINT64_C(0x706172656e74)}, PARENTS);
}

void sim_plan_of_one_kind(struct sim *s, enum sim_trouble_kind kind)
{
	struct sim_plan *p = &s->plan;
	for (int g = 0; g < SIM_GROUPS_MAX; g++) {
		p->timeout_ns[g] = sim_between(&s->random, 2000, 4000) * HW_NS_PER_MS;
		p->no_canary[g] = false;
		p->online_after[g] = 1;
	}
	p->batch[0] = p->batch[1] = false;
	p->bridge[0] = p->bridge[1] = kind == SIM_BRIDGE_AWAY;
	p->devices = (uint32_t)sim_between(&s->random, 6, 10);
	p->conf.grace_ms = 2000;
	p->conf.barrier_timeout_ms = 5000;
	p->sparse = false;
	p->tick_ns = HW_NS_PER_S;
	p->backoff_max_ns = 4 * HW_NS_PER_S;
	p->loss = p->sleepers = 0;
	p->deaths = 2;
	p->trouble_ns = 80 * HW_NS_PER_S;
	p->calm_ns = 100 * HW_NS_PER_S;
	p->troubles = 4;
	for (unsigned k = 0; k < p->troubles; k++) {
		p->trouble[k] = draw_trouble(s, kind);
		if (p->trouble[k].length_ns > 5 * HW_NS_PER_S)
			p->trouble[k].length_ns = 5 * HW_NS_PER_S;
	}
}

void sim_plan_steady(struct sim *s, uint32_t devices, double loss, int64_t timeout_ms, int64_t length_ns)
{
	struct sim_plan *p = &s->plan;
	memset(p, 0, sizeof(*p));
	p->devices = devices;
	p->readers = p->groups = 1;
	p->timeout_ns[0] = p->timeout_ns[1] = timeout_ms * HW_NS_PER_MS;
	p->interval_ns = HW_NS_PER_S;
	p->loss = loss;
	p->lossy_share = 1;
	draw_conf(s);
	p->conf.grace_ms = 0;
	p->delay_max_ns = p->delay_ns = HW_NS_PER_MS;
	p->service_ns = 20000;
	p->backoff_max_ns = 2 * HW_NS_PER_S;
	p->buffer_bound = p->pipe_bound = 100000;
	p->budget = 2048;
	p->tick_ns = 60 * HW_NS_PER_S;
	p->load_pace_ns = HW_NS_PER_MS;
	p->trouble_ns = length_ns;
}

void sim_plan_learning(struct sim *s, uint32_t devices, int64_t length_ns, unsigned troubles)
{
	static const enum sim_trouble_kind kinds[] = {SIM_BROKER_STANDS, SIM_BROKER_RESTART, SIM_HOST_STANDS,
	                                              SIM_NET_CUT,       SIM_BROKER_PAUSES,  SIM_SOCKETS_SLOW,
	                                              SIM_HOST_DIES};
	sim_plan_steady(s, devices, 0, 60000, length_ns);
	s->plan.learns = true;
	s->plan.deaths = 2;
	s->plan.calm_ns = SIM_DAY_NS;
	s->plan.troubles = troubles;
	for (unsigned k = 0; k < troubles; k++)
		s->plan.trouble[k] =
			draw_trouble(s, kinds[sim_below(&s->random, (int64_t)(sizeof(kinds) / sizeof(*kinds)))]);
}

/* The lies of a fleet that learns: see sim.h. */
static void add_learning(const struct sim *s, struct hw_group_spec *g)
{
	if (!s->plan.learns)
		return;
	g->learn = s->lie == SIM_SHOWN ? HW_LEARN_SHOW : HW_LEARN_YES;
	g->timeout_min_ms = s->lie == SIM_LENIENT ? 3600000 : SIM_TIMEOUT_MIN_MS;
	g->timeout_max_ms = SIM_TIMEOUT_MAX_MS;
	g->mistakes = s->lie == SIM_LAVISH ? 24 : SIM_MISTAKES_A_DAY;
	g->mistakes_per_ms = SIM_DAY_NS / HW_NS_PER_MS;
	g->learn_gaps = 1;
}

static unsigned online_after(const struct sim *s, int g)
{
	unsigned after = s->plan.online_after[g];
	return s->lie == SIM_EAGER ? 1 : s->lie == SIM_COY ? after + 2 : after;
}

/* If the plan has parents, d0 is the parent of all devices and also of itself, which the core ignores. That alone
 * changes no verdict. */
static void add_parent(const struct sim *s, struct hw_group_spec *g)
{
	static const char *const parents[] = {"d0"};
	if (!s->plan.parent)
		return;
	g->parents = parents;
	g->n_parents = 1;
	g->child_proves = s->lie == SIM_PROVEN;
	g->parent_death = s->lie == SIM_ORPHANED ? HW_PARENT_TAKE : HW_PARENT_NOTE;
}

size_t sim_plan_groups(const struct sim *s, struct hw_group_spec groups[SIM_GROUPS_MAX])
{
	static const char *const nodes[] = {"nodes/{id}/heartbeat", "nodes/{id}/status"};
	static const char *const slow[] = {"slow/{id}/heartbeat", "slow/{id}/status"};
	static const char *const lists[][1] = {{"nodes/+/heard"}, {"slow/+/heard"}};
	static const char *const whiles[][1] = {{"bridge/0/state 1"}, {"bridge/1/state 1"}};
	const struct sim_plan *p = &s->plan;
	int64_t timeout_ms[SIM_GROUPS_MAX];
	for (int g = 0; g < SIM_GROUPS_MAX; g++) {
		timeout_ms[g] = p->timeout_ns[g] / HW_NS_PER_MS;
		if (s->lie == SIM_HASTY)
			timeout_ms[g] -= timeout_ms[g] / 5;
		if (s->lie == SIM_SLUGGISH)
			timeout_ms[g] += timeout_ms[g] / 2 + 1000;
	}
	for (int g = 0; g < SIM_GROUPS_MAX; g++)
		groups[g] = (struct hw_group_spec){.name = g ? "slow" : "default",
		                                   .heartbeat = p->batch[g] ? lists[g]
		                                                : g         ? slow
		                                                            : nodes,
		                                   .n_heartbeat = p->batch[g] ? 1 : 2,
		                                   .batch = p->batch[g],
		                                   .whiles = whiles[g],
		                                   .n_whiles = p->bridge[g],
		                                   .status = g ? "slow/{id}/status" : "nodes/{id}/status",
		                                   .timeout_ms = timeout_ms[g],
		                                   .timeout_max_ms = INT64_C(3650) * 86400000,
		                                   .goodbye_delay_ms = p->goodbye_delay_ms,
		                                   .online_after = online_after(s, g),
		                                   .canary = !p->no_canary[g]};
	for (int g = 0; g < SIM_GROUPS_MAX; g++) {
		add_parent(s, &groups[g]);
		add_learning(s, &groups[g]);
	}
	return p->groups;
}

/* --- beginning --------------------------------------------------------------- */

/* A device stops, and perhaps returns; or is cut off for a while. */
static void plan_life(struct sim *s, uint32_t i)
{
	struct sim_plan *p = &s->plan;
	struct sim_random *r = &s->random;
	const struct sim_device *d = &s->fleet.device[i];
	int64_t at = 0;
	for (double left = p->deaths; left > 0 && sim_chance(r, left); left -= 1) {
		at += sim_below(r, p->trouble_ns - at);
		int64_t back = at + sim_spread(r, d->interval_ns / 4 + 1, p->timeout_ns[d->group] * 8);
		bool net = sim_chance(r, p->net_share);
		enum sim_turn how = net ? SIM_LOSES_NET : (enum sim_turn)sim_below(r, 4);
		sim_at(s, at, SIM_LIFE, i, 0, how);
		if (!net && (back >= p->trouble_ns || sim_chance(r, 0.3)))
			break;
		at = back < p->trouble_ns ? back : p->trouble_ns;
		sim_at(s, at, SIM_LIFE, i, 0, net ? SIM_GETS_NET : SIM_RETURNS);
		if (at >= p->trouble_ns)
			break;
	}
}

void sim_plan_begin(struct sim *s)
{
	for (uint32_t k = 0; k < s->plan.troubles; k++)
		sim_at(s, s->plan.trouble[k].at, SIM_TROUBLE, k, 0, 0);
	for (uint32_t i = 0; i < s->plan.devices; i++)
		plan_life(s, i);
	sim_at(s, s->plan.trouble_ns + s->plan.calm_ns, SIM_END, 0, 0, 0);
}
