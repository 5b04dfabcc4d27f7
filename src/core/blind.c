/* SPDX-License-Identifier: MIT */
/*
 * The seeing clock: see blind.h.
 *
 * Invariants: the finished blind periods do not overlap, end at `until` or earlier, and last `blind_ns` together. A
 * blind period that has not ended begins at `since` >= `until`. So no instant is subtracted twice, also if a cause is
 * detected late.
 *
 * cause_since[c] is when an active cause began, or when an inactive one ended. So two periods of one cause never
 * overlap. A blind period ends when the last of its causes ends.
 *
 * Cost: constant.
 */
#include "heartwheel/blind.h"

#include <stddef.h>
#include <string.h>

/* An instant before all others. It is so far from the type's limit that calculations with it do not overflow. */
#define LONG_AGO (INT64_MIN / 4)

static const char *const names[HW_CAUSES] = {
	[HW_CAUSE_LINK] = "link",       [HW_CAUSE_STALL] = "stall",       [HW_CAUSE_STANDSTILL] = "standstill",
	[HW_CAUSE_SUSPEND] = "suspend", [HW_CAUSE_LOSS] = "loss",         [HW_CAUSE_BARRIER] = "barrier",
	[HW_CAUSE_DEAF] = "deaf",       [HW_CAUSE_UPSTREAM] = "upstream",
};

const char *hw_cause_name(enum hw_cause c)
{
	return (size_t)c < HW_CAUSES ? names[c] : "unknown";
}

void hw_blind_init(struct hw_blind *b)
{
	memset(b, 0, sizeof(*b));
	b->since.ns = b->until.ns = LONG_AGO;
	b->begun.ns = LONG_AGO;
	b->lossy_end.ns = LONG_AGO;
	b->marks[0].ns = b->marks[1].ns = INT64_MIN; /* also before HW_NEVER_MS */
	for (int c = 0; c < HW_CAUSES; c++)
		b->cause_since[c].ns = LONG_AGO;
}

bool hw_blind_begin(struct hw_blind *b, enum hw_cause cause, struct hw_mono at, bool lossy)
{
	bool begins = b->active == 0;
	if (begins || lossy)
		b->lossy = lossy;
	if (b->active >> cause & 1)
		return false;
	at = hw_mono_later(at, b->until);
	b->cause_since[cause] = hw_mono_later(at, b->cause_since[cause]);
	b->active |= 1U << cause;
	b->periods += begins;
	if (begins && b->periods % 16 == 0) {
		b->marks[1] = b->marks[0];
		b->marks[0] = at;
	}
	/* If the broker refuses barriers, the monitor first takes this for a standstill of the broker. Once
	 * HW_CAUSE_BARRIER is found, it replaces the standstill as the cause that is reported. */
	if (begins || cause == HW_CAUSE_BARRIER)
		b->first = cause;
	if (begins || at.ns < b->since.ns) {
		b->since = at;
		b->begun.ns = at.ns - b->blind_ns;
	}
	return begins;
}

bool hw_blind_end(struct hw_blind *b, enum hw_cause cause, struct hw_mono at)
{
	if (!(b->active >> cause & 1))
		return false;
	at = hw_mono_later(at, b->cause_since[cause]);
	b->cause_ns[cause] += at.ns - b->cause_since[cause].ns;
	b->cause_since[cause] = at;
	b->active &= ~(1U << cause);
	if (b->active)
		return false;
	/* The end of the blindness is the latest end of a cause, and not the end of the cause that this turn has
	 * handled last. */
	for (int c = 0; c < HW_CAUSES; c++)
		at = hw_mono_later(at, b->cause_since[c]);
	b->blind_ns += at.ns - b->since.ns;
	b->until = at;
	b->ended_lossy = b->lossy;
	if (b->lossy)
		b->lossy_end = b->begun; /* the clock has stood still since */
	return true;
}

struct hw_seen hw_blind_seen(const struct hw_blind *b, struct hw_mono now)
{
	/* The result is also right for instants within the last blind period and just before it. */
	if (b->active || now.ns < b->until.ns)
		return now.ns < b->since.ns ? hw_seen_add(b->begun, now.ns - b->since.ns) : b->begun;
	return (struct hw_seen){now.ns - b->blind_ns};
}
