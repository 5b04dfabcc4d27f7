/* SPDX-License-Identifier: MIT */
/* The random numbers of a test program. They can be repeated: the seed is printed, and HW_SEED sets it. */
#ifndef HW_TEST_RANDOM_H
#define HW_TEST_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "simulation/sim_random.h"

static struct sim_random random_state;

/* The seed is HW_SEED or, if that is not set, `otherwise`. */
static inline void random_begin(uint64_t otherwise)
{
	const char *text = getenv("HW_SEED");
	random_state.state = text != NULL ? strtoull(text, NULL, 0) : otherwise;
	printf("HW_SEED=%" PRIu64 "\n", random_state.state);
	fflush(stdout);
}

/* Another one each time that a program runs. */
static inline uint64_t random_seed_of_now(void)
{
	return (uint64_t)time(NULL) * 2654435761U ^ (uint64_t)clock();
}

static inline uint64_t random64(void)
{
	return sim_draw(&random_state);
}

/* From 0 to n - 1. */
static inline uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random64() % n);
}

#endif
