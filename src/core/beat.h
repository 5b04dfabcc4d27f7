/* SPDX-License-Identifier: MIT */
/* Applies a heartbeat or goodbye of a device whose id is known. intake.c finds the id. Private to the core. */
#ifndef HW_BEAT_H
#define HW_BEAT_H

#include "monitor_priv.h"

static inline void hw_intake_refuse(struct hw_monitor *m, enum hw_refused kind)
{
	m->stats.refused[kind]++;
}

/* The time of a batch of messages. Each heartbeat of the batch stores this time in the record of its device. */
struct hw_moment {
	struct hw_seen seen;
	int64_t mono_ms;
	struct hw_mono sent_after; /* each message of the batch passed the broker after this instant */
};

/* Returns the time of a heartbeat. If a parent's goodbye was read in this millisecond, a heartbeat read after the
 * goodbye gets the next millisecond. So last_heard_ms shows whether a child was heard after the goodbye. */
static inline int64_t hw_moment_ms(const struct hw_monitor *m, struct hw_now now)
{
	int64_t ms = now.mono.ns / HW_NS_PER_MS;
	return ms + (ms == m->family.goodbye_ms);
}

static inline struct hw_moment hw_moment(const struct hw_monitor *m, struct hw_now now)
{
	return (struct hw_moment){hw_monitor_seen(m, now), hw_moment_ms(m, now), {0}};
}

static inline void hw_beat_heard(const struct hw_monitor *m, struct hw_device *d, const struct hw_moment *t)
{
	d->last_seen_ns = hw_hearing_seen(&m->hearing, d->group, t->seen).ns;
	hw_device_set_heard_ms(d, t->mono_ms);
	d->form = HW_FORM_OURS;
}

/* Applies a heartbeat or goodbye to the device `i`; HW_NIL: a new device of that id. `p` NULL: a plain heartbeat. */
void hw_beat_apply(struct hw_monitor *m, struct hw_now now, uint16_t group, struct hw_id id, uint32_t i,
                   struct hw_payload *p);
/* Called when a device has answered a probe. The answer counts as a heartbeat. */
void hw_beat_answered(struct hw_monitor *m, struct hw_now now, uint32_t i);

#endif
