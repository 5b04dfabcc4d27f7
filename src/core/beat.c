/* SPDX-License-Identifier: MIT */
/* Handles one heartbeat or goodbye of a device: finds its group, its fields and its record, and passes the event to
 * verdict.c. See beat.h. */
#include "beat.h"

#include <math.h>
#include <string.h>

#include "arm.h"
#include "door.h"
#include "form.h"
#include "learning.h"
#include "left_out.h"
#include "out.h"
#include "parent_intake.h"

/* --- heartbeats -------------------------------------------------------------- */

/* Called for a heartbeat of a device that was known only by its key: the device is now known by both. */
static void known_by_both(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	hw_device_set_source(hw_monitor_at(m, i), HW_SOURCE_MQTT | HW_SOURCE_KEY);
	hw_monitor_arm_earlier(m, now, i);
	hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
}

static void take_fields(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_payload *p)
{
	if (p->timeout_refused)
		hw_intake_refuse(m, HW_REFUSED_TIMEOUT);
	struct hw_device *d = hw_monitor_at(m, i);
	bool provisional = m->conf.loading && hw_device_state(d) == HW_STATE_PROVISIONAL;
	bool timeout = p->has_timeout && (p->timeout_s > 0 || hw_device_extra(d) || provisional);
	if (!p->report.has && !timeout)
		return;
	struct hw_extra *x = NULL;
	if (hw_registry_report(m->registry, i, &p->report) == 0)
		x = hw_device_extra(d);
	if (!x) {
		hw_intake_refuse(m, HW_REFUSED_MEMORY);
		return;
	}
	if (!timeout)
		return;
	int64_t was_ms = x->own_timeout_ms;
	double ms = ceil(p->timeout_s * 1000);
	x->own_timeout_ms = ms > (double)HW_TIMEOUT_MAX_MS ? HW_TIMEOUT_MAX_MS : (int64_t)ms;
	if (x->own_timeout_ms > 0 && x->own_timeout_ms < HW_TIMEOUT_MIN_MS)
		x->own_timeout_ms = HW_TIMEOUT_MIN_MS;
	if (x->own_timeout_ms == 0 && provisional)
		x->own_timeout_ms = HW_OWN_TIMEOUT_OVER;
	/* The device's own timeout is written to the store, or without a store to its status, at once. If the monitor
	 * restarts while the device sleeps, the new run needs this timeout. */
	if (x->own_timeout_ms != was_ms && hw_device_state(d) == HW_STATE_ONLINE)
		hw_monitor_emit_device(m, m->conf.adopt_by ? HW_OUT_STATUS : HW_OUT_REFRESH, i);
	hw_monitor_note_own_timeout(m, now, x->own_timeout_ms);
	hw_monitor_arm_earlier(m, now, i);
}

/*
 * Whether a heartbeat of an offline device may be a copy of the last counted heartbeat. Overlapping filters deliver one
 * message several times, and a list may name a device twice. Copies arrive within HW_AGAIN_NS. But a device with a
 * short timeout may send its next heartbeat within that time. So a heartbeat that arrives an eighth of the timeout or
 * more after the counted one is no copy.
 *
 * Two clocks show that time. An offline device has its last heartbeat in wall-clock time, and the wall clock may have
 * been set back. The seeing clock stands still while the monitor is blind. A copy is close by both clocks.
 */
static bool is_copy(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	if (hw_device_state(d) != HW_STATE_OFFLINE || !hw_monitor_needs_several(m, d) || d->goodbye_period == 0)
		return false;
	int64_t gap_ms = now.wall_ms - hw_device_last_seen_ms(d, now), most_ms = hw_monitor_timeout_ms(m, d) / 8;
	most_ms = most_ms < HW_AGAIN_NS / HW_NS_PER_MS ? most_ms : HW_AGAIN_NS / HW_NS_PER_MS;
	int64_t seen_ns = hw_monitor_group_seen(m, now, d->group).ns - d->last_seen_ns;
	return gap_ms >= 0 && gap_ms < most_ms && seen_ns < most_ms * HW_NS_PER_MS;
}

/* Counts a heartbeat of an offline device, before the heartbeat is stored in the record. The count goes on if the
 * previous heartbeat was read at most one timeout ago; otherwise it starts at one. Returns whether the device needs
 * more heartbeats to be online. */
