/* SPDX-License-Identifier: MIT */
/*
 * An estimate of Redis' wall clock from the times in its answers. Private to this folder.
 *
 * The estimate is `now` plus an offset. Each answer is late, so each offset that follows from an answer is too small.
 * The greatest of the last few offsets is the best one. An offset that is too small only delays tasks. An offset that
 * is too great makes a claim too early: Redis then refuses the claim, and its answer contains the right time. So no
 * task runs early.
 */
#ifndef HW_TASKS_REDIS_CLOCK_H
#define HW_TASKS_REDIS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/time.h"

#define HW_REDIS_CLOCK_SAMPLES 8 /* offsets that are kept */

struct hw_redis_clock {
	int64_t hold_ms; /* how long a step ahead is not trusted; set by the owner */
	int64_t offsets[HW_REDIS_CLOCK_SAMPLES], offset_ms;
	unsigned n_offsets, next_offset;
	int64_t believed_ms;                    /* while the clock is held: the offset before the step */
	struct hw_mono hold_until, reported_at; /* reported_at: the last answer with Redis' clock */
	bool held;
	uint64_t holds; /* how often the clock was held or stepped */
};

/* Returns whether an answer with Redis' time has arrived. */
static inline bool hw_redis_clock_is_known(const struct hw_redis_clock *c)
{
	return c->n_offsets > 0;
}

/* Returns 0 before any answer. */
static inline int64_t hw_redis_clock_ms(const struct hw_redis_clock *c, struct hw_mono now)
{
	return hw_redis_clock_is_known(c) ? now.ns / HW_NS_PER_MS + c->offset_ms : 0;
}

/* Takes the time of an answer that has just arrived. Times up to 0 are ignored: returns false. */
bool hw_redis_clock_take(struct hw_redis_clock *c, struct hw_mono now, int64_t redis_ms);
/* Called when Redis is reachable again: the clock may have gone back unseen in the meantime. */
void hw_redis_clock_hold_on(struct hw_redis_clock *c, struct hw_mono now);

#endif
