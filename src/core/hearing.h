/* SPDX-License-Identifier: MIT */
/*
 * Hearing: a group is deaf if one of its heartbeat filters does not deliver the messages that are published on it.
 * Private to the core.
 *
 * A granted subscription proves nothing: a broker may withdraw the right to read and still grant the subscription. So
 * before a device goes offline or is unseen, each filter of its group must have delivered a message that was published
 * after the deadline. This message is a heartbeat of another device, or a canary that the monitor publishes (canary.h).
 * If a canary was sent for this purpose, it must come back too: a later heartbeat proves nothing about the messages
 * before it. If a later barrier is back and the canary never is, the filter did not deliver for some time, perhaps for
 * less than a timeout.
 *
 * A group's seeing clock is the monitor's, less the time in which only the group was deaf or its upstream was down. A
 * second struct hw_blind counts this time. hw_device.last_seen_ns is a value of the group's clock.
 *
 * Cost: one store for each heartbeat. A step is constant if no canary is due or on its way and no group is deaf;
 * otherwise it is linear in the filters, once a turn.
 */
#ifndef HW_HEARING_H
#define HW_HEARING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hearing_table.h"
#include "sight.h"

enum hw_hearing_verdict {
	HW_HEARING_HEARS,  /* the silence is the device's own */
	HW_HEARING_UNSURE, /* unknown: check again later */
	HW_HEARING_DEAF,
	HW_HEARING_STILL_DEAF /* the group is deaf again before the end of its last deafness was reported; both
	                       * reports are omitted */
};

/* In place of the number of online devices: the silent device was never heard. Filters without canaries are then
 * believed to deliver. */
#define HW_HEARING_EXPECTED UINT32_MAX

/* What a step found or requests, and for which filter. */
struct hw_hearing_do {
	enum {
		HW_HEARING_NOTHING,
		HW_HEARING_CANARY,  /* send a canary with `seq` */
		HW_HEARING_MISSING, /* a canary does not come back: report it once */
		HW_HEARING_MUTE,    /* The filter was mute, and perhaps still is. The group counts as deaf from the
		                     * filter's last message on. */
		HW_HEARING_OVER,    /* the group is no longer deaf */
		HW_HEARING_BACK     /* The upstream is up, and no longer makes the group blind. */
	} what;
	size_t filter;
	uint16_t group; /* of HW_HEARING_OVER and HW_HEARING_BACK */
	int64_t seq;
};

/* Sets the groups. A filter that a group keeps also keeps its data. `node` NULL: all filters are believed to deliver,
 * and no canary is sent. Returns 0, or -ENOMEM with nothing changed. */
int hw_hearing_configure(struct hw_hearing *h, const struct hw_sight *s, const struct hw_groups *groups,
                         const char *node, struct hw_mono now);

/* Called when all readers are subscribed (again). Every filter must then be proven again. */
void hw_hearing_subscribed(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now);
/* Called when a connection is lost. Canaries that were on their way may never come back, which proves nothing. */
void hw_hearing_interrupted(struct hw_hearing *h);

/* Requests canaries on those filters of a group that have not delivered a message from after `need`, because a
 * device of the group will be judged soon. */
static inline void hw_hearing_ask(struct hw_hearing *h, uint16_t group, struct hw_mono need)
{
	h->group[group].want = hw_mono_later(h->group[group].want, need);
	h->group[group].asked = h->asked = true;
	hw_hearing_wake(h);
}

/* Judges whether a silence since `need` is the device's own, or whether a filter may not have delivered. `online` is
 * the number of online devices of the group, or HW_HEARING_EXPECTED. Unsure: check again after `*wait_ns`, or, if that
 * is 0, with the next pair of barriers. Deaf: the group is deaf from now on, because of `*filter`. */
enum hw_hearing_verdict hw_hearing_judge(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now,
                                         uint16_t group, struct hw_mono need, uint32_t online, int64_t *wait_ns,
                                         size_t *filter);

/* Whether a canary can test each filter of the group. */
bool hw_hearing_has_canaries(const struct hw_hearing *h, uint16_t group);

/* Called while a group is deaf, with the number of its heartbeats so far on all filters, and the number of its
 * online devices. */
void hw_hearing_count(struct hw_hearing *h, struct hw_mono now, uint16_t group, uint64_t heartbeats, uint32_t online);

/* Returns what the step found or requests. The caller repeats the call until the result is HW_HEARING_NOTHING. */
struct hw_hearing_do hw_hearing_step(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now);
/* Returns the first instant at which hw_hearing_step() may have work. */
struct hw_mono hw_hearing_next(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now);

/* Returns when the deafness of this filter ends if no message arrives; INT64_MAX: never. */
struct hw_mono hw_hearing_bound(const struct hw_hearing *h, size_t filter);
/* Returns when the deafness of this filter ends, on condition that other filters of the group deliver its devices'
 * heartbeats until then. INT64_MAX: other filters do not end this deafness. */
struct hw_mono hw_hearing_bound_by_others(const struct hw_hearing *h, struct hw_mono now, size_t filter);

/* Called when the upstream of a group is down (`away`), or is up. After it is up again, a grace passes before the
 * group is no longer blind. Returns whether to report that the upstream went down. */
bool hw_hearing_upstream(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, uint16_t group, bool away,
                         int64_t grace_ns);

/* Whether no device of the group may be judged. */
static inline bool hw_hearing_is_blind(const struct hw_hearing *h, uint16_t group)
{
	return h->group[group].deaf_filters > 0 || h->group[group].upstream;
}

/* Whether one of the group's heirs (hearing_table.h) is blind. */
static inline bool hw_hearing_is_heir_blind(const struct hw_hearing *h, uint16_t group)
{
	const struct hw_hearing_group *g = &h->group[group];
	for (size_t k = g->heir; k < g->heir + g->n_heirs; k++)
		if (hw_hearing_is_blind(h, h->heir[k]))
			return true;
	return false;
}

/* Whether the upstream is up again, and only the grace after that still makes the group blind. */
static inline bool hw_hearing_returns(const struct hw_hearing *h, uint16_t group)
{
	return h->group[group].upstream && h->group[group].returned && h->group[group].deaf_filters == 0;
}

static inline bool hw_hearing_is_deaf(const struct hw_hearing *h, uint16_t group)
{
	return h->group[group].deaf_filters > 0;
}

/* Converts `seen` from the monitor's seeing clock to the group's. */
static inline struct hw_seen hw_hearing_seen(const struct hw_hearing *h, uint16_t group, struct hw_seen seen)
{
	if (!h->clocks_differ)
		return seen;
	return hw_blind_seen(&h->group[group].blind, (struct hw_mono){seen.ns});
}

#endif
