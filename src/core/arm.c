/* SPDX-License-Identifier: MIT */
/*
 * Arming: when a device is checked next, in either wheel. See arm.h.
 *
 * Invariant: an entry never stands later than its device's deadline. A heartbeat leaves the entry in place (lazy
 * re-arm). Code that makes a deadline earlier calls one of the *_earlier() functions.
 *
 * Cost: constant, except for a share of the wheel's cascades.
 */
#include "arm.h"

#include "form.h"
#include "learning.h"
#include "probe_time.h"

int64_t hw_monitor_lossy_end_ns(const struct hw_monitor *m, uint16_t group)
{
	struct hw_seen end = m->sight.blind.lossy_end;
	if (!m->hearing.clocks_differ)
		return end.ns;
	int64_t own_ns = m->hearing.group[group].blind.lossy_end.ns;
	end = hw_hearing_seen(&m->hearing, group, end);
	return end.ns > own_ns ? end.ns : own_ns;
}

/* Ignores the end of the last lossy blindness. hw_monitor_deadline() takes the end into account. */
int64_t hw_monitor_silent_from(const struct hw_monitor *m, const struct hw_device *d)
{
	int64_t from = d->last_seen_ns;
	const struct hw_form *f = &m->form[d->group];
	if (from < f->silent_ns)
		from = f->silent_ns;
	if (from < f->heard_by_heirs_ns && (hw_form_may_have_heirs(m, d) || hw_form_is_guessed(m, d)))
		from = f->heard_by_heirs_ns;
	return from;
}

struct hw_seen hw_monitor_deadline(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	int64_t timeout_ns = hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS;
	int64_t from = hw_monitor_silent_from(m, d), lossy_end = hw_monitor_lossy_end_ns(m, d->group);
	/* Silence from before this run counts for at most one timeout (load.c). The timeout may be shorter since a
	 * reload, so the limit is applied again here. */
	if (from < m->started.ns - timeout_ns)
		from = m->started.ns - timeout_ns;
	int64_t from_loss = (lossy_end > from ? lossy_end : from) + timeout_ns;
	int64_t bound = from + 3 * timeout_ns;
	int64_t due = from_loss < bound ? from_loss : bound;
	if (m->hearing.clocks_differ)
		due += hw_monitor_seen(m, now).ns - hw_monitor_group_seen(m, now, d->group).ns;
	return (struct hw_seen){due};
}

/* --- the wheel of heartbeats -------------------------------------------------- */

void hw_monitor_unlink(struct hw_monitor *m, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	switch (d->node.place) {
	case HW_PLACE_NONE:
		break;
	case HW_PLACE_QUEUE:
		hw_queue_del(&m->wheel, &m->suspects, i);
		break;
	default:
		hw_wheel_del(d->flags & HW_FLAG_KEYED ? &m->key_wheel : &m->wheel, i);
	}
	d->flags &= (uint16_t) ~(HW_FLAG_KEYED | HW_FLAG_SILENT);
	d->skips_refresh = 0;
}

void hw_monitor_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at)
{
	hw_monitor_unlink(m, i);
	hw_wheel_add(&m->wheel, i, hw_tick_ceil(at));
}

void hw_monitor_suspect(struct hw_monitor *m, uint32_t i, struct hw_mono need)
{
	hw_monitor_unlink(m, i);
	hw_queue_push(&m->wheel, &m->suspects, i, hw_sight_tag(&m->sight));
	hw_hearing_ask(&m->hearing, hw_monitor_at(m, i)->group, need);
}

void hw_monitor_arm_deaf(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	int64_t wait_ns = hw_monitor_timeout_ms(m, hw_monitor_at(m, i)) * HW_NS_PER_MS;
	hw_monitor_arm_at(m, i,
	                  hw_seen_add(hw_monitor_seen(m, now), wait_ns < HW_ARM_MAX_NS ? wait_ns : HW_ARM_MAX_NS));
}

struct hw_seen hw_monitor_arm_point(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	struct hw_seen at = hw_monitor_deadline(m, now, d), seen = hw_monitor_seen(m, now);
	const struct hw_group *g = m->groups.all[d->group];
	if (g->probes)
		at = hw_probe_point(g, d, hw_monitor_timeout_ms(m, d), at, seen);
	int64_t latest = seen.ns + HW_ARM_MAX_NS;
	return (struct hw_seen){at.ns < latest ? at.ns : latest};
}

