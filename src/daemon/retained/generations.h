/* SPDX-License-Identifier: MIT */
/*
 * P of one partition: the broker has acknowledged or refused each status of a transition with a seq less than P. Redis
 * keeps P. So after a crash, the next run knows which statuses it must publish first: those of the devices with a seq
 * of at least P.
 *
 * Statuses are not acknowledged in the order of their seq. So each device whose status is pending by a transition is
 * counted in one of two generations. The start of a generation is at most the seq of each device in it (UINT64_MAX: it
 * is empty). New devices join the present generation. When the older generation is empty, P becomes the start of the
 * present generation, which is the older one from then on. A status that the broker refuses moves to the present
 * generation, so that it holds P back only for a while.
 *
 * Invariant: P <= start of each generation that is not empty. A device whose seq is less than P, because a wall clock
 * was set back or another node's was ahead, lowers P first.
 *
 * Pure. Cost: constant. The caller stores in which generation a device is counted.
 */
#ifndef HW_GENERATIONS_H
#define HW_GENERATIONS_H

#include <stdbool.h>
#include <stdint.h>

#define HW_GENERATION_MS 100 /* a generation lasts at least this long */

struct hw_generations {
	uint64_t p; /* UINT64_MAX: not known */
	uint64_t start[2];
	uint32_t count[2];
	unsigned present; /* which of the two is the present one */
	int64_t began_ms; /* monotonic: begin of the present generation */
	bool settled;     /* a status was settled since P was last set */
};

/* Begins with empty generations; P is not known. */
void hw_generations_init(struct hw_generations *g);

/* Called when P was read from Redis; UINT64_MAX: Redis has no P. A device that is counted already may lower the P
 * that was read. */
void hw_generations_found(struct hw_generations *g, uint64_t p);

/* Counts a device. `older`: it was pending before this run. Returns its generation, 0 or 1. */
unsigned hw_generations_add(struct hw_generations *g, uint64_t seq, bool older);
/* Called when another transition gave this seq to a device that is counted in `generation`. This matters if the
 * broker has refused the device's earlier status: the start of the generation then may be greater than the seq. */
void hw_generations_again(struct hw_generations *g, unsigned generation, uint64_t seq);
/* Called after a transition gave this seq to a counted device. Returns whether P is less than before. P must then
 * be written before the transition. */
bool hw_generations_lower(struct hw_generations *g, uint64_t seq);
/* Moves a refused device from `generation` to the present one, which is returned. */
unsigned hw_generations_refused(struct hw_generations *g, unsigned generation);
/* The device's status is not pending any more. */
void hw_generations_settle(struct hw_generations *g, unsigned generation);

/* Whether hw_generations_turn() changes P, now or when the present generation is old enough. */
bool hw_generations_waits(const struct hw_generations *g);
/* Sets P. Returns whether P has changed. */
bool hw_generations_turn(struct hw_generations *g, uint64_t wall_ms, int64_t now_ms);

#endif
