/* SPDX-License-Identifier: MIT */
/*
 * The seeing clock and the periods of blindness that stop it.
 *
 * Blind means: the monitor cannot hear the fleet, or may have lost what it sent. Causes overlap; a period lasts from
 * the begin of the first to the end of the last, and is lossy if any of them was. The seeing clock shows monotonic time
 * less all blind periods and stands still within one. A cause may be found out late and begin in the past: then the
 * clock is put back to that moment, which only ever makes deadlines later.
 */
#ifndef HEARTWHEEL_BLIND_H
#define HEARTWHEEL_BLIND_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/time.h"

enum hw_cause {
	HW_CAUSE_LINK,       /* a reader is not subscribed (also the start), or reconnect_grace is not over */
	HW_CAUSE_STALL,      /* the loop or a reader woke later than planned */
	HW_CAUSE_STANDSTILL, /* a barrier is out and nothing arrives */
	HW_CAUSE_SUSPEND,    /* the machine slept */
	HW_CAUSE_LOSS,       /* messages were lost between broker and reader */
	HW_CAUSE_BARRIER,    /* barriers do not come back, most likely for an ACL; or the publisher cannot send them */
	HW_CAUSE_DEAF,       /* a filter brings nothing although it was granted: of a group's own clock alone */
	HW_CAUSE_UPSTREAM,   /* what a group is heard through is away: of a group's own clock alone */
	HW_CAUSES
};

/* "link", "stall", ...; never NULL. */
const char *hw_cause_name(enum hw_cause c);

struct hw_blind {
	int64_t blind_ns;     /* total length of the periods that are over */
	unsigned active;      /* bit a cause that lasts */
	enum hw_cause first;  /* the cause that began the current or last period; denied barriers, once that is known */
	bool lossy;           /* of the current or last period */
	bool ended_lossy;     /* of the last period that is over */
	struct hw_mono since; /* begin of the current or last period */
	struct hw_mono until; /* end of the last period: none begins before it */
	uint64_t periods;     /* begun so far */
	struct hw_seen begun; /* where the seeing clock stood at the begin of the current or last period */
	struct hw_seen lossy_end;    /* ... at the end of the last lossy one; INT64_MIN / 4 if there was none */
	int64_t cause_ns[HW_CAUSES]; /* time in which each cause was active, without what is still lasting */
	struct hw_mono cause_since[HW_CAUSES]; /* begin of a cause that lasts; of any other the end */
};

void hw_blind_init(struct hw_blind *b);

/*
 * A cause begins at `at` (now or earlier; a moment before `until` counts as `until`, so that no time is taken off
 * twice). Returns whether a period of blindness begins with it. While one lasts, an earlier `at` moves its begin,
 * `since` and `begun`, back. Beginning again what lasts changes only `lossy`.
 */
bool hw_blind_begin(struct hw_blind *b, enum hw_cause cause, struct hw_mono at, bool lossy);

/* A cause ends at `at` (one before its begin counts as its begin). Returns whether the period of blindness ends with
 * it; its end is the latest that any of its causes was given. Ending what does not last does nothing. */
bool hw_blind_end(struct hw_blind *b, enum hw_cause cause, struct hw_mono at);

static inline bool hw_blind_now(const struct hw_blind *b)
{
	return b->active != 0;
}

/* What the seeing clock shows at `now`. A past moment is told right as far back as the end of the last period but one.
 */
struct hw_seen hw_blind_seen(const struct hw_blind *b, struct hw_mono now);

#endif
