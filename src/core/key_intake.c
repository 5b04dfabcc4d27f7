/* SPDX-License-Identifier: MIT */
/*
 * Applies the results of key checks, and notifications of changed keys. The device is kept online, is judged, or gets a
 * later deadline. See monitor.h, and key.c for a key's deadline.
 */
#include "arm.h"
#include "door.h"
#include "heartwheel/topic.h"
#include "key.h"
#include "out.h"

/* Added to a key's time to live, so that the key has expired however the store rounds its clock. */
#define AFTER_MS 2
#define SLACK_NS HW_NS_PER_S /* two checks of an unchanged key find deadlines that differ by less than this */
#define LOST     (HW_KEY_REMOVED | HW_KEY_EXPIRED | HW_KEY_EVICTED)

/* --- present keys ------------------------------------------------------------ */

/* Sets the device's last_seen to this instant, because another program has renewed its key. Only the displayed value
 * changes: the deadline of the device's heartbeats stays. */
static void prove(struct hw_monitor *m, struct hw_now now, struct hw_device *d, struct hw_key *k, int64_t ttl_ms)
{
	k->proved_ns = hw_monitor_key_seen(m, now).ns;
	k->ttl_ms = ttl_ms < 0 ? hw_monitor_timeout_ms(m, d) : ttl_ms;
	hw_device_set_heard_ms(d, now.mono.ns / HW_NS_PER_MS);
}

static void note_present(struct hw_monitor *m, struct hw_now now, struct hw_device *d, struct hw_key *k, unsigned why,
                         int64_t ttl_ms)
{
	int64_t until = HW_KEY_FOREVER;
	if (ttl_ms >= 0)
		until = hw_monitor_key_seen(m, now).ns + (ttl_ms + AFTER_MS) * HW_NS_PER_MS;
	bool reported = why & (HW_KEY_WRITTEN | HW_KEY_TTL), fresh = k->until_ns == HW_KEY_NEVER;
	bool later = until > k->until_ns + SLACK_NS, sooner = until < k->until_ns - SLACK_NS;
	/* During a blindness the seeing clock stands still, but the key's time to live runs on. So the key may
	 * expire earlier on the seeing clock than expected, which is not counted as a missed notification. */
	if (!why && !fresh && (later || !k->present || (sooner && k->proved_ns >= m->key_blind.lossy_end.ns)))
		m->stats.keys_missed++;
	if (reported)
		k->excused_ns = HW_KEY_NEVER;
	if (reported || later)
		prove(m, now, d, k, ttl_ms);
	k->until_ns = until;
	k->present = true;
	k->checked = now.mono;
}

static void alive(struct hw_monitor *m, struct hw_now now, uint32_t i, unsigned why, int64_t ttl_ms)
{
	struct hw_device *d = hw_monitor_at(m, i);
	unsigned source = hw_device_source(d);
	enum hw_state state = hw_device_state(d);
	if (state == HW_STATE_ONLINE && !hw_device_key_is_foreign(d) && !(why & HW_KEY_WRITTEN))
		return; /* the key is the monitor's own */
	struct hw_key *k = hw_monitor_key_of(m, i);
	if (!k)
		return;
	if (state == HW_STATE_ONLINE && (source & HW_SOURCE_MQTT) && (why & LOST) && !(why & HW_KEY_WRITTEN)) {
		k->present = false; /* the lost key was another program's; the monitor has written its own in its
		                     * place */
		return;
	}
	note_present(m, now, d, k, why, ttl_ms);
	hw_device_set_source(d, source | HW_SOURCE_KEY);
	m->stats.keys_repaired += !why && (state == HW_STATE_OFFLINE || state == HW_STATE_FORGOTTEN);
	hw_monitor_rule(m, now, i,
	                &(struct hw_evidence){.event = HW_EVENT_LIFE, .by_key = true, .loading = m->conf.loading});
	if (state == HW_STATE_ONLINE)
		hw_monitor_key_arm_earlier(m, now, i);
	if (state == HW_STATE_ONLINE && !(source & HW_SOURCE_KEY))
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
}

