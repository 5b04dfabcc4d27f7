/* SPDX-License-Identifier: MIT */
/*
 * Chance, from a seed: splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
 * Everything random in a run comes from one stream of it, drawn in the order of the run's events; so a seed replays a
 * run.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_random {
	uint64_t state;
};

static inline uint64_t sim_draw(struct sim_random *r)
{
	uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 0 .. n - 1 */
static inline int64_t sim_below(struct sim_random *r, int64_t n)
{
	return (int64_t)(sim_draw(r) % (uint64_t)n);
}

/* lo .. hi */
static inline int64_t sim_between(struct sim_random *r, int64_t lo, int64_t hi)
{
	return lo + sim_below(r, hi - lo + 1);
}

/* [0, 1) */
static inline double sim_unit(struct sim_random *r)
{
	return (double)(sim_draw(r) >> 11) * 0x1p-53;
}

static inline bool sim_chance(struct sim_random *r, double p)
{
	return sim_unit(r) < p;
}

/* Returns a time from lo to hi. Each order of magnitude is equally likely. */
static inline int64_t sim_spread(struct sim_random *r, int64_t lo, int64_t hi)
{
	return (int64_t)((double)lo * exp(sim_unit(r) * log((double)hi / (double)lo)));
}

#endif
