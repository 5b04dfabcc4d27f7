/* SPDX-License-Identifier: MIT */
/*
 * Expected devices: their timeouts, and which of them are unseen. See monitor.h.
 *
 * An id is unseen if it was expected for longer than its group's first_within (at least the device's timeout), and this
 * monitor has received the group's messages for at least the timeout. So after a step of the clock, a device still has
 * its whole timeout to send a first heartbeat. If a message of the device was refused because there was no room for the
 * device, first_within (at least the timeout) begins again when there is room.
 *
 * The group's filters must also have delivered a message from after the time at which the id was due, as for a device
 * that goes offline (hearing.h). One canary on each filter serves all ids that were due before it was sent.
 *
 * An entry without a group has the timeout and the first_within of the first group, but its device may send in any
 * group that its id fits. So both conditions apply to all of these groups.
 *
 * Cost: an id is checked when its time is due. While the monitor is blind none is checked.
 */
#include "heartwheel/unseen.h"

#include <errno.h>
#include <string.h>

#include "arm.h"
#include "form.h"
#include "gate.h"
#include "parent_intake.h"

#define AGAIN_MS      1000  /* until an id of another node's partition is checked again */
#define ANSWERED_MS   10000 /* until an id that was returned is checked again, unless the driver has set its state */
#define ASKED_MS      500   /* until an id that waits for canaries is checked again */
#define GROUPS_A_UNIT 8     /* groups that are asked for one unit of the budget */
#define HEARD_MS      10000 /* how old a filter's last message may be, if an id was due even earlier */

struct hw_expected *hw_monitor_expected(const struct hw_monitor *m)
{
	return m->expected;
}

void hw_monitor_count_unseen(struct hw_monitor *m)
{
	m->stats.transitions[HW_REASON_NEVER_SEEN]++;
}

uint32_t hw_monitor_unseen_of(const struct hw_monitor *m, size_t group)
{
	bool first = m->groups.n_order > 0 && m->groups.order[0] == group;
	return hw_expected_unseen_of(m->expected, (uint16_t)group) +
	       (first ? hw_expected_unseen_of(m->expected, HW_EXPECTED_NO_GROUP) : 0);
}

int hw_monitor_entry_group(struct hw_monitor *m, const char *name)
{
	if (!*name)
		return HW_EXPECTED_NO_GROUP;
	int k = hw_groups_find(&m->groups, name);
	if (k < 0)
		k = hw_form_named(m, name, strlen(name));
	return k == HW_EXPECTED_NO_GROUP ? -ENOSPC : k;
}

static const struct hw_group *group_of(const struct hw_monitor *m, const struct hw_expected_view *v, uint16_t *k)
{
	*k = v->group == HW_EXPECTED_NO_GROUP ? m->groups.order[0] : v->group;
	return m->groups.all[*k];
}

const struct hw_group *hw_monitor_expected_group(const struct hw_monitor *m, const struct hw_expected_view *v)
{
	uint16_t k;
	return group_of(m, v, &k);
}

static int64_t timeout_of(const struct hw_group *g, const struct hw_expected_view *v)
{
	return v->timeout_ms ? v->timeout_ms : g->timeout_ms;
}

/* Returns how long the device has to send its first heartbeat; INT64_MAX: for ever. This monitor judges no device of a
 * group that it does not have. */
static int64_t within_ms(const struct hw_group *g, const struct hw_expected_view *v)
{
	int64_t timeout_ms = timeout_of(g, v);
	if (g->retired || g->first_within_ms == 0)
		return INT64_MAX;
	return g->first_within_ms > timeout_ms ? g->first_within_ms : timeout_ms;
}

/* Returns when the id becomes unseen, by the clock of since_ms; INT64_MAX: never. */
static int64_t due_ms(const struct hw_group *g, const struct hw_expected_view *v)
{
	int64_t ms = within_ms(g, v);
	return ms == INT64_MAX ? ms : v->since_ms + ms;
}

/* Waits only if the id has a time at all. */
static void wait_until(struct hw_expected *e, uint32_t i, int64_t at_ms)
{
	if (at_ms == INT64_MAX)
		hw_expected_rest(e, i);
	else
		(void)hw_expected_wait(e, i, at_ms);
}

bool hw_monitor_is_known(const struct hw_monitor *m, struct hw_id id)
{
	uint32_t i = hw_registry_find(m->registry, id.text, id.len);
	return i != HW_NIL && hw_device_state(hw_monitor_at(m, i)) != HW_STATE_FORGOTTEN;
}

