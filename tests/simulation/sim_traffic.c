/* SPDX-License-Identifier: MIT */
/* See sim_traffic.h. */
#include "sim_traffic.h"

#include <math.h>

#define DAY_S       86400.0
#define HALF_LIFE   10000 /* after this many heartbeats, the interval of a device that drifts has doubled */
#define NEW_VERSION 8000  /* heartbeats after which the firmware changes */

const char *sim_traffic_name(enum sim_traffic_kind kind)
{
	static const char *const names[SIM_TRAFFIC_KINDS] = {
		"regular",   "jitter",          "poisson", "lossy", "diurnal",    "burst_then_sleep",
		"two_modes", "gateway_backlog", "drift",   "rare",  "reconnects", "firmware"};
	return names[kind];
}

static double between(struct sim_random *r, double lo, double hi)
{
	return lo + (hi - lo) * sim_unit(r);
}

/* Box and Muller, 1958. */
static double normal(struct sim_random *r)
{
	return sqrt(-2 * log(1 - sim_unit(r))) * cos(2 * M_PI * sim_unit(r));
}

static double lossy(struct sim_random *r)
{
	double k = 1;
	while (sim_chance(r, 0.1))
		k++;
	return 20 * k + between(r, -.5, .5);
}

static double burst_then_sleep(struct sim_traffic *t, struct sim_random *r)
{
	if (t->left == 0) {
		t->left = (uint32_t)sim_between(r, 6, 13);
		return between(r, 1500, 1900);
	}
	t->left--;
	return between(r, 1, 3);
}

static double two_modes(struct sim_traffic *t, struct sim_random *r)
{
	if (t->left == 0) {
		t->left = (uint32_t)sim_between(r, 50, 200);
		t->mode = t->mode > 100 ? 10 : 300;
	}
	t->left--;
	return t->mode * between(r, .9, 1.1);
}

/* The gateway's uplink stands still; then all heartbeats that have waited arrive at once. */
static double gateway_backlog(struct sim_traffic *t, struct sim_random *r)
{
	if (t->left > 0) {
		t->left--;
		return between(r, .005, .05);
	}
	if (!sim_chance(r, .01))
		return 30 * between(r, .95, 1.05);
	double stood = between(r, 60, 240);
	t->left = (uint32_t)(stood / 30);
	return stood;
}

static double reconnects(struct sim_random *r)
{
	if (!sim_chance(r, .004))
		return 30 * between(r, .97, 1.03);
	return 30 + (double)(1 << sim_between(r, 1, 5)) * between(r, 1, 2);
}

static double gap_s(struct sim_traffic *t, struct sim_random *r)
{
	switch (t->kind) {
	case SIM_JITTER:
		return fmax(1, 30 + 6 * normal(r));
	case SIM_POISSON:
		return .5 - 45 * log(1 - sim_unit(r));
	case SIM_LOSSY:
		return lossy(r);
	case SIM_DIURNAL:
		return 60 * (1 + 5 * fmax(0, sin(2 * M_PI * t->at / DAY_S))) * between(r, .8, 1.25);
	case SIM_BURST_THEN_SLEEP:
		return burst_then_sleep(t, r);
	case SIM_TWO_MODES:
		return two_modes(t, r);
	case SIM_GATEWAY_BACKLOG:
		return gateway_backlog(t, r);
	case SIM_DRIFT:
		return 30 * (1 + (double)t->n / HALF_LIFE) * between(r, .95, 1.05);
	case SIM_RARE:
		return fmin(6 * 3600, 1200 * exp(.8 * normal(r)));
	case SIM_RECONNECTS:
		return reconnects(r);
	case SIM_FIRMWARE:
		return (t->n < NEW_VERSION ? 20 : 80) * between(r, .95, 1.05);
	default:
		return 30 + between(r, -.3, .3);
	}
}

int64_t sim_traffic_gap_ns(struct sim_traffic *t, struct sim_random *r)
{
	double gap = gap_s(t, r);
	t->n++;
	t->at += gap;
	return (int64_t)(gap * 1e9);
}