static int64_t forget_ms(const struct hw_monitor *m, const struct hw_device *d)
{
	return d->flags & HW_FLAG_ONCE ? m->conf.forget_once_after_ms : m->conf.forget_after_ms;
}

/* --- the wheel of keys --------------------------------------------------------- */

int64_t hw_monitor_key_excused_ns(const struct hw_monitor *m, const struct hw_key *k)
{
	int64_t lossy_end = m->key_blind.lossy_end.ns, ttl_ns = k->ttl_ms * HW_NS_PER_MS;
	if (k->proved_ns >= lossy_end)
		return k->excused_ns;
	int64_t more = lossy_end + ttl_ns, bound = k->until_ns + 2 * ttl_ns;
	if (k->until_ns > HW_KEY_NEVER && bound < more)
		more = bound;
	return more > k->excused_ns ? more : k->excused_ns;
}

int64_t hw_monitor_key_deadline_ns(const struct hw_monitor *m, const struct hw_key *k)
{
	int64_t excused = hw_monitor_key_excused_ns(m, k);
	return k->present && k->until_ns > excused ? k->until_ns : excused;
}

bool hw_monitor_key_was_last(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	const struct hw_key *k = hw_device_key(d);
	return k && k->silent_ns == d->last_seen_ns && hw_monitor_deadline(m, now, d).ns <= hw_monitor_seen(m, now).ns;
}

bool hw_monitor_beats(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	return (hw_device_source(d) & HW_SOURCE_MQTT) && !hw_monitor_key_was_last(m, now, d);
}

int64_t hw_monitor_key_left_ns(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	const struct hw_key *k = hw_device_key(d);
	return (k ? hw_monitor_key_deadline_ns(m, k) : 0) - hw_monitor_key_seen(m, now).ns;
}

void hw_monitor_key_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at)
{
	hw_monitor_unlink(m, i);
	hw_monitor_at(m, i)->flags |= HW_FLAG_KEYED;
	hw_wheel_add(&m->key_wheel, i, hw_tick_ceil(at));
}

void hw_monitor_arm_nearest(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t at_ns)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	int64_t wait_ns = at_ns - hw_monitor_key_seen(m, now).ns;
	if (hw_monitor_beats(m, now, d)) {
		struct hw_seen beat = hw_monitor_arm_point(m, now, d);
		const struct hw_key *k = hw_device_key(d);
		bool nothing = k && !k->present && wait_ns <= 0;
		if (nothing || beat.ns - hw_monitor_seen(m, now).ns <= wait_ns) {
			hw_monitor_arm_at(m, i, beat);
			return;
		}
	}
	hw_monitor_key_arm_at(m, i, (struct hw_seen){at_ns});
}

static void key_arm(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	const struct hw_key *k = hw_device_key(d);
	int64_t seen = hw_monitor_key_seen(m, now).ns, latest = seen + HW_ARM_MAX_NS;
	int64_t at = k ? hw_monitor_key_deadline_ns(m, k) : seen + hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS;
	hw_monitor_arm_nearest(m, now, i, at < latest ? at : latest);
}

void hw_monitor_key_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	if (d->node.place > HW_PLACE_LEVEL3)
		return;
	int64_t seen = (d->flags & HW_FLAG_KEYED ? hw_monitor_key_seen(m, now) : hw_monitor_seen(m, now)).ns;
	int64_t wait = hw_monitor_key_left_ns(m, now, d);
	if (wait < HW_ARM_MAX_NS && hw_tick_ceil((struct hw_seen){seen + wait}).n < d->node.due)
		hw_monitor_arm(m, now, i);
}

/* --- either wheel -------------------------------------------------------------- */

/* Called when an online device is armed. If the device has a timeout of its own, the interval of barriers takes it
 * into account (hw_monitor_note_own_timeout()). */
static void note_timeout(struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	struct hw_timeout t = {0};
	if (hw_device_extra(d))
		t = hw_monitor_timeout(m, d);
	hw_monitor_note_own_timeout(m, now, t.from == HW_TIMEOUT_GROUP ? 0 : t.ms);
}

