/* SPDX-License-Identifier: MIT */
/*
 * Devices from the store, and those that were heard before theirs was read. See monitor.h.
 *
 * Rule: until loading ends nothing that was heard makes a transition, because what the store holds decides whether it
 * is one. What was heard is never forgotten by it: a stored record fills in what the provisional one lacks.
 */
#include <errno.h>
#include <string.h>

#include "monitor_priv.h"

static int64_t age_ms(int64_t wall_ms, int64_t then_ms)
{
	return wall_ms > then_ms ? wall_ms - then_ms : 0;
}

/*
 * Sets last seen from the store: silence so far is the age by the wall clock when this run began, less the time in
 * which nobody listened. What passed since the run began is left to the seeing clock.
 *
 * The age also holds what the run before was blind, as far as it saw again before it ended, and every step of the wall
 * clock; neither is silence. So at most two timeouts count: of the three that bound a death (monitor.h) one is left to
 * be seen, and a device that beats is heard in it.
 */
static void set_last_seen(struct hw_monitor *m, struct hw_now now, struct hw_device *d, const struct hw_stored *s)
{
	int64_t most_ms = 2 * hw_monitor_timeout_ms(m, d);
	int64_t run_ms = (now.mono.ns - m->started.ns) / HW_NS_PER_MS;
	int64_t silence_ms = age_ms(now.wall_ms - run_ms, s->last_seen_ms);
	silence_ms = silence_ms > s->down_ms ? silence_ms - s->down_ms : 0;
	if (silence_ms > most_ms)
		silence_ms = most_ms;
	/* The seeing clock began at `started`; what it showed then is not asked of it, for it forgets old periods. */
	d->last_seen_ns = m->started.ns - silence_ms * HW_NS_PER_MS;
	int64_t heard_ms = s->last_seen_ms;
	if (s->state == HW_STATE_ONLINE)
		heard_ms += now.mono.ns / HW_NS_PER_MS - now.wall_ms;
	if (s->last_seen_ms <= 0 || heard_ms <= HW_NEVER_MS || heard_ms >= -HW_NEVER_MS)
		d->last_heard_ms = HW_NEVER_MS;
	else
		hw_device_set_heard_ms(d, heard_ms);
}

/* From now on it is what its record says, whatever was to be remembered until the load. */
static void no_longer_provisional(struct hw_device *d)
{
	if (d->extra && d->extra->own_timeout_ms == HW_OWN_TIMEOUT_OVER)
		d->extra->own_timeout_ms = 0;
}

/* What is the store's alone to say: state, since, seq, and the fields that nothing newer was heard of. */
static void fill_in(struct hw_monitor *m, uint32_t i, struct hw_stored *s)
{
	struct hw_device *d = hw_monitor_at(m, i);
	d->seq = s->seq & HW_SEQ_MAX;
	d->since_ms = s->since_ms & (int64_t)(HW_SEQ_MAX >> 1);
	d->flags = s->once ? d->flags | HW_FLAG_ONCE : d->flags & (uint16_t)~HW_FLAG_ONCE;
	if (s->report.has || s->own_timeout_ms > 0) {
		struct hw_extra *x = hw_registry_extra(m->registry, i);
		if (x) {
			/* What was heard since goes over what was stored. */
			hw_report_merge(&s->report, &x->report);
			hw_report_merge(&x->report, &s->report);
			if (x->own_timeout_ms == 0 && s->own_timeout_ms > 0)
				x->own_timeout_ms =
					s->own_timeout_ms < HW_TIMEOUT_MAX_MS ? s->own_timeout_ms : HW_TIMEOUT_MAX_MS;
		}
	}
	no_longer_provisional(d);
	hw_monitor_place(m, i, s->state, s->reason);
	if (s->source & (HW_SOURCE_MQTT | HW_SOURCE_KEY))
		d->node.user = (uint8_t)((d->node.user & 0x1f) | (s->source & 3) << 5);
}

/* An offline device is forgotten so long after it went, also across restarts. */
static void arm_offline(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	int64_t forget = d->flags & HW_FLAG_ONCE ? m->conf.forget_once_after_ms : m->conf.forget_after_ms;
	hw_monitor_unlink(m, i);
	if (forget <= 0)
		return;
	int64_t left = forget - age_ms(now.wall_ms, d->since_ms);
	hw_monitor_arm_at(m, i, hw_seen_add(hw_monitor_seen(m, now), (left > 0 ? left : 0) * HW_NS_PER_MS));
}