static void appeared(struct hw_monitor *m, struct hw_now now, struct hw_id id, unsigned why, int64_t ttl_ms)
{
	int g = hw_groups_find(&m->groups, m->conf.key_group);
	uint32_t i;
	if (!hw_id_valid(id.text, id.len)) {
		m->stats.refused[HW_REFUSED_ID]++;
		return;
	}
	if (hw_monitor_add(m, g < 0 ? m->groups.order[0] : (uint16_t)g, id.text, id.len, &i))
		return;
	hw_device_set_source(hw_monitor_at(m, i), HW_SOURCE_KEY);
	hw_monitor_at(m, i)->flags |= HW_FLAG_ONCE;
	alive(m, now, i, why, ttl_ms);
}

/* --- missing keys ------------------------------------------------------------ */

/* Returns the evidence of a missing key. If a program has removed the key, the evidence counts at once. Otherwise it
 * counts unless the key is excused. `k` NULL: no key of the device is known. */
static struct hw_evidence key_gone(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d,
                                   const struct hw_key *k, unsigned why)
{
	int64_t seen = hw_monitor_key_seen(m, now).ns;
	return (struct hw_evidence){
		.event = HW_EVENT_KEY_GONE,
		.by_key = k != NULL,
		.beats = hw_device_source(d) & HW_SOURCE_MQTT,
		.overdue = hw_monitor_deadline(m, now, d).ns <= hw_monitor_seen(m, now).ns,
		.suspect = d->node.place > HW_PLACE_LEVEL3,
		.excused = k && !(why & HW_KEY_REMOVED) && seen < hw_monitor_key_excused_ns(m, k),
		.late_ns = k ? seen - hw_monitor_key_deadline_ns(m, k) : -1,
	};
}

/* Called when a device is about to become offline because its key is missing. Returns whether the notification that
 * the key expired or was removed did not arrive. */
static bool missed_notification(struct hw_monitor *m, struct hw_now now, struct hw_key *k, unsigned why,
                                int64_t late_ns)
{
	int64_t seen = hw_monitor_key_seen(m, now).ns;
	bool missed = !why && k->present && seen < k->until_ns;
	m->stats.keys_missed += missed;
	/* The verdict may have to wait. A later verdict needs the time since the deadline, but the deadline of a
	 * missing key cannot be calculated later. So excused_ns keeps the deadline. */
	k->excused_ns = late_ns > 0 ? seen - late_ns : seen;
	return missed;
}

static void evicted(struct hw_monitor *m, struct hw_now now, struct hw_key *k)
{
	int64_t until = hw_monitor_key_seen(m, now).ns + k->ttl_ms * HW_NS_PER_MS;
	k->excused_ns = until > k->excused_ns ? until : k->excused_ns;
}

static void gone_online(struct hw_monitor *m, struct hw_now now, uint32_t i, unsigned why)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	struct hw_key *k = hw_device_source(d) & HW_SOURCE_KEY ? hw_monitor_key_of(m, i) : NULL;
	if (k && why & HW_KEY_EVICTED)
		evicted(m, now, k);
	const struct hw_evidence e = key_gone(m, now, d, k, why);
	const struct hw_verdict v = hw_verdict(d, &e);
	bool missed = false;
	if (v.act == HW_ACT_OFFLINE || v.act == HW_ACT_SUSPECT)
		missed = missed_notification(m, now, k, why, e.late_ns);
	if (k) {
		k->checked = now.mono;
		k->present = false;
		if (v.act != HW_ACT_REFRESH)
			k->silent_ns = d->last_seen_ns;
	}
	if (hw_monitor_carry_out(m, now, i, &e, &v)) {
		int64_t seen = hw_monitor_key_seen(m, now).ns;
		m->stats.keys_repaired += missed;
		k->until_ns = k->until_ns < seen ? k->until_ns : seen;
	}
}