void hw_monitor_arm(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	switch (hw_device_state(d)) {
	case HW_STATE_ONLINE:
		note_timeout(m, now, d);
		if (hw_monitor_has_key(m, d))
			key_arm(m, now, i);
		else
			hw_monitor_arm_at(m, i, hw_monitor_arm_point(m, now, d));
		break;
	case HW_STATE_OFFLINE:
		hw_monitor_arm_offline(m, now, i, 0);
		break;
	default:
		hw_monitor_unlink(m, i);
	}
}

void hw_monitor_arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if (hw_device_state(d) != HW_STATE_ONLINE || d->node.place > HW_PLACE_LEVEL3)
		return;
	if (d->flags & HW_FLAG_KEYED) {
		hw_monitor_arm(m, now, i);
		return;
	}
	struct hw_seen at = hw_monitor_arm_point(m, now, d);
	if (hw_tick_ceil(at).n < d->node.due)
		hw_monitor_arm_at(m, i, at);
}

void hw_monitor_arm_offline(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t gone_ms)
{
	int64_t forget = forget_ms(m, hw_monitor_at(m, i)), left = gone_ms < 0 ? forget : forget - gone_ms;
	hw_monitor_unlink(m, i);
	if (forget > 0)
		hw_monitor_arm_at(m, i, hw_seen_add(hw_monitor_seen(m, now), (left > 0 ? left : 0) * HW_NS_PER_MS));
}

/* Returns for how long monitors have seen an offline device offline. Returns -1 if the device is not offline, or is
 * never forgotten, or if a reload has changed forget_after and the device is not armed again yet. An offline device in
 * no wheel has used up its forget_after; it waits until its owner forgets it. */
int64_t hw_monitor_gone_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	int64_t forget = forget_ms(m, d);
	if (hw_device_state(d) != HW_STATE_OFFLINE || forget <= 0 || m->relink.active || hw_monitor_is_expected(m, d))
		return -1;
	int64_t gone = d->node.place > HW_PLACE_LEVEL3 ? forget : forget - hw_monitor_due_in_ms(m, now, d);
	return gone < 0 ? 0 : gone < forget ? gone : forget;
}

/* If a reload has changed forget_after, moves the time at which an offline device is forgotten by the difference of
 * the two values. */
static void relink_forgetting(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool once = d->flags & HW_FLAG_ONCE;
	int64_t was = once ? m->forget_once_was_ms : m->forget_was_ms;
	int64_t is = once ? m->conf.forget_once_after_ms : m->conf.forget_after_ms;
	if (was == is)
		return;
	if (was <= 0 || is <= 0 || d->node.place > HW_PLACE_LEVEL3) {
		hw_monitor_arm(m, now, i);
		return;
	}
	int64_t at = hw_tick_start((struct hw_tick){d->node.due}).ns + (is - was) * HW_NS_PER_MS;
	hw_monitor_arm_at(m, i, (struct hw_seen){at});
}

void hw_monitor_relink(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	if (m->learning.gaps)
		hw_learning_relink(m, now, i);
	if (hw_device_state(hw_monitor_at(m, i)) == HW_STATE_OFFLINE)
		relink_forgetting(m, now, i);
	else
		hw_monitor_arm_earlier(m, now, i);
}

int64_t hw_monitor_due_in_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	int64_t seen = hw_monitor_seen(m, now).ns;
	if (hw_device_state(d) == HW_STATE_ONLINE) {
		int64_t left = hw_monitor_is_keyed(m, d) ? INT64_MIN : hw_monitor_deadline(m, now, d).ns - seen;
		int64_t key = hw_monitor_has_key(m, d) ? hw_monitor_key_left_ns(m, now, d) : INT64_MIN;
		left = left > key ? left : key; /* a device known by both is offline when both are silent */
		return left > HW_KEY_FOREVER / 2 ? INT64_MAX : left / HW_NS_PER_MS;
	}
	if (d->node.place > HW_PLACE_LEVEL3 || hw_monitor_is_expected(m, d))
		return INT64_MAX;
	return (hw_tick_start((struct hw_tick){d->node.due}).ns - seen) / HW_NS_PER_MS;
}
