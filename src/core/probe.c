/* SPDX-License-Identifier: MIT */
/* See probe.h. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>

#include "arm.h"
#include "form.h"
#include "heartwheel/siphash.h"
#include "out.h"
#include "probe_time.h"

static struct hw_probe_moments moments(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	return hw_probe_moments(m->groups.all[d->group], d, hw_monitor_timeout_ms(m, d),
	                        hw_monitor_deadline(m, now, d));
}

/* --- sending probes ------------------------------------------------------------ */

static bool may_be_asked(const struct hw_monitor *m, const struct hw_device *d, const struct hw_evidence *e)
{
	return hw_device_state(d) == HW_STATE_ONLINE && !(d->flags & HW_FLAG_GOODBYE) && !e->by_key && !e->deaf &&
	       e->late_ns < 0 && !m->conf.loading && hw_gate_owns(m, d);
}

static void ask(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t left_ns)
{
	hw_monitor_at(m, i)->node.user |= HW_USER_PROBED;
	m->stats.probes_sent++;
	hw_monitor_arm(m, now, i);
	hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_PROBE,
	                                    .probe = {.device = hw_registry_ref(m->registry, i), .left_ns = left_ns}});
}

/* Sends a probe now if probe_rate allows, or else reserves the next turn for the device. If that turn comes after
 * the deadline, the probe is dropped: turns are given in order, so no earlier turn is free. */
static void ask_in_turn(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t left_ns)
{
	struct hw_seen seen = hw_monitor_seen(m, now), turn = {m->probe.free_ns}, deadline = hw_seen_add(seen, left_ns);
	if (m->conf.probe_rate == 0 || turn.ns <= seen.ns) {
		turn = seen;
		ask(m, now, i, left_ns);
	} else if (hw_tick_ceil(turn).n >= hw_tick_ceil(deadline).n) {
		m->stats.probes_dropped++;
		hw_monitor_arm_at(m, i, left_ns < HW_ARM_MAX_NS ? deadline : hw_seen_add(seen, HW_ARM_MAX_NS));
		return;
	} else {
		hw_monitor_arm_at(m, i, turn);
		hw_monitor_at(m, i)->flags |= HW_FLAG_PACED;
	}
	if (m->conf.probe_rate > 0)
		m->probe.free_ns = turn.ns + HW_NS_PER_S / m->conf.probe_rate;
}

/*
 * Whether a probe is due: one of the device's moments must be between the tick for which it was armed and now. Probes
 * that were sent in this silence already had earlier moments. If the device was heard since, all its moments are in the
 * future.
 */
bool hw_probe_due(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e)
{
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_seen seen = hw_monitor_seen(m, now), deadline = hw_seen_add(seen, -e->late_ns);
	bool turn = d->flags & HW_FLAG_PACED && d->node.due < hw_tick_ceil(deadline).n;
	struct hw_tick at;
	if (turn)
		d->flags &= (uint16_t)~HW_FLAG_PACED;
	m->stats.probes_dropped += turn && e->late_ns >= 0; /* the turn came after the deadline */
	if (!may_be_asked(m, d, e))
		return false;
	struct hw_probe_moments t = moments(m, now, d);
	if (!hw_probe_last(&t, hw_tick_floor(seen), &at) || (!turn && hw_device_is_probed(d) && at.n < d->node.due))
		return false;
	if (turn)
		ask(m, now, i, -e->late_ns);
	else
		ask_in_turn(m, now, i, -e->late_ns);
	return true;
}

bool hw_probe_is_wanted(const struct hw_monitor *m, struct hw_now now, struct hw_ref ref, int64_t *left_ns)
{
	const struct hw_device *d = hw_registry_get(m->registry, ref);
	if (!d || hw_device_state(d) != HW_STATE_ONLINE || !hw_device_is_probed(d) || hw_monitor_is_blind(m) ||
	    hw_form_is_blind(m, d) || !hw_gate_owns(m, d))
		return false;
	*left_ns = hw_monitor_deadline(m, now, d).ns - hw_monitor_seen(m, now).ns;
	return *left_ns > 0;
}

/* --- after a probe ------------------------------------------------------------- */

bool hw_probe_heard(struct hw_monitor *m, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if (hw_device_is_probed(d)) {
		d->node.user &= (uint8_t)~HW_USER_PROBED;
		m->stats.probes_answered++;
	}
	return d->flags & HW_FLAG_PACED && m->groups.all[d->group]->probes && d->node.place <= HW_PLACE_LEVEL3;
}

bool hw_probe_taken_over(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if (!m->groups.all[d->group]->probes || d->flags & HW_FLAG_GOODBYE || hw_monitor_is_keyed(m, d))
		return false;
	struct hw_probe_moments t = moments(m, now, d);
	int64_t seen_ns = hw_monitor_seen(m, now).ns;
	if (t.first_ns > seen_ns)
		return false;
	d->last_seen_ns = hw_monitor_group_seen(m, now, d->group).ns - t.after_ns + HW_NS_PER_S / HW_TICKS_PER_S + 1;
	return true;
}

/* --- answers ------------------------------------------------------------------- */

const char *hw_monitor_probe_answers(const struct hw_monitor *m)
{
	return m->conf.probe_answers;
}

static uint64_t tag_of(const struct hw_monitor *m, struct hw_ref ref, const struct hw_device *d)
{
	const uint64_t of[] = {(uint64_t)ref.index << 32 | ref.gen, (uint64_t)d->last_seen_ns};
	return hw_siphash(2, 4, m->probe.key, of, sizeof(of));
}

bool hw_probe_id(const struct hw_monitor *m, struct hw_ref ref, char id[HW_PROBE_ID_SIZE])
{
	const struct hw_device *d = hw_registry_get(m->registry, ref);
	if (!d)
		return false;
	snprintf(id, HW_PROBE_ID_SIZE, "%08x-%04x-%016llx", ref.index, (unsigned)ref.gen,
	         (unsigned long long)tag_of(m, ref, d));
	return true;
}

/* Whether an answer counts: the silence that caused the probe still lasts, or ended less than a timeout ago. */
static bool is_fresh(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	enum hw_state state = hw_device_state(d);
	int64_t late_ns = hw_monitor_seen(m, now).ns - hw_monitor_deadline(m, now, d).ns;
	return state == HW_STATE_ONLINE ||
	       (state == HW_STATE_OFFLINE && late_ns <= hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS);
}

uint32_t hw_probe_answered_by(const struct hw_monitor *m, struct hw_now now, const struct hw_message *msg)
{
	char id[HW_PROBE_ID_SIZE], is[HW_PROBE_ID_SIZE];
	struct hw_ref ref;
	if (msg->retained || msg->truncated ||
	    hw_payload_text(msg->payload, msg->payload_len, "msg_id", id, sizeof(id)) != HW_PROBE_ID_SIZE - 1)
		return HW_NIL;
	ref.index = (uint32_t)strtoul(id, NULL, 16);
	ref.gen = (uint16_t)strtoul(id + 9, NULL, 16);
	const struct hw_device *d = hw_registry_get(m->registry, ref);
	if (!d || !hw_probe_id(m, ref, is) || strcmp(id, is) != 0 || !is_fresh(m, now, d))
		return HW_NIL;
	return ref.index;
}