void hw_monitor_expect(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_expected_view v = hw_expected_at(m->expected, i);
	uint32_t device = hw_registry_find(m->registry, v.id.text, v.id.len);
	uint16_t k;
	if (device != HW_NIL) {
		(void)hw_monitor_set_inventory_timeout(m, now, hw_registry_ref(m->registry, device), v.timeout_ms);
		hw_parent_list(m, device);
	}
	if (device != HW_NIL && hw_device_state(hw_monitor_at(m, device)) != HW_STATE_FORGOTTEN) {
		hw_expected_rest(m->expected, i);
	} else if (v.state == HW_EXPECTED_REFUSED) {
		(void)hw_expected_refuse(m->expected, i, 0);
	} else if (v.state != HW_EXPECTED_UNSEEN) {
		wait_until(m->expected, i, due_ms(group_of(m, &v, &k), &v));
	}
}

void hw_monitor_expect_no_more(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_expected_view v = hw_expected_at(m->expected, i);
	uint32_t device = hw_registry_find(m->registry, v.id.text, v.id.len);
	if (device != HW_NIL)
		(void)hw_monitor_set_inventory_timeout(m, now, hw_registry_ref(m->registry, device), 0);
	hw_expected_remove(m->expected, i);
	if (device != HW_NIL)
		hw_parent_list(m, device);
}

bool hw_monitor_is_expected(const struct hw_monitor *m, const struct hw_device *d)
{
	struct hw_id id = hw_device_id(d);
	return hw_expected_find(m->expected, id.text, id.len) != HW_NIL;
}

void hw_unseen_added(struct hw_monitor *m, uint32_t device)
{
	struct hw_id id = hw_device_id(hw_monitor_at(m, device));
	uint32_t i = hw_expected_find(m->expected, id.text, id.len);
	int64_t timeout_ms = i == HW_NIL ? 0 : hw_expected_at(m->expected, i).timeout_ms;
	struct hw_extra *x = timeout_ms ? hw_registry_extra(m->registry, device) : NULL;
	if (x)
		x->inventory_timeout_ms = timeout_ms;
	if (i != HW_NIL)
		hw_parent_list(m, device);
}

void hw_unseen_refused(struct hw_monitor *m, const char *id, size_t len)
{
	uint32_t i = hw_expected_find(m->expected, id, len);
	m->room.lacks = true;
	if (i != HW_NIL && (hw_expected_at(m->expected, i).state == HW_EXPECTED_WAITS ||
	                    hw_expected_at(m->expected, i).state == HW_EXPECTED_RESTS))
		(void)hw_expected_refuse(m->expected, i, 0);
}

/* Notes whether there is room for another device. */
static void note_room(struct hw_monitor *m, struct hw_now now)
{
	if (hw_registry_count(m->registry) >= m->conf.max_devices) {
		m->room.lacks = true;
	} else if (m->room.lacks) {
		m->room.lacks = false;
		m->room.since_ns = hw_monitor_seen(m, now).ns;
	}
}

/* Returns how much longer there must be room before a refused id is unseen; INT64_MAX: it never is. */
static int64_t lacks_room_ms(const struct hw_monitor *m, struct hw_now now, int64_t within_ms)
{
	if (m->room.lacks || within_ms == INT64_MAX)
		return within_ms;
	return within_ms - (hw_monitor_seen(m, now).ns - m->room.since_ns) / HW_NS_PER_MS;
}

bool hw_monitor_may_arrive_in(const struct hw_monitor *m, const struct hw_expected_view *v, uint16_t k)
{
	if (v->group != HW_EXPECTED_NO_GROUP)
		return v->group == k;
	return k == m->groups.order[0] || hw_group_fits(m->groups.all[k], v->id.text, v->id.len);
}

/* Returns for how long the group's messages have been received without a loss. */
static int64_t seen_ms(const struct hw_monitor *m, struct hw_now now, uint16_t k)
{
	int64_t from = hw_monitor_lossy_end_ns(m, k), began = m->started.ns;
	return (hw_monitor_group_seen(m, now, k).ns - (from > began ? from : began)) / HW_NS_PER_MS;
}

/* Returns for how long the messages of all groups in which the first heartbeat may arrive have been received without
 * a loss; -1: a group of them is blind. `k`: the group whose times the id has. */
static int64_t all_seen_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_expected_view *v, uint16_t k)
{
	int64_t least = seen_ms(m, now, k);
	for (size_t i = 0; i < m->groups.n_order; i++) {
		uint16_t other = m->groups.order[i];
		if (!hw_monitor_may_arrive_in(m, v, other))
			continue;
		if (hw_hearing_is_blind(&m->hearing, other))
			return -1;
		int64_t ms = seen_ms(m, now, other);
		least = ms < least ? ms : least;
	}
	return least;
}

/* Deafness is lossy: when it ends, the timeout must pass once more. */
static void wait_deaf(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t timeout_ms)
{
	const int64_t most_ms = HW_ARM_MAX_NS / HW_NS_PER_MS;
	wait_until(m->expected, i, now.wall_ms + (timeout_ms < most_ms ? timeout_ms : most_ms));
}

