/* SPDX-License-Identifier: MIT */
/*
 * The door: all changes of a device's state are made here, as verdict.c decides. See door.h.
 *
 * Invariants: stats.count[] and group_stats[].count[] are the numbers of records in each state. Only this file, and the
 * creation and removal of records (monitor.c), change them. A device's seq grows with each transition.
 */
#include "door.h"

#include <string.h>

#include "arm.h"
#include "gate.h"
#include "key.h"
#include "learning.h"
#include "out.h"
#include "parent_death.h"
#include "parent_wait.h"
#include "probe.h"

/* --- states ------------------------------------------------------------------- */

/* Deletes the data that a forgotten device has reported, and what was learned about it. If the device sends again
 * before its record is freed, it counts as a new device. */
static void unlearn(struct hw_monitor *m, uint32_t i)
{
	struct hw_extra *x = hw_device_extra(hw_monitor_at(m, i));
	hw_learning_forget(m, i);
	if (!x)
		return;
	x->own_timeout_ms = 0;
	memset(x->report, 0, HW_REPORT_PACKED_MIN);
}

void hw_monitor_place(struct hw_monitor *m, uint32_t i, enum hw_state state, enum hw_reason reason)
{
	struct hw_device *d = hw_monitor_at(m, i);
	enum hw_state was = hw_device_state(d);
	m->stats.count[was]--;
	m->group_stats[d->group].count[was]--;
	m->stats.count[state]++;
	m->group_stats[d->group].count[state]++;
	hw_device_set_state(d, state, reason);
	if (was != state && state == HW_STATE_OFFLINE)
		d->goodbye_period = 0;
	if (m->parents.names && state != HW_STATE_OFFLINE)
		hw_parent_is_up(m, i);
	if (state == HW_STATE_FORGOTTEN)
		unlearn(m, i);
}

void hw_monitor_no_longer_provisional(struct hw_device *d)
{
	if (hw_device_own_timeout_ms(d) == HW_OWN_TIMEOUT_OVER)
		hw_device_extra(d)->own_timeout_ms = 0;
}

/* Returns the seq of the device's next transition. */
static uint64_t next_seq(const struct hw_device *d, struct hw_now now)
{
	uint64_t wall = now.wall_ms > 0 ? (uint64_t)now.wall_ms : 0;
	return wall > d->seq ? wall : d->seq + 1;
}

/* `delay_ns` as in struct hw_transition. */
static void transition(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_state state, enum hw_reason reason,
                       int64_t delay_ns)
{
	struct hw_device *d = hw_monitor_at(m, i);
	enum hw_state was = hw_device_state(d);
	if (was == HW_STATE_PROVISIONAL)
		hw_monitor_no_longer_provisional(d);
	bool any_parent = m->parents.names, down = any_parent && state == HW_STATE_OFFLINE;
	int64_t wait_ms = down ? hw_parent_wait_ms(m, now, i) : -1, heard_ms = d->last_heard_ms;
	if (down)
		hw_parent_goes_down(m, now, i, reason, delay_ns, next_seq(d, now) & HW_SEQ_MAX);
	if (!hw_state_is_gone(was) && hw_state_is_gone(state) && d->last_heard_ms != HW_NEVER_MS)
		hw_device_set_heard_ms(d, hw_device_last_seen_ms(d, now));
	hw_monitor_place(m, i, state, reason);
	d->seq = next_seq(d, now) & HW_SEQ_MAX;
	d->since_ms = (now.wall_ms > 0 ? now.wall_ms : 0) & HW_SINCE_MAX;
	d->flags &= (uint16_t) ~(HW_FLAG_GOODBYE | HW_FLAG_HELD | HW_FLAG_PACED | HW_FLAG_HEARD | HW_FLAG_TOUCHED);
	hw_monitor_arm(m, now, i);
	if (any_parent && state == HW_STATE_ONLINE)
		hw_parent_returns(m, now, i, true);
	if (wait_ms >= 0)
		hw_parent_wait(m, now, i, heard_ms);
	m->stats.transitions[reason]++;
	hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_TRANSITION,
	                                    .transition = {.device = hw_registry_ref(m->registry, i),
	                                                   .state = state,
	                                                   .reason = reason,
	                                                   .time_ms = d->since_ms,
	                                                   .last_seen_ms = hw_device_last_seen_ms(d, now),
	                                                   .seq = d->seq,
	                                                   .wait_ms = wait_ms,
	                                                   .delay_ns = delay_ns}});
}

bool hw_monitor_adopt_seq(struct hw_monitor *m, struct hw_ref ref, uint64_t seq)
{
	struct hw_device *d = hw_registry_get(m->registry, ref);
	if (!d || seq >= HW_SEQ_MAX || d->seq > seq)
		return false;
	d->seq = (seq + 1) & HW_SEQ_MAX;
	return true;
}