static void gone(struct hw_monitor *m, struct hw_now now, uint32_t i, unsigned why)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	struct hw_key *k = hw_device_key(d);
	if (hw_device_state(d) == HW_STATE_ONLINE) {
		gone_online(m, now, i, why);
		return;
	}
	if (k) {
		k->present = false;
		k->checked = now.mono;
	}
	/* The key was written and is missing now, and no program removed it: the monitor itself deleted it, when it
	 * wrote the device's offline state at the same time. */
	if ((why & HW_KEY_WRITTEN) && !(why & LOST) && (hw_device_source(d) & HW_SOURCE_MQTT)) {
		struct hw_id id = hw_device_id(d);
		hw_device_set_source(hw_monitor_at(m, i), HW_SOURCE_MQTT | HW_SOURCE_KEY);
		hw_monitor_key_back(m, now, id.text, id.len);
	}
}

/* --- inputs ------------------------------------------------------------------ */

/*
 * Whether the device's owner may have written a key that was found and caused no notification. The owner may write a
 * key before its transition reaches this node. If the device is known by a key already, another program has written it.
 */
static bool may_be_the_owners(const struct hw_monitor *m, uint32_t i, unsigned why, const char *id, size_t len)
{
	if (why || hw_gate_is_authoritative_for(m, id, len))
		return false;
	return i == HW_NIL || !(hw_device_source(hw_registry_at(m->registry, i)) & HW_SOURCE_KEY);
}

void hw_monitor_key(struct hw_monitor *m, struct hw_now now, unsigned why, const char *id, size_t len, int64_t ttl_ms)
{
	if (!m->conf.key_group)
		return;
	uint32_t i = hw_registry_find(m->registry, id, len);
	if (ttl_ms != HW_KEY_GONE && may_be_the_owners(m, i, why, id, len))
		return;
	if (ttl_ms > HW_TIMEOUT_MAX_MS)
		ttl_ms = HW_TIMEOUT_MAX_MS;
	if (ttl_ms == HW_KEY_GONE && i != HW_NIL)
		gone(m, now, i, why);
	else if (ttl_ms != HW_KEY_GONE && i != HW_NIL)
		alive(m, now, i, why, ttl_ms);
	else if (ttl_ms != HW_KEY_GONE)
		appeared(m, now, (struct hw_id){id, len}, why, ttl_ms);
}

void hw_monitor_key_back(struct hw_monitor *m, struct hw_now now, const char *id, size_t len)
{
	uint32_t i = hw_registry_find(m->registry, id, len);
	if (!m->conf.key_group || i == HW_NIL || hw_device_state(hw_monitor_at(m, i)) != HW_STATE_OFFLINE)
		return;
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_key *k = hw_device_source(d) & HW_SOURCE_KEY ? hw_monitor_key_of(m, i) : NULL;
	if (!k) {
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i); /* its device:disconnected key is missing */
		return;
	}
	prove(m, now, d, k, HW_KEY_NO_TTL);
	k->excused_ns = hw_monitor_key_seen(m, now).ns + hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS;
	k->until_ns = k->until_ns < k->proved_ns ? k->until_ns : k->proved_ns;
	k->present = false;
	hw_monitor_rule(m, now, i, &(struct hw_evidence){.event = HW_EVENT_LIFE, .by_key = true});
}

void hw_monitor_key_sight(struct hw_monitor *m, struct hw_now now, bool sees)
{
	if (sees)
		hw_blind_end(&m->key_blind, HW_CAUSE_LINK, now.mono);
	else
		hw_blind_begin(&m->key_blind, HW_CAUSE_LINK, now.mono, true);
}

void hw_monitor_key_loss(struct hw_monitor *m, struct hw_now now)
{
	hw_blind_begin(&m->key_blind, HW_CAUSE_LOSS, now.mono, true);
	hw_blind_end(&m->key_blind, HW_CAUSE_LOSS, now.mono);
}