static bool needs_more(const struct hw_monitor *m, struct hw_now now, struct hw_device *d)
{
	if (hw_device_state(d) != HW_STATE_OFFLINE || !hw_monitor_needs_several(m, d))
		return false;
	unsigned after = m->groups.all[d->group]->online_after;
	int64_t gap_ns = hw_monitor_group_seen(m, now, d->group).ns - d->last_seen_ns;
	unsigned n = gap_ns <= hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS ? d->goodbye_period + 1U : 1;
	d->goodbye_period = (n < after ? n : after) & 0x3fU;
	return n < after;
}

static void heartbeat_known(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_moment t = hw_moment(m, now);
	if (is_copy(m, now, d))
		return;
	bool older = hw_form_is_older(m, d), too_few = needs_more(m, now, d), moved = d->form == HW_FORM_MOVED;
	bool changed = hw_learning_is_on(m, d) && hw_learning_gap(m, now, &t, i);
	hw_beat_heard(m, d, &t);
	if (moved && d->last_seen_ns < m->form[d->group].moved_until_ns)
		d->form = HW_FORM_MOVED;
	if (older || moved || changed) /* the timeout before this may have been longer */
		hw_monitor_arm_earlier(m, now, i);
	if (hw_device_source(d) == HW_SOURCE_KEY)
		known_by_both(m, now, i);
	hw_monitor_rule(m, now, i,
	                &(struct hw_evidence){.event = HW_EVENT_LIFE, .loading = m->conf.loading, .too_few = too_few});
}

/* --- goodbyes ---------------------------------------------------------------- */

static void goodbye_known(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	bool returns = hw_hearing_returns(&m->hearing, d->group);
	bool delay = returns || m->groups.all[d->group]->goodbye_delay_ms > 0 ||
	             hw_sight_is_order_unknown(&m->sight, now.mono, d->last_heard_ms) ||
	             hw_monitor_may_be_repeated(m, now, i);
	hw_monitor_rule(m, now, i,
	                &(struct hw_evidence){.event = HW_EVENT_GOODBYE,
	                                      .loading = m->conf.loading,
	                                      .heard = d->last_heard_ms != HW_NEVER_MS,
	                                      .blind = hw_monitor_is_blind(m) || hw_sight_doubts_goodbye(&m->sight) ||
	                                               (hw_hearing_is_blind(&m->hearing, d->group) && !returns),
	                                      .delay = delay});
}

/* --- one heartbeat or goodbye ------------------------------------------------ */

void hw_monitor_trust_wall(struct hw_monitor *m, struct hw_now now, int64_t good_ms)
{
	m->wall.known = true;
	m->wall.ms = good_ms;
	m->wall.at = now.mono;
}

/* Returns the wall clock, or the last trusted wall clock plus the time since then, whichever is earlier. The wall
 * clock may have been set ahead since it was trusted. */
static int64_t wall_ms(const struct hw_monitor *m, struct hw_now now)
{
	int64_t good_ms = m->wall.ms + (now.mono.ns - m->wall.at.ns) / HW_NS_PER_MS;
	return m->wall.known && good_ms < now.wall_ms ? good_ms : now.wall_ms;
}

static bool stale(const struct hw_monitor *m, struct hw_now now, uint16_t group, const struct hw_payload *p)
{
	int64_t max_age_ms = m->groups.all[group]->max_age_ms;
	return max_age_ms > 0 && p->has_time && !p->goodbye &&
	       (double)wall_ms(m, now) - p->time_s * 1000 > (double)max_age_ms;
}

/* Whether a filter of the device's group has delivered a heartbeat of the device since the filters last changed. A
 * device with a key counts as heard in the group that the configuration gives to keys. */
static bool is_heard_in_group(const struct hw_monitor *m, const struct hw_device *d)
{
	const struct hw_group *g = m->groups.all[d->group];
	return !g->retired &&
	       (hw_form_is_ours(m, d) || (hw_monitor_has_key(m, d) && strcmp(g->name, m->conf.key_group) == 0));
}

/* Keeps the timeout `was_ms` of the group that the device has left. The old group may still receive the device's
 * heartbeats, on a filter on which the device sends more rarely. So `was_ms` stays in force until such a heartbeat
 * would have arrived. */
