/* SPDX-License-Identifier: MIT */
/*
 * Hearing: which groups are deaf because one of their heartbeat filters does not bring what is published on it. Private
 * to the core.
 *
 * A granted subscription proves nothing: a broker may take the right to read away and go on granting. So nobody is
 * convicted before every filter of its group has brought something that was published after the deadline: another
 * device's heartbeat, or else a canary, which the monitor publishes there itself (canary.h). And a canary that was sent
 * for it, and that a later barrier has overtaken, must be back: if it never is, the filter was mute, perhaps for less
 * than a timeout, and what others bring since says nothing of what was lost before.
 *
 * A group's seeing clock is the monitor's less the time in which the group was deaf: a struct hw_blind that runs on the
 * other. It shows what is stored in hw_device.last_seen_ns.
 *
 * Cost: a store a heartbeat. With nothing due, out, or deaf, a step is constant; otherwise linear in the filters, once
 * a turn.
 */
#ifndef HW_HEARING_H
#define HW_HEARING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hearing_table.h"
#include "sight.h"

enum hw_hearing_verdict {
	HW_HEARING_HEARS,  /* the silence is the device's */
	HW_HEARING_UNSURE, /* look again later */
	HW_HEARING_DEAF,
	HW_HEARING_STILL_DEAF /* deaf, as it was: nobody was told that it heard again meanwhile, nor is to be */
};

/* What a step found or asks for, with the filter that it is about. */
struct hw_hearing_do {
	enum {
		HW_HEARING_NOTHING,
		HW_HEARING_CANARY,  /* send it, with `seq` */
		HW_HEARING_MISSING, /* it does not come back: told once */
		HW_HEARING_MUTE,    /* the filter was mute, and may be so still: its group is deaf since */
		HW_HEARING_OVER,    /* the group is not deaf any more */
		HW_HEARING_BACK     /* what it is heard through is back, and it is not blind for that any more */
	} what;
	size_t filter;
	uint16_t group; /* of HW_HEARING_OVER */
	int64_t seq;
};

/*
 * Follows the groups; what is known of a filter that a group keeps is kept. `node` NULL: nothing is doubted, and no
 * canary sent. 0, or -ENOMEM with all as it was.
 */
int hw_hearing_configure(struct hw_hearing *h, const struct hw_sight *s, const struct hw_groups *groups,
                         const char *node, struct hw_mono now);

/* All readers are subscribed (again): what was known of their filters must be proven anew. */
void hw_hearing_subscribed(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now);
/* What was out is lost with its connection, and says nothing. */
void hw_hearing_interrupted(struct hw_hearing *h);

/* A device of this group is to be judged soon: what is not heard on its filters is asked for. */
static inline void hw_hearing_ask(struct hw_hearing *h, uint16_t group, struct hw_mono need)
{
	h->group[group].want = hw_mono_later(h->group[group].want, need);
	h->group[group].asked = h->asked = true;
	hw_hearing_wake(h);
}

/*
 * Whether silence since `need` is that of a device of this group, of which `online` are. Unsure: `*wait_ns` says when
 * to look again; 0: when another pair of barriers is back. Deaf: the group is so from now on, because of `*filter`.
 */
enum hw_hearing_verdict hw_hearing_judge(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now,
                                         uint16_t group, struct hw_mono need, uint32_t online, int64_t *wait_ns,
                                         size_t *filter);

/* While a group is deaf: how many heartbeats of its devices have come so far, on whichever filter, and how many devices
 * are online. */
void hw_hearing_count(struct hw_hearing *h, struct hw_mono now, uint16_t group, uint64_t heartbeats, uint32_t online);

/* Call until it asks for nothing. */
struct hw_hearing_do hw_hearing_step(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now);
/* The first moment at which hw_hearing_step() may have something to do. */
struct hw_mono hw_hearing_next(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now);

/* When this deafness ends if nothing ever comes; INT64_MAX: never. */
struct hw_mono hw_hearing_bound(const struct hw_hearing *h, size_t filter);
/* The same if the group's devices are heard on other filters until then; INT64_MAX: that makes no difference. */
struct hw_mono hw_hearing_bound_by_others(const struct hw_hearing *h, struct hw_mono now, size_t filter);

/* What a group is heard through is away, or back: then it is heard again after a grace. Whether its going away is to
 * be told. */
bool hw_hearing_upstream(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, uint16_t group, bool away,
                         int64_t grace_ns);

/* Whether no device of it is to be judged. */
static inline bool hw_hearing_is_blind(const struct hw_hearing *h, uint16_t group)
{
	return h->group[group].deaf_filters > 0 || h->group[group].upstream;
}

/* What it is heard through is back, and nothing but the grace keeps the group blind. */
static inline bool hw_hearing_returns(const struct hw_hearing *h, uint16_t group)
{
	return h->group[group].upstream && h->group[group].returned && h->group[group].deaf_filters == 0;
}

static inline bool hw_hearing_is_deaf(const struct hw_hearing *h, uint16_t group)
{
	return h->group[group].deaf_filters > 0;
}

/* What a group's seeing clock shows when the monitor's shows `seen`. */
static inline struct hw_seen hw_hearing_seen(const struct hw_hearing *h, uint16_t group, struct hw_seen seen)
{
	if (!h->clocks_differ)
		return seen;
	return hw_blind_seen(&h->group[group].blind, (struct hw_mono){seen.ns});
}

#endif
