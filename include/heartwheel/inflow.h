/* SPDX-License-Identifier: MIT */
/*
 * What is read of a source of evidence, on its way into the monitor: messages in batches, and everything in the order
 * in which it was read.
 *
 * A message may be thousands of heartbeats. What the monitor has not worked off of one when the turn is over waits for
 * the next turn, and whatever was read behind it waits too: a barrier that overtook it would judge devices whose
 * heartbeats have been read. Whoever reads a source calls, once a turn,
 *
 *     if (!hw_inflow_begin(&f, m, now)) come back in the next turn
 *     while (f.holding || one more is read) {
 *         if (!hw_inflow_takes(&f, m, now, it is a message)) come back in the next turn, with it
 *         either *hw_inflow_slot(&f) = it        or leave it out, if it is the second copy of one
 *         or carry out what it is, if it is no message
 *     }
 *     if (!hw_inflow_flush(&f, m, now)) come back in the next turn
 *
 * Invariant: nothing is added while something is left of before (first > 0). As pure as the rest of the core. Cost:
 * that of hw_monitor_messages().
 */
#ifndef HEARTWHEEL_INFLOW_H
#define HEARTWHEEL_INFLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "heartwheel/monitor.h"
#include "heartwheel/time.h"

/* The caller's; what it does not set is zero before the first turn. */
struct hw_inflow {
	unsigned source;
	/* The monitor has worked `n` messages off, which end before `first`, and is to be drained. Returns whether the
	 * turn is over: asked for where hw_inflow_left(). */
	bool (*on_taken)(void *arg, struct hw_now now, size_t n);
	void *arg;
	struct hw_message message[HW_BATCH]; /* they point to where the caller keeps them until a flush says true */
	size_t first, n;                     /* those from `first` on are not worked off */
	bool holding;                        /* what was read last waits behind them */
	bool arrived;                        /* in this turn */
};

/* Gives the monitor what is left. False if the turn is over before all of it is worked off. */
bool hw_inflow_flush(struct hw_inflow *f, struct hw_monitor *m, struct hw_now now);
/* The same, at the beginning of a turn. */
bool hw_inflow_begin(struct hw_inflow *f, struct hw_monitor *m, struct hw_now now);

static inline bool hw_inflow_left(const struct hw_inflow *f)
{
	return f->first < f->n;
}

/* Whether it is the turn of what was read last. If not it is held, and its turn comes once hw_inflow_begin() says true.
 */
static inline bool hw_inflow_takes(struct hw_inflow *f, struct hw_monitor *m, struct hw_now now, bool is_message)
{
	f->holding = (!is_message || f->n == HW_BATCH) && !hw_inflow_flush(f, m, now);
	if (f->holding)
		return false;
	if (is_message && !f->arrived) {
		f->arrived = true;
		hw_monitor_arrived(m, now, f->source);
	}
	return true;
}

/* Where a message goes that hw_inflow_takes() has let in. */
static inline struct hw_message *hw_inflow_slot(struct hw_inflow *f)
{
	return &f->message[f->n++];
}

#endif