/* Whether the device must wait for its turn under max_offline_rate. If so, arms the device for that turn. */
static bool paced(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	unsigned rate = m->groups.all[d->group]->max_offline_rate;
	if (rate == 0 || d->flags & HW_FLAG_PACED)
		return false;
	int64_t seen = hw_monitor_seen(m, now).ns, *turn = &m->offline_free_ns[d->group];
	bool wait = *turn > seen;
	if (wait) {
		d->flags |= HW_FLAG_PACED;
		if (hw_monitor_is_keyed(m, d))
			hw_monitor_key_arm_at(m, i, hw_seen_add(hw_monitor_key_seen(m, now), *turn - seen));
		else
			hw_monitor_arm_at(m, i, (struct hw_seen){*turn});
	}
	*turn = (wait ? *turn : seen) + HW_NS_PER_S / rate;
	return wait;
}

/* --- verdicts ----------------------------------------------------------------- */

void hw_monitor_void_goodbye(struct hw_monitor *m, uint32_t i)
{
	hw_monitor_at(m, i)->flags &= (uint16_t) ~(HW_FLAG_GOODBYE | HW_FLAG_HELD);
	m->stats.goodbyes_void++;
	hw_monitor_emit_device(m, HW_OUT_STATUS, i);
}

/* Called when an online device was heard. */
static void goes_on(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool put_off = hw_probe_heard(m, i), paced = d->flags & HW_FLAG_PACED;
	d->flags &= (uint16_t) ~(HW_FLAG_ONCE | HW_FLAG_PACED);
	/* The device's turn under max_offline_rate may come later than its new deadline, so the device is armed
	 * again. */
	if (d->flags & HW_FLAG_SILENT || put_off || paced)
		hw_monitor_arm(m, now, i);
	/* The device was due for a probe, not for a refresh. */
	if (put_off)
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
}

/* Stores the data of the event that the record must keep, with any verdict. */
static void remember(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool provisional = hw_device_state(d) == HW_STATE_PROVISIONAL;
	/* Also for a goodbye that this node does not accept, because another node may accept it. */
	if (e->event == HW_EVENT_GOODBYE)
		hw_parent_says_goodbye(m, now, i);
	if (e->event == HW_EVENT_DUE)
		d->flags &= (uint16_t)~HW_FLAG_HELD;
	else if (e->event == HW_EVENT_GOODBYE && provisional)
		d->flags |= HW_FLAG_GOODBYE;
	else if (e->event == HW_EVENT_GOODBYE && !e->blind)
		hw_gate_clear_heard(d, now);
	else if (e->event == HW_EVENT_LIFE && provisional)
		d->flags &= (uint16_t)~HW_FLAG_GOODBYE;
	else if (e->event == HW_EVENT_LIFE && hw_device_state(d) == HW_STATE_ONLINE)
		goes_on(m, now, i);
}

/* Makes a device online. HW_FLAG_ONCE means that only one message of the device has arrived. An offline device has
 * been online before, so this message is at least its second. For a forgotten device, this message counts as the
 * first. */
static void go_online(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_verdict *v)
{
	struct hw_device *d = hw_monitor_at(m, i);
	enum hw_state was = hw_device_state(d);
	if (was == HW_STATE_FORGOTTEN)
		d->flags |= HW_FLAG_ONCE;
	else if (was == HW_STATE_OFFLINE)
		d->flags &= (uint16_t)~HW_FLAG_ONCE;
	else
		m->stats.goodbyes_void += d->flags & HW_FLAG_GOODBYE ? 1 : 0;
	transition(m, now, i, HW_STATE_ONLINE, v->reason, -1);
}

/* Returns false if the device must wait for its turn under max_offline_rate. Timeouts are paced, because thousands may
 * be decided at once. Goodbyes are not paced, because they arrive one by one as devices stop. */
static bool go_offline(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_verdict *v)
{
	if (v->reason != HW_REASON_WILL && paced(m, now, i))
		return false;
	transition(m, now, i, HW_STATE_OFFLINE, v->reason, v->delay_ns);
	return true;
}

bool hw_monitor_may_be_repeated(const struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	return m->again.device.index == i && now.mono.ns - m->again.at.ns < HW_AGAIN_NS;
}

/* Returns how long a goodbye is held before the device is judged. If the goodbye may be older than the device's last
 * heartbeat, it is held for half the timeout: a device that still runs sends its next heartbeat within that time. */
static int64_t hold_ns(const struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	int64_t delay_ms = m->groups.all[d->group]->goodbye_delay_ms, half_ms = hw_monitor_timeout_ms(m, d) / 2;
	bool longer = half_ms > delay_ms && hw_sight_is_order_unknown(&m->sight, now.mono, d->last_heard_ms);
	int64_t ns = (longer ? half_ms : delay_ms) * HW_NS_PER_MS;
	return ns < HW_AGAIN_NS && hw_monitor_may_be_repeated(m, now, i) ? HW_AGAIN_NS : ns;
}