/* Returns the worst verdict on the groups in which the first heartbeat may arrive. All these groups are checked, so
 * that their canaries are sent at the same time. */
static enum hw_hearing_verdict hear_all(struct hw_monitor *m, struct hw_now now, const struct hw_expected_view *v,
                                        uint16_t k, struct hw_mono need)
{
	int64_t wait_ns;
	enum hw_hearing_verdict worst = hw_monitor_hears_group(m, now, k, need, HW_HEARING_EXPECTED, &wait_ns);
	for (size_t i = 0; i < m->groups.n_order; i++) {
		uint16_t other = m->groups.order[i];
		if (other == k || !hw_monitor_may_arrive_in(m, v, other))
			continue;
		enum hw_hearing_verdict one =
			hw_monitor_hears_group(m, now, other, need, HW_HEARING_EXPECTED, &wait_ns);
		worst = one > worst ? one : worst;
	}
	return worst;
}

/* Whether the filters of these groups have delivered the messages that were published until `late_ms` ago, when the id
 * was due. If not, or if the answer is not known yet, the id is checked again later. */
static bool hears(struct hw_monitor *m, struct hw_now now, uint32_t i, uint16_t k, int64_t late_ms, int64_t timeout_ms)
{
	struct hw_expected_view v = hw_expected_at(m->expected, i);
	late_ms = late_ms < HEARD_MS ? late_ms : HEARD_MS;
	struct hw_mono need = hw_mono_later(hw_mono_add(now.mono, -late_ms * HW_NS_PER_MS), m->sight.blind.until);
	switch (hear_all(m, now, &v, k, need)) {
	case HW_HEARING_HEARS:
		return true;
	case HW_HEARING_UNSURE:
		wait_until(m->expected, i, now.wall_ms + ASKED_MS);
		return false;
	default:
		wait_deaf(m, now, i, timeout_ms);
		return false;
	}
}

/* Checks the id whose time is due. Returns whether it is unseen. Otherwise it has another state, or a later time. */
static bool check(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_expected_view v = hw_expected_at(m->expected, i);
	uint16_t k;
	const struct hw_group *g = group_of(m, &v, &k);
	int64_t due = due_ms(g, &v), timeout_ms = timeout_of(g, &v), seen = all_seen_ms(m, now, &v, k);
	int64_t lacks_ms = timeout_ms - seen;
	int64_t late_ms = now.wall_ms - due < -lacks_ms ? now.wall_ms - due : -lacks_ms;
	int64_t room_ms = v.state == HW_EXPECTED_REFUSED ? lacks_room_ms(m, now, within_ms(g, &v)) : 0;
	if (hw_monitor_is_known(m, v.id))
		hw_expected_rest(m->expected, i);
	else if (room_ms > 0)
		(void)hw_expected_refuse(m->expected, i, room_ms == INT64_MAX ? room_ms : now.wall_ms + room_ms);
	else if (due > now.wall_ms)
		wait_until(m->expected, i, due);
	else if (seen < 0)
		wait_deaf(m, now, i, timeout_ms);
	else if (lacks_ms > 0)
		wait_until(m->expected, i, now.wall_ms + lacks_ms);
	else if (!hw_gate_is_authoritative_for(m, v.id.text, v.id.len))
		wait_until(m->expected, i, now.wall_ms + AGAIN_MS);
	else
		return hears(m, now, i, k, late_ms, timeout_ms);
	return false;
}

/* Takes the cost of the check of one id from the budget. An entry without a group needs a check of every group. */
static void spend(const struct hw_monitor *m, uint32_t i, unsigned *budget)
{
	bool all = hw_expected_at(m->expected, i).group == HW_EXPECTED_NO_GROUP;
	unsigned cost = all ? 1 + (unsigned)m->groups.n_order / GROUPS_A_UNIT : 1;
	*budget -= cost < *budget ? cost : *budget;
}

bool hw_monitor_next_unseen(struct hw_monitor *m, struct hw_now now, unsigned *budget, uint32_t *i)
{
	int64_t at_ms;
	note_room(m, now);
	if (m->conf.loading || hw_monitor_is_blind(m) || m->groups.n_order == 0)
		return false;
	while (*budget > 0 && m->outs_n == 0) { /* a group may have become deaf: this is reported first */
		*i = hw_expected_first(m->expected, &at_ms);
		if (*i == HW_NIL || at_ms > now.wall_ms)
			return false;
		spend(m, *i, budget);
		if (check(m, now, *i)) {
			wait_until(m->expected, *i, now.wall_ms + ANSWERED_MS);
			return true;
		}
	}
	return false;
}
