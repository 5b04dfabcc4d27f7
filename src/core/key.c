/* SPDX-License-Identifier: MIT */
/*
 * Devices that are known by a key of another program's. See monitor.h.
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
#include "heartwheel/topic.h"
#include "monitor_priv.h"

#define AFTER_MS   2           /* a time to live is over then, whatever the store's clock was rounded to */
#define SLACK_NS   HW_NS_PER_S /* two looks at a key that nobody touched agree within this */
#define LOST       (HW_KEY_REMOVED | HW_KEY_EXPIRED | HW_KEY_EVICTED)
#define RECHECK_NS (5 * HW_NS_PER_S) /* a look that was asked for and not answered is asked for again */

/* The key's data, made if need be; NULL without memory. */
static struct hw_key *key_of(struct hw_monitor *m, uint32_t i)
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

/* --- deadlines --------------------------------------------------------------- */

/* Until when a missing key is not held against its device. Blindness that recurs postpones by two further times to live
 * at most. */
static int64_t spared_ns(const struct hw_monitor *m, const struct hw_key *k)
{
	int64_t lossy_end = m->key_blind.lossy_end.ns, ttl_ns = k->ttl_ms * HW_NS_PER_MS;
	if (k->proved_ns >= lossy_end)
		return k->spare_ns;
	int64_t more = lossy_end + ttl_ns, bound = k->until_ns + 2 * ttl_ns;
	if (k->until_ns > HW_KEY_NEVER && bound < more)
		more = bound;
	return more > k->spare_ns ? more : k->spare_ns;
}

static int64_t due_ns(const struct hw_monitor *m, const struct hw_key *k)
{
	int64_t spared = spared_ns(m, k);
	return k->present && k->until_ns > spared ? k->until_ns : spared;
}

bool hw_monitor_key_was_last(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	const struct hw_key *k = hw_device_key(d);
	return k && k->silent_ns == d->last_seen_ns && hw_monitor_deadline(m, d).ns <= hw_monitor_seen(m, now).ns;
}

/* Whether heartbeats keep it online, as far as was judged. */
static bool beats(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	return (hw_device_source(d) & HW_SOURCE_MQTT) && !hw_monitor_key_was_last(m, now, d);
}

int64_t hw_monitor_key_left_ns(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	const struct hw_key *k = hw_device_key(d);
	return (k ? due_ns(m, k) : 0) - hw_monitor_key_seen(m, now).ns;
}

bool hw_device_key_is_foreign(const struct hw_device *d)
{
	const struct hw_key *k = hw_device_key(d);
	return hw_device_source(d) == HW_SOURCE_KEY || ((hw_device_source(d) & HW_SOURCE_KEY) && (!k || k->present));
}

/* --- arming ------------------------------------------------------------------ */

void hw_monitor_key_arm_at(struct hw_monitor *m, uint32_t i, struct hw_seen at)
{
	hw_monitor_unlink(m, i);
	hw_monitor_at(m, i)->flags |= HW_FLAG_KEYED;
	hw_wheel_add(&m->key_wheel, i, hw_tick_ceil(at));
}