/* Returns when a held goodbye is judged: after hold_ns(), or at the device's deadline if that is earlier. If the
 * group's upstream has just returned, the goodbye is judged when the grace ends, at the earliest. */
static struct hw_seen held_until(const struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	struct hw_seen seen = hw_monitor_seen(m, now), held = hw_seen_add(seen, hold_ns(m, now, i));
	struct hw_seen deadline = hw_monitor_deadline(m, now, d);
	if (!hw_hearing_returns(&m->hearing, d->group))
		return held.ns < deadline.ns ? held : deadline;
	struct hw_seen back = hw_seen_add(seen, m->hearing.group[d->group].back.ns - now.mono.ns);
	return held.ns > back.ns ? held : back;
}

/* Accepts a goodbye of an online device. If the group holds goodbyes, the device is judged later; otherwise it is a
 * suspect now. */
static void take_goodbye(struct hw_monitor *m, struct hw_now now, uint32_t i, bool hold)
{
	struct hw_device *d = hw_monitor_at(m, i);
	d->flags |= HW_FLAG_GOODBYE;
	d->goodbye_period = hw_monitor_periods(m, d->group) & 0x3fU;
	if (!hold) {
		hw_monitor_suspect(m, i, now.mono);
		return;
	}
	struct hw_seen held = held_until(m, now, i);
	/* Refreshes the keys now, because holding the goodbye may delay the check that refreshes them. Alternating
	 * goodbyes and heartbeats could delay that check again and again. */
	bool puts_off =
		d->node.place > HW_PLACE_LEVEL3 || d->flags & HW_FLAG_KEYED || d->node.due < hw_tick_ceil(held).n;
	d->flags |= HW_FLAG_HELD;
	hw_monitor_arm_at(m, i, held);
	if (puts_off)
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
}

/* Returns the time between two checks that both refresh the keys. */
static int64_t stride_ns(const struct hw_monitor *m, const struct hw_device *d)
{
	int64_t timeout_ns = hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS;
	return timeout_ns < HW_ARM_MAX_NS ? timeout_ns : HW_ARM_MAX_NS;
}

/*
 * Whether this check may skip the refresh: the previous check refreshed the keys, and keys expire four timeouts or more
 * after a refresh. The next check then refreshes the keys. The next check comes at most two timeouts after the previous
 * one, so the keys have at least two timeouts left then. (Checks are less than a timeout apart if the device's
 * heartbeat interval does not divide its timeout.)
 *
 * If the device was armed for another reason since the previous check, its next check refreshes the keys. A reload or
 * blindness since then may have shortened the time to live of the keys, so the check then refreshes the keys too.
 */
static bool may_skip_refresh(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	return d->skips_refresh && !hw_device_extra(d) && !hw_learning_is_on(m, d) &&
	       hw_device_source(d) == HW_SOURCE_MQTT && hw_monitor_skips_refreshes(m) &&
	       now.mono.ns >= m->skips_from.ns && now.mono.ns - m->sight.blind.until.ns >= stride_ns(m, d);
}

/* Whether the next check of a device that was just armed and refreshed comes sooner than stride_ns(). */
static bool is_seen_soon(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	if (d->node.place > HW_PLACE_LEVEL3 || d->flags & HW_FLAG_KEYED || !hw_gate_owns(m, d))
		return false;
	int64_t next_ns = hw_tick_start((struct hw_tick){d->node.due}).ns - hw_monitor_seen(m, now).ns;
	return next_ns < stride_ns(m, d) - HW_NS_PER_S / HW_TICKS_PER_S;
}

static void rearm(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool skip = may_skip_refresh(m, now, d);
	hw_monitor_arm(m, now, i);
	hw_monitor_emit_device(m, skip ? HW_OUT_REFRESH_LIGHT : HW_OUT_REFRESH, i);
	d->skips_refresh = !skip && is_seen_soon(m, now, d);
}

/* Called when a device cannot be judged now, because its group is deaf or this node cannot hear the device. The
 * device's goodbye does not count. The device is refreshed, so that its keys in the store do not expire meanwhile. */
static void rest(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	if (hw_monitor_at(m, i)->flags & HW_FLAG_GOODBYE)
		hw_monitor_void_goodbye(m, i);
	hw_monitor_arm_deaf(m, now, i);
	hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
}

/* Discards a goodbye that does not count. If the goodbye was stored, held, or waited to be judged, it had replaced the
 * device's deadline in the wheel. So the device is armed for its deadline again. */