static int load_new(struct hw_monitor *m, struct hw_now now, struct hw_stored *s)
{
	int g = s->group ? hw_groups_find(&m->groups, s->group) : -1;
	uint32_t i;
	int rc = hw_monitor_add(m, g < 0 ? m->groups.order[0] : (uint16_t)g, s->id, s->id_len, &i);
	if (rc)
		return rc;
	fill_in(m, i, s);
	set_last_seen(m, now, hw_monitor_at(m, i), s);
	if (s->state == HW_STATE_OFFLINE)
		arm_offline(m, now, i);
	else
		hw_monitor_arm(m, now, i);
	return 0;
}

/* Heard before it was read: a heartbeat makes it online whatever is stored; a goodbye fell into the start's blindness
 * and is void. */
static void load_provisional(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_stored *s)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool goodbye = d->flags & HW_FLAG_GOODBYE, was_heard = d->last_heard_ms != HW_NEVER_MS;
	d->flags &= (uint16_t)~HW_FLAG_GOODBYE;
	fill_in(m, i, s);
	if (was_heard)
		d->flags &= (uint16_t)~HW_FLAG_ONCE;
	else
		set_last_seen(m, now, d, s);
	if (goodbye) {
		m->stats.goodbyes_void++;
		hw_monitor_emit_device(m, HW_OUT_STATUS, i);
	}
	if (s->state == HW_STATE_ONLINE)
		hw_monitor_arm(m, now, i);
	else if (was_heard)
		hw_monitor_transition(m, now, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT, -1);
	else
		arm_offline(m, now, i);
}

int hw_monitor_load(struct hw_monitor *m, struct hw_now now, struct hw_stored *s)
{
	bool state_ok = s->state == HW_STATE_ONLINE || s->state == HW_STATE_OFFLINE;
	if (!state_ok || !hw_id_valid(s->id, s->id_len) || s->seq == 0 || s->seq >= HW_SEQ_MAX)
		return -EINVAL;
	uint32_t i = hw_registry_find(m->registry, s->id, s->id_len);
	if (i == HW_NIL)
		return load_new(m, now, s);
	if (hw_device_state(hw_monitor_at(m, i)) == HW_STATE_PROVISIONAL) {
		load_provisional(m, now, i, s);
		return 0;
	}
	/* Known already: ours is newer by what was heard, so it must also be newer by seq. A refresh finds the
	 * difference. */
	if (s->seq > hw_monitor_at(m, i)->seq) {
		hw_monitor_adopt_seq(m, hw_registry_ref(m->registry, i), s->seq);
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
		hw_monitor_emit_device(m, HW_OUT_STATUS, i);
	}
	return 0;
}

static uint16_t guess_group(const struct hw_groups *g, const char *id, size_t len)
{
	uint16_t best = g->order[0];
	size_t best_len = 0;
	for (size_t k = 0; k < g->n_order; k++) {
		const struct hw_group *one = g->all[g->order[k]];
		size_t n = one->id_prefix_len;
		if (n > best_len && n < len && memcmp(one->id_prefix, id, n) == 0) {
			best = g->order[k];
			best_len = n;
		}
	}
	return best;
}

int hw_monitor_load_forgotten(struct hw_monitor *m, const char *id, size_t len, struct hw_ref *device)
{
	uint32_t i;
	if (!hw_id_valid(id, len))
		return -EINVAL;
	if (hw_registry_find(m->registry, id, len) != HW_NIL)
		return -EEXIST;
	int rc = hw_monitor_add(m, guess_group(&m->groups, id, len), id, len, &i);
	if (rc)
		return rc;
	hw_monitor_place(m, i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	*device = hw_registry_ref(m->registry, i);
	return 0;
}

void hw_monitor_loaded(struct hw_monitor *m)
{
	m->conf.loading = false;
	m->settle = (struct hw_sweep){.active = true};
}

bool hw_monitor_loading(const struct hw_monitor *m)
{
	return m->conf.loading;
}

void hw_monitor_settle(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if (hw_device_state(d) != HW_STATE_PROVISIONAL)
		return;
	no_longer_provisional(d);
	bool goodbye = d->flags & HW_FLAG_GOODBYE;
	if (goodbye && d->last_heard_ms == HW_NEVER_MS) { /* it is all that is known */
		hw_monitor_transition(m, now, i, HW_STATE_OFFLINE, HW_REASON_WILL, -1);
		return;
	}
	/* After a heartbeat it is void, as that of a stored device is: no barrier has proven it, and at the start every
	 * will may be the broker's. */
	m->stats.goodbyes_void += goodbye;
	hw_monitor_transition(m, now, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT, -1);
}