/* For `at_ns` on the keys' clock, or for its heartbeats' deadline if that is nearer. */
static void arm_nearest(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t at_ns)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	int64_t wait_ns = at_ns - hw_monitor_key_seen(m, now).ns;
	if (beats(m, now, d)) {
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

void hw_monitor_key_arm(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	const struct hw_key *k = hw_device_key(d);
	int64_t seen = hw_monitor_key_seen(m, now).ns, latest = seen + HW_ARM_MAX_NS;
	int64_t at = k ? due_ns(m, k) : seen + hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS;
	arm_nearest(m, now, i, at < latest ? at : latest);
}

/* Re-links only if the key's deadline is now before what it is armed for. */
static void arm_earlier(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	if (d->node.place > HW_PLACE_LEVEL3)
		return;
	int64_t seen = (d->flags & HW_FLAG_KEYED ? hw_monitor_key_seen(m, now) : hw_monitor_seen(m, now)).ns;
	int64_t wait = hw_monitor_key_left_ns(m, now, d);
	if (wait < HW_ARM_MAX_NS && hw_tick_ceil((struct hw_seen){seen + wait}).n < d->node.due)
		hw_monitor_arm(m, now, i);
}

void hw_monitor_key_due(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	const struct hw_key *k = hw_device_key(d);
	int64_t seen = hw_monitor_key_seen(m, now).ns;
	if (k && (seen < due_ns(m, k) || (!k->present && beats(m, now, d)))) {
		m->stats.relinks++;
		hw_monitor_arm(m, now, i);
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
		return;
	}
	hw_monitor_emit_device(m, HW_OUT_KEY_CHECK, i);
	arm_nearest(m, now, i, seen + RECHECK_NS);
}

bool hw_monitor_key_keeps(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_key *k = hw_monitor_has_key(m, d) ? key_of(m, i) : NULL;
	if (!k || (!k->present && hw_monitor_key_seen(m, now).ns >= due_ns(m, k)))
		return false;
	k->silent_ns = d->last_seen_ns;
	hw_monitor_arm(m, now, i);
	return true;
}

/* --- the key is there -------------------------------------------------------- */

static void set_source(struct hw_device *d, unsigned source)
{
	d->node.user = (uint8_t)((d->node.user & 0x1f) | source << 5);
}

/* Its writer was there: what it shows as last seen, never what a heartbeat's deadline is reckoned from. */
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
	bool told = why & (HW_KEY_WRITTEN | HW_KEY_TTL), fresh = k->until_ns == HW_KEY_NEVER;
	bool later = until > k->until_ns + SLACK_NS, sooner = until < k->until_ns - SLACK_NS;
	/* While blind, a time to live ran on and the clock stood still. */
	if (!why && !fresh && (later || !k->present || (sooner && k->proved_ns >= m->key_blind.lossy_end.ns)))
		m->stats.keys_missed++;
	if (told)
		k->spare_ns = HW_KEY_NEVER;
	if (told || later)
		prove(m, now, d, k, ttl_ms);
	k->until_ns = until;
	k->present = true;
	k->looked = now.mono;
}

static void alive(struct hw_monitor *m, struct hw_now now, uint32_t i, unsigned why, int64_t ttl_ms)
{
	struct hw_device *d = hw_monitor_at(m, i);
	unsigned source = hw_device_source(d);
	enum hw_state state = hw_device_state(d);
	if (state == HW_STATE_ONLINE && !hw_device_key_is_foreign(d) && !(why & HW_KEY_WRITTEN))
		return; /* the key is the monitor's own */
	struct hw_key *k = key_of(m, i);
	if (!k)
		return;
	if (state == HW_STATE_ONLINE && (source & HW_SOURCE_MQTT) && (why & LOST) && !(why & HW_KEY_WRITTEN)) {
		k->present = false; /* the monitor has put its own in the place of the one that went */
		return;
	}
	note_present(m, now, d, k, why, ttl_ms);
	set_source(d, source | HW_SOURCE_KEY);
	if (state == HW_STATE_ONLINE) {
		d->flags &= (uint16_t) ~(HW_FLAG_ONCE | HW_FLAG_PACED);
		arm_earlier(m, now, i);
		if (!(source & HW_SOURCE_KEY))
			hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
		return;
	}
	if (state == HW_STATE_PROVISIONAL) {
		d->flags &= (uint16_t)~HW_FLAG_GOODBYE;
		if (!m->conf.loading)
			hw_monitor_settle(m, now, i);
		return;
	}
	if (state == HW_STATE_FORGOTTEN)
		d->flags |= HW_FLAG_ONCE;
	else
		d->flags &= (uint16_t)~HW_FLAG_ONCE;
	m->stats.keys_repaired += !why;
	hw_monitor_transition(m, now, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT, -1);
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
	set_source(hw_monitor_at(m, i), HW_SOURCE_KEY);
	hw_monitor_at(m, i)->flags |= HW_FLAG_ONCE;
	alive(m, now, i, why, ttl_ms);
}

/* --- the key is not there ---------------------------------------------------- */