static void keep_timeout(struct hw_monitor *m, struct hw_now now, struct hw_device *d, int64_t was_ms)
{
	struct hw_form *f = &m->form[d->group];
	int64_t seen_ns = hw_monitor_group_seen(m, now, d->group).ns, was_ns = was_ms * HW_NS_PER_MS;
	if (was_ms <= hw_monitor_timeout_ms(m, d))
		return;
	bool over = seen_ns >= f->moved_until_ns + f->moved_timeout_ms * HW_NS_PER_MS;
	if (over || f->moved_timeout_ms < was_ms)
		f->moved_timeout_ms = was_ms;
	if (over || f->moved_until_ns < seen_ns + was_ns)
		f->moved_until_ns = seen_ns + was_ns;
	d->form = HW_FORM_MOVED;
}

/* Moves a device to the group of its heartbeat, if this is necessary. A device belongs to the first group of the
 * file that receives its heartbeats. After a reload or a restart, a heartbeat moves the device to a later group only
 * if no filter of its present group has delivered one since. */
static void regroup(struct hw_monitor *m, struct hw_now now, uint32_t i, uint16_t group)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if (d->group == group)
		return;
	uint16_t was = d->group;
	const struct hw_group *has = m->groups.all[was];
	bool later = has->retired || has->rank <= m->groups.all[group]->rank;
	if (later && is_heard_in_group(m, d))
		return;
	int64_t was_ms = hw_monitor_timeout_ms(m, d);
	hw_monitor_move(m, now, i, group);
	hw_parent_relink(m, i);
	/* Without a store, only the status keeps the group. The status of the old group may stay on another
	 * topic, so the status of the new group needs a greater seq. */
	if (m->conf.adopt_by) {
		hw_monitor_adopt_seq(m, hw_registry_ref(m->registry, i), d->seq);
		hw_monitor_left_topic(m, i, was);
	}
	d->form = HW_FORM_UNKNOWN;
	if (later)
		keep_timeout(m, now, d, was_ms);
	hw_monitor_arm_earlier(m, now, i);
}

void hw_beat_apply(struct hw_monitor *m, struct hw_now now, uint16_t group, struct hw_id id, uint32_t i,
                   struct hw_payload *p)
{
	if (p && stale(m, now, group, p)) {
		hw_intake_refuse(m, HW_REFUSED_STALE);
		return;
	}
	if (!p || !p->goodbye) {
		m->stats.heartbeats++;
		m->group_stats[group].heartbeats++;
	}
	bool is_new = i == HW_NIL;
	if (is_new) {
		if (hw_left_out_is_stored(m, id.text, id.len)) {
			hw_intake_refuse(m, HW_REFUSED_MAX_DEVICES);
			return;
		}
		if (hw_monitor_add(m, group, id.text, id.len, &i)) {
			if (m->conf.several)
				hw_left_out_note(m, group, id.text, id.len, HW_STATE_PROVISIONAL);
			return;
		}
		hw_monitor_at(m, i)->flags |= HW_FLAG_ONCE;
	} else {
		regroup(m, now, i, group);
	}
	if (p)
		take_fields(m, now, i, p);
	if (p && p->goodbye)
		goodbye_known(m, now, i);
	else
		heartbeat_known(m, now, i);
}

void hw_beat_answered(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool heard = hw_form_is_ours(m, d);
	/* The time of an answer depends on when the probe was sent, not on how often the device sends. The flag is
	 * cleared twice, so neither the time before the answer is learned, nor the time after it. */
	d->flags &= (uint16_t)~HW_FLAG_TIMED;
	hw_beat_apply(m, now, d->group, hw_device_id(d), i, NULL);
	d->flags &= (uint16_t)~HW_FLAG_TIMED;
	if (!heard) /* no filter has delivered the answer */
		d->form = HW_FORM_UNKNOWN;
}

void hw_monitor_answered(struct hw_monitor *m, struct hw_now now, struct hw_ref device)
{
	const struct hw_device *d = hw_registry_get(m->registry, device);
	if (d && hw_device_state(d) != HW_STATE_FORGOTTEN)
		hw_beat_answered(m, now, device.index);
}

void hw_monitor_heartbeat(struct hw_monitor *m, struct hw_now now, uint16_t group, const char *id, size_t len,
                          struct hw_payload *p)
{
	if (!hw_id_valid(id, len)) {
		hw_intake_refuse(m, HW_REFUSED_ID);
		return;
	}
	hw_beat_apply(m, now, group, (struct hw_id){id, len}, hw_registry_find(m->registry, id, len), p);
}
