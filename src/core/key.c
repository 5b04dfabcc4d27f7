/* SPDX-License-Identifier: MIT */
/*
 * Devices that are known by a key that another program writes. See key.h, and monitor.h for the rule.
 *
 * A key's deadline is the end of its time to live, or the end of its excuse if that is later. A missing key is excused
 * for one more time to live after a blindness or an eviction, and for one timeout after a removal of the key
 * device:disconnected.
 *
 * When the deadline has passed, the keys' wheel causes a check. If the check finds the key, the key gets a later
 * deadline. If the key is missing, this is the evidence against the device. As with heartbeats, renewing a key leaves
 * the entry in the wheel (lazy re-arm).
 *
 * A device that also sends heartbeats is in the wheel with the nearer deadline. If its heartbeats stop, only the key
 * keeps it online (struct hw_key.silent_ns). If the key then expires, the device is judged like any silent device.
 *
 * Invariant: an online device with HW_SOURCE_KEY is in one of the wheels or is a suspect. So it is checked again even
 * if the store never answers.
 */
#include "key.h"

#include "arm.h"
#include "out.h"

#define RECHECK_NS (5 * HW_NS_PER_S) /* an unanswered check is repeated after this */

struct hw_key *hw_monitor_key_of(struct hw_monitor *m, uint32_t i)
{
	bool made;
	struct hw_key *k = hw_registry_key(m->registry, i, &made);
	if (made) {
		k->until_ns = k->proved_ns = k->excused_ns = HW_KEY_NEVER;
		k->silent_ns = INT64_MIN;
		k->ttl_ms = hw_monitor_timeout_ms(m, hw_monitor_at(m, i));
	}
	if (!k)
		m->stats.refused[HW_REFUSED_MEMORY]++;
	return k;
}

void hw_monitor_key_due(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	const struct hw_key *k = hw_device_key(d);
	int64_t seen = hw_monitor_key_seen(m, now).ns;
	if (k && (seen < hw_monitor_key_deadline_ns(m, k) || (!k->present && hw_monitor_beats(m, now, d)))) {
		m->stats.relinks++;
		hw_monitor_arm(m, now, i);
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
		return;
	}
	hw_monitor_emit_device(m, HW_OUT_KEY_CHECK, i);
	hw_monitor_arm_nearest(m, now, i, seen + RECHECK_NS);
}

bool hw_monitor_key_lives(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_key *k = hw_monitor_key_of(m, i);
	return k && (k->present || hw_monitor_key_seen(m, now).ns < hw_monitor_key_deadline_ns(m, k));
}

void hw_monitor_key_silent(struct hw_monitor *m, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	hw_device_key(d)->silent_ns = d->last_seen_ns;
}

bool hw_device_key_is_foreign(const struct hw_device *d)
{
	const struct hw_key *k = hw_device_key(d);
	return hw_device_source(d) == HW_SOURCE_KEY || ((hw_device_source(d) & HW_SOURCE_KEY) && (!k || k->present));
}
