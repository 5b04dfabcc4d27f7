/* SPDX-License-Identifier: MIT */
/*
 * Sight: what the monitor can hear, and how well that is proven. It keeps the readers' links, the barriers that are out
 * and back, and drives the seeing clock (blind.h) from them. Private to the core.
 *
 * Barriers are numbered without gaps. A number is proven when it, or a later one, has come back through every reader; a
 * candidate waits until the second barrier sent after it is proven. The second of a pair is not sent on the first one's
 * heels: it follows when the first is back, or a quarter of a round trip (at least a tick) later, so that a broker that
 * takes several packets of one socket in a turn cannot take both at once.
 */
#ifndef HW_SIGHT_H
#define HW_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/blind.h"
#include "heartwheel/monitor.h"

#define HW_BARRIERS_OUT 64 /* at most so many are out at once */

struct hw_sight_reader {
	bool up;
	bool still;                  /* a barrier is out and nothing arrives: part of a standstill */
	bool ever;                   /* a barrier has come back since the subscription */
	uint64_t back;               /* the last number that came back, or that need not come back */
	struct hw_mono arrived;      /* when anything arrived last */
	struct hw_mono good;         /* when a barrier came back last, or the subscription was granted */
	struct hw_mono reconnect_at; /* not asked to reconnect again before this */
	int64_t reconnect_wait_ns;
};

/* A stall or a standstill that lasts. */
struct hw_sight_pause {
	struct hw_mono since;
	struct hw_mono hold; /* when the grace that it interrupted would have ended; 0: none */
};

struct hw_sight {
	struct hw_blind blind;
	int64_t grace_ns, slow_ns, timeout_ns;
	unsigned n_readers;
	struct hw_sight_reader reader[HW_READERS_MAX];
	bool publisher_up;
	uint64_t sent;  /* number of the last barrier */
	uint64_t floor; /* a barrier up to this one may have been lost: it proves nothing to who waits */
	struct hw_mono sent_at[HW_BARRIERS_OUT];
	int64_t rtt_ns;                 /* smoothed (RFC 6298's factor); 0: none yet */
	struct hw_mono hold[HW_CAUSES]; /* a cause whose grace lasts ends then; 0: no grace */
	struct hw_sight_pause stall, standstill;
	struct hw_mono
		awake;  /* when a stall was found out last: what had not come by then need not be the broker's fault */
	uint64_t doubt; /* a goodbye that comes before this barrier may be the will of a broker that stood still */
	uint64_t barriers_back;
};

/* What a step asks for. */
struct hw_sight_do {
	bool barrier;  /* send barrier number s->sent (already counted as sent) */
	int reconnect; /* a reader to be reconnected, or -1 */
};

void hw_sight_init(struct hw_sight *s, const struct hw_monitor_conf *conf, struct hw_mono now);
void hw_sight_configure(struct hw_sight *s, const struct hw_monitor_conf *conf);

void hw_sight_link(struct hw_sight *s, struct hw_mono now, unsigned reader, bool up);
void hw_sight_publisher(struct hw_sight *s, bool up);
void hw_sight_arrived(struct hw_sight *s, struct hw_mono now, unsigned reader);
void hw_sight_barrier(struct hw_sight *s, struct hw_mono now, unsigned reader, uint64_t number);
void hw_sight_loss(struct hw_sight *s, struct hw_mono now, unsigned reader);
void hw_sight_stall(struct hw_sight *s, struct hw_mono planned, struct hw_mono now);
void hw_sight_drained(struct hw_sight *s, struct hw_mono now);
void hw_sight_suspended(struct hw_sight *s, struct hw_mono since, struct hw_mono now);

/* The barrier that must be proven before what became a candidate now is judged. Never falls. */
uint64_t hw_sight_tag(const struct hw_sight *s);
/* Whether a goodbye that is read now may be one of the wills that a broker publishes after a standstill. */
bool hw_sight_doubts_goodbyes(const struct hw_sight *s);
/* Whether a candidate with this tag may be judged. */
bool hw_sight_proven(const struct hw_sight *s, uint64_t tag);

/* When the first of the two barriers that prove this tag was sent; long ago if that is not known any more. */
struct hw_mono hw_sight_pair_sent(const struct hw_sight *s, uint64_t tag);

/*
 * Looks at the clock: ends graces that are over, finds standstills, and says what is to be done. `tag` is the highest
 * tag anyone waits for (0: nobody), `pace_ns` the steady pace. Call until it asks for nothing.
 */
struct hw_sight_do hw_sight_step(struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns);
/* The first moment at which hw_sight_step() may have something to do. */
struct hw_mono hw_sight_next(const struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns);

#endif
