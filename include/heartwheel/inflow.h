/* SPDX-License-Identifier: MIT */
/*
 * The input from a source of evidence, on its way into the monitor: messages in batches, and all other items, in the
 * order in which they were read.
 *
 * A message may contain thousands of heartbeats, so the monitor may finish it only in a later turn. All items that were
 * read after the message must wait too. If a barrier overtook the message, devices would be judged whose heartbeats
 * were read but not processed. In each turn, the reader of a source does this:
 *
 *     if (!hw_inflow_begin(&f, m, now)) continue in the next turn
 *     while (f.holding || another item is read) {
 *         if (!hw_inflow_takes(&f, m, now, the item is a message)) continue in the next turn, with this item
 *         a message: *hw_inflow_slot(&f) = message, or drop it if it is a duplicate
 *         any other item: process it
 *     }
 *     if (!hw_inflow_flush(&f, m, now)) continue in the next turn
 *
 * Invariant: while earlier messages are unfinished (first > 0), nothing is added. Pure, like the rest of the core.
 * Cost: that of hw_monitor_messages().
 */
#ifndef HEARTWHEEL_INFLOW_H
#define HEARTWHEEL_INFLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "heartwheel/monitor.h"
#include "heartwheel/time.h"

/* Owned by the caller. Members that the caller does not set are zero before the first turn. */
struct hw_inflow {
	unsigned source;
	/* Called after the monitor has processed the `n` messages before index `first`. The callback must drain the
	 * monitor. Returns whether the turn is over. The result is used only while messages are left
	 * (hw_inflow_left()). */
	bool (*on_taken)(void *arg, struct hw_now now, size_t n);
	void *arg;
	struct hw_message message[HW_BATCH]; /* the messages point to the caller's memory, which must stay until a
	                                      * flush returns true */
	size_t first, n;                     /* messages from `first` on are unfinished */
	bool holding;                        /* the item that was read last waits for them */
	bool arrived;                        /* hw_monitor_arrived() was called in this turn */
};

/* Passes the waiting messages to the monitor. Returns false if the turn is over before all are processed. */
bool hw_inflow_flush(struct hw_inflow *f, struct hw_monitor *m, struct hw_now now);
/* Begins a turn and flushes the messages of the turn before. Returns the same as hw_inflow_flush(). */
bool hw_inflow_begin(struct hw_inflow *f, struct hw_monitor *m, struct hw_now now);

static inline bool hw_inflow_left(const struct hw_inflow *f)
{
	return f->first < f->n;
}

/* Whether the item that was read last may be processed now. If not, the item is held, and the caller must offer it
 * again after hw_inflow_begin() returns true. */
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

/* Returns the memory for a message that hw_inflow_takes() has accepted. */
static inline struct hw_message *hw_inflow_slot(struct hw_inflow *f)
{
	return &f->message[f->n++];
}

#endif
