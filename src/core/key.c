/* SPDX-License-Identifier: MIT */
/*
 * Devices that are known by a key of another program's. See key.h, and monitor.h for the rule.
 *
 * A key's deadline is the end of its time to live, or that of what it is spared: after blindness, an eviction, or a
 * hand that says it is back, one more time to live. The keys' wheel asks for a look when it has passed; a look that
 * finds the key is a new deadline, one that does not is the evidence. Like heartbeats, a renewed key leaves its entry
 * where it is (lazy re-arm).
 *
 * A device that also beats over MQTT is armed in whichever wheel comes first. When it is found silent over MQTT it
 * lives by its key alone (struct hw_key.silent_ns); when its key goes then, it is judged as any silent device is.
 *
 * Invariant: an online device with HW_SOURCE_KEY is in one of the wheels or among the candidates; so it is looked at
 * again even if an answer never comes.
 */
#include "key.h"

#include "arm.h"
#include "out.h"

#define RECHECK_NS (5 * HW_NS_PER_S) /* a look that was asked for and not answered is asked for again */

struct hw_key *hw_monitor_key_of(struct hw_monitor *m, uint32_t i)
{
	bool made;
	struct hw_key *k = hw_registry_key(m->registry, i, &made);
	if (made) {
		k->until_ns = k->proved_ns = k->spare_ns = HW_KEY_NEVER;
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
