/* SPDX-License-Identifier: MIT */
/*
 * The seeing clock and the periods of blindness that stop it.
 *
 * Blind means: the monitor cannot receive the fleet's messages, or may have lost some of them. Causes may overlap. A
 * period of blindness lasts from the begin of the first cause to the end of the last one. The period is lossy if any of
 * its causes is lossy. The seeing clock shows monotonic time less all blind periods, and stands still within a period.
 * A cause may be detected late and begin in the past. The clock then goes back to that moment, which can only move
 * deadlines later.
 */
#ifndef HEARTWHEEL_BLIND_H
#define HEARTWHEEL_BLIND_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/time.h"

enum hw_cause {
	HW_CAUSE_LINK,       /* a reader is not subscribed (as at the start), or the grace after a new subscription
	                      * is not over */
	HW_CAUSE_STALL,      /* the loop or a reader woke later than planned */
	HW_CAUSE_STANDSTILL, /* a barrier is out and nothing arrives */
	HW_CAUSE_SUSPEND,    /* the machine was suspended */
	HW_CAUSE_LOSS,       /* messages were lost between broker and reader */
	HW_CAUSE_BARRIER,    /* barriers do not come back (most likely an ACL), or the publisher cannot send them */
	HW_CAUSE_DEAF,       /* a granted filter delivers nothing; only the clock of a group can have this cause */
	HW_CAUSE_UPSTREAM,   /* the upstream of a group, such as a bridge, is down; only the clock of a group can
	                      * have this cause */
	HW_CAUSES
};

/* Returns "link", "stall" and so on; never NULL. */
const char *hw_cause_name(enum hw_cause c);

struct hw_blind {
	int64_t blind_ns;        /* total length of the periods that are over */
	unsigned active;         /* one bit per active cause */
	enum hw_cause first;     /* the cause that began the current or last period; HW_CAUSE_BARRIER replaces
	                          * another cause */
	bool lossy;              /* the current or last period is lossy */
	bool ended_lossy;        /* the last finished period was lossy */
	struct hw_mono since;    /* begin of the current or last period */
	struct hw_mono until;    /* end of the last period; the next one begins no earlier */
	uint64_t periods;        /* number of periods begun so far */
	struct hw_mono marks[2]; /* marks[0]: begin of the last period whose number is a multiple of 16; marks[1]: begin
	                            of the period 16 before */
	struct hw_seen begun;    /* seeing clock at the begin of the current or last period */
	struct hw_seen lossy_end;    /* seeing clock at the end of the last lossy period; INT64_MIN / 4: none */
	int64_t cause_ns[HW_CAUSES]; /* total time of each cause, without the time for which it is active
	                              * now */
	struct hw_mono cause_since[HW_CAUSES]; /* begin of an active cause, end of an inactive one */
};

void hw_blind_init(struct hw_blind *b);

/*
 * Begins a cause at `at`, which is now or earlier. If `at` is before `until`, the cause begins at `until`, so that no
 * time is subtracted twice. Returns whether a period of blindness begins. Within a period, an earlier `at` moves
 * `since` and `begun` back. If the cause is active already, the call can only make the period lossy.
 */
bool hw_blind_begin(struct hw_blind *b, enum hw_cause cause, struct hw_mono at, bool lossy);

/* Ends a cause at `at`, or at its begin if `at` is earlier. Has no effect on an inactive cause. Returns whether the
 * period of blindness ends too. The end of the period is the latest end of its causes. */
bool hw_blind_end(struct hw_blind *b, enum hw_cause cause, struct hw_mono at);

static inline bool hw_blind_now(const struct hw_blind *b)
{
	return b->active != 0;
}

/* Returns true if 32 or more periods have begun since `since`, and false if fewer than 16 have. In between, the result
 * may be either. */
static inline bool hw_blind_many_since(const struct hw_blind *b, struct hw_mono since)
{
	return b->marks[1].ns > since.ns;
}

/* Returns the seeing clock at `now`. For the past, the result is exact as far back as the end of the last period but
 * one. */
struct hw_seen hw_blind_seen(const struct hw_blind *b, struct hw_mono now);

#endif