static void void_judged(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e)
{
	if (e->key_lives && !e->touched)
		hw_monitor_key_silent(m, i);
	hw_monitor_void_goodbye(m, i);
	if (e->event == HW_EVENT_PROVEN || hw_monitor_at(m, i)->flags & HW_FLAG_SILENT) {
		hw_monitor_arm(m, now, i);
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i); /* replaces the refresh of its check */
	} else {
		hw_monitor_arm_earlier(m, now, i);
	}
}

/* Called when the key of a device is missing, but the device stays online: makes the store write this monitor's own
 * key. If another program's key was known, the device is armed again, for the deadline of its heartbeats or of that
 * key, whichever is first; a deadline of the key that has passed does not count. A suspect stays where it is. */
static void refresh(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e)
{
	hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
	if (e->by_key && !e->suspect)
		hw_monitor_arm(m, now, i);
}

/* Judges the suspect again after `wait_ns`. If `wait_ns` is 0, judges it when the next pair of barriers is back. */
static void wait(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t wait_ns)
{
	if (wait_ns == 0)
		hw_monitor_suspect(m, i, (struct hw_mono){0}); /* hearing.c has already asked for the proof */
	else
		hw_monitor_arm_at(m, i, hw_seen_add(hw_monitor_seen(m, now), wait_ns));
}

/* Returns a time. The device's silence counts only if each filter of its group has delivered a canary or message
 * that was published after this time. The time is the device's deadline if that has passed, and now otherwise. All
 * goodbyes of a group that wait to be judged share the time of the first one. */
static struct hw_mono needs_since(const struct hw_monitor *m, struct hw_now now, uint32_t i,
                                  const struct hw_evidence *e)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	struct hw_mono first = m->hearing.group[d->group].need;
	if (d->flags & HW_FLAG_GOODBYE)
		return first.ns ? first : now.mono;
	return e->late_ns > 0 ? hw_mono_add(now.mono, -e->late_ns) : now.mono;
}

/* Counts a heartbeat of an offline device that has not sent enough heartbeats to be online. The device is not
 * forgotten while it sends heartbeats, also across a restart. For this, the first heartbeat of each count
 * (needs_more() in beat.c) is written to the store, at most one in a timeout. */
static void count(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	hw_device_set_heard_ms(d, now.wall_ms);
	d->flags &= (uint16_t) ~(HW_FLAG_ONCE | HW_FLAG_HEARD);
	hw_monitor_arm_offline(m, now, i, 0);
	if (d->goodbye_period <= 1 && hw_gate_is_authoritative(m, d))
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
}

static void suspect(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e)
{
	if (e->event == HW_EVENT_GOODBYE)
		take_goodbye(m, now, i, false);
	else
		hw_monitor_suspect(m, i, needs_since(m, now, i, e));
}

bool hw_monitor_rule(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e)
{
	remember(m, now, i, e);
	struct hw_verdict v = hw_verdict(hw_monitor_at(m, i), e);
	return hw_monitor_carry_out(m, now, i, e, &v);
}

bool hw_monitor_carry_out(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e,
                          const struct hw_verdict *v)
{
	if (hw_act_changes(v->act) && !hw_gate_is_authoritative(m, hw_monitor_at(m, i))) {
		hw_gate_note(m, now, i, v->act); /* another node decides */
		return false;
	}
	switch (v->act) {
	case HW_ACT_ONLINE:
		go_online(m, now, i, v);
		return true;
	case HW_ACT_OFFLINE:
		return go_offline(m, now, i, v);
	case HW_ACT_FORGOTTEN:
		transition(m, now, i, HW_STATE_FORGOTTEN, v->reason, -1);
		return true;
	case HW_ACT_SUSPECT:
		suspect(m, now, i, e);
		break;
	case HW_ACT_HOLD:
		take_goodbye(m, now, i, true);
		break;
	case HW_ACT_VOID:
		void_judged(m, now, i, e);
		break;
	case HW_ACT_REARM:
		m->stats.relinks++;
		rearm(m, now, i);
		break;
	case HW_ACT_ASK_KEY:
		hw_monitor_key_due(m, now, i);
		break;
	case HW_ACT_KEY_LIVES:
		hw_monitor_key_silent(m, i);
		rearm(m, now, i);
		break;
	case HW_ACT_REFRESH:
		refresh(m, now, i, e);
		break;
	case HW_ACT_EXCUSE:
		hw_monitor_arm(m, now, i);
		break;
	case HW_ACT_WAIT:
		wait(m, now, i, e->wait_ns);
		break;
	case HW_ACT_COUNT:
		count(m, now, i);
		break;
	case HW_ACT_REST:
		rest(m, now, i);
		break;
	case HW_ACT_PUBLISH_STATUS:
		hw_monitor_emit_device(m, HW_OUT_STATUS, i);
		break;
	case HW_ACT_NONE:
		break;
	}
	return false;
}