/* Somebody's removing a key is evidence at once; that it is missing is, unless the device is spared. */
static bool convicts(const struct hw_monitor *m, struct hw_now now, const struct hw_key *k, unsigned why)
{
	return (why & HW_KEY_REMOVED) || hw_monitor_key_seen(m, now).ns >= spared_ns(m, k);
}

static void silent(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_key *k, unsigned why)
{
	struct hw_device *d = hw_monitor_at(m, i);
	int64_t seen = hw_monitor_key_seen(m, now).ns, due = due_ns(m, k), late_ns = seen - due;
	bool missed = !why && k->present && seen < k->until_ns;
	m->stats.keys_missed += missed;
	/* The key that showed its deadline is gone; it may have to wait for its turn, and be asked for its delay. */
	k->spare_ns = due < seen ? due : seen;
	if (hw_device_source(d) & HW_SOURCE_MQTT) {
		hw_monitor_candidate(m, i); /* and its heartbeats are judged by their own rule */
		return;
	}
	if (hw_monitor_paced(m, now, i))
		return;
	m->stats.keys_repaired += missed;
	k->until_ns = k->until_ns < seen ? k->until_ns : seen;
	hw_monitor_transition(m, now, i, HW_STATE_OFFLINE, HW_REASON_KEYSPACE, late_ns >= 0 ? late_ns : -1);
}

static void gone_online(struct hw_monitor *m, struct hw_now now, uint32_t i, unsigned why)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	struct hw_key *k = hw_device_source(d) & HW_SOURCE_KEY ? key_of(m, i) : NULL;
	if (k) {
		int64_t evicted = hw_monitor_key_seen(m, now).ns + k->ttl_ms * HW_NS_PER_MS;
		k->looked = now.mono;
		if (why & HW_KEY_EVICTED && evicted > k->spare_ns)
			k->spare_ns = evicted;
	}
	bool overdue = hw_monitor_deadline(m, d).ns <= hw_monitor_seen(m, now).ns;
	if (!k || (!overdue && (hw_device_source(d) & HW_SOURCE_MQTT))) {
		/* It beats, and its key is to say so. */
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
		if (k)
			k->present = false;
		if (k && d->node.place <= HW_PLACE_LEVEL3)
			hw_monitor_arm(m, now, i);
		return;
	}
	k->silent_ns = d->last_seen_ns;
	bool convicted = convicts(m, now, k, why);
	if (d->node.place > HW_PLACE_LEVEL3) {
		k->present = false; /* a candidate: it is judged anyway */
	} else if (convicted) {
		silent(m, now, i, k, why);
		k->present = false;
	} else {
		k->present = false;
		hw_monitor_arm(m, now, i);
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
		k->looked = now.mono;
	}
	/* Written, and gone although nobody took it: it was the monitor, which wrote at the same time that its device
	 * is offline. */
	if ((why & HW_KEY_WRITTEN) && !(why & LOST) && (hw_device_source(d) & HW_SOURCE_MQTT)) {
		struct hw_id id = hw_device_id(d);
		set_source(hw_monitor_at(m, i), HW_SOURCE_MQTT | HW_SOURCE_KEY);
		hw_monitor_key_back(m, now, id.text, id.len);
	}
}

/* --- inputs ------------------------------------------------------------------ */

void hw_monitor_key(struct hw_monitor *m, struct hw_now now, unsigned why, const char *id, size_t len, int64_t ttl_ms)
{
	if (!m->conf.key_group)
		return;
	uint32_t i = hw_registry_find(m->registry, id, len);
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
	struct hw_key *k = hw_device_source(d) & HW_SOURCE_KEY ? key_of(m, i) : NULL;
	if (!k) {
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i); /* it is offline, and that key is to say so */
		return;
	}
	prove(m, now, d, k, HW_KEY_NO_TTL);
	k->spare_ns = hw_monitor_key_seen(m, now).ns + hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS;
	k->until_ns = k->until_ns < k->proved_ns ? k->until_ns : k->proved_ns;
	k->present = false;
	d->flags &= (uint16_t)~HW_FLAG_ONCE;
	hw_monitor_transition(m, now, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT, -1);
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
