/* SPDX-License-Identifier: MIT */
/*
 * Applies the devices that are stored, also devices whose heartbeats arrived before the record was read. See monitor.h.
 *
 * Rule: until loading ends, no input makes a transition, because the stored state decides whether the input is one.
 * Loading never discards an input: a stored record only fills in fields that the provisional record lacks.
 */
#include <errno.h>
#include <string.h>

#include "arm.h"
#include "door.h"
#include "follow.h"
#include "form.h"
#include "heartwheel/bounds.h"
#include "learning.h"
#include "left_out.h"
#include "out.h"
#include "parent_intake.h"

static int64_t age_ms(int64_t wall_ms, int64_t then_ms)
{
	return wall_ms > then_ms ? wall_ms - then_ms : 0;
}

/*
 * Sets last_seen from the store. The silence so far is the age of last_seen by wall clock when this run began, less the
 * time without a monitor. From then on the seeing clock counts.
 *
 * The age may also contain a blindness of the previous run, or a change of the wall clock; neither is silence. The
 * stored last_seen may be older than the last heartbeat, because a refresh may be only a PEXPIRE. But an online device
 * can have been silent for at most one timeout, so the silence is limited to one timeout. A deadline is at most three
 * timeouts after last_seen (monitor.h). So at least two timeouts are left, in which a running device is heard.
 *
 * The store is also read after loading: by one of several nodes, and when there is room for devices that were left out.
 * Silence then counts from now, because the store may lack recent heartbeats.
 */
static void set_last_seen(struct hw_monitor *m, struct hw_now now, struct hw_device *d, const struct hw_stored *s)
{
	int64_t most_ms = hw_monitor_timeout_ms(m, d);
	int64_t run_ms = (now.mono.ns - m->started.ns) / HW_NS_PER_MS;
	int64_t silence_ms = age_ms(now.wall_ms - run_ms, s->last_seen_ms);
	silence_ms = silence_ms > s->down_ms ? silence_ms - s->down_ms : 0;
	if (silence_ms > most_ms)
		silence_ms = most_ms;
	/* The seeing clock began at `started`, so `started` is its value at that instant. That value cannot be
	 * calculated, because the clock forgets old blind periods. */
	d->last_seen_ns = m->started.ns - silence_ms * HW_NS_PER_MS;
	if (m->conf.several ? !m->conf.loading : m->left_out.reads)
		d->last_seen_ns = hw_monitor_group_seen(m, now, d->group).ns;
	int64_t heard_ms = s->last_seen_ms;
	if (s->state == HW_STATE_ONLINE)
		heard_ms += now.mono.ns / HW_NS_PER_MS - now.wall_ms;
	if (s->last_seen_ms <= 0 || heard_ms <= HW_NEVER_MS || heard_ms >= -HW_NEVER_MS)
		d->last_heard_ms = HW_NEVER_MS;
	else
		hw_device_set_heard_ms(d, heard_ms);
}

/* Takes the reported fields and the own timeout from the store, except those that the device has reported in this
 * run. */
static void fill_in_extra(struct hw_monitor *m, uint32_t i, struct hw_stored *s)
{
	if (!s->report.has && s->own_timeout_ms <= 0)
		return;
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_report heard = hw_device_report(d);
	hw_report_drop(&s->report, heard.has);
	if (hw_registry_report(m->registry, i, &s->report))
		return;
	struct hw_extra *x = hw_device_extra(d);
	if (x->own_timeout_ms == 0 && s->own_timeout_ms > 0)
		x->own_timeout_ms = s->own_timeout_ms;
}

static void set_once(struct hw_device *d, bool once)
{
	d->flags = once ? d->flags | HW_FLAG_ONCE : d->flags & (uint16_t)~HW_FLAG_ONCE;
}

/* Takes from the store the state, since and seq, and the fields that no later message has reported. */
static void fill_in(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_stored *s)
{
	struct hw_device *d = hw_monitor_at(m, i);
	d->seq = s->seq & HW_SEQ_MAX;
	d->since_ms = s->since_ms & HW_SINCE_MAX;
	set_once(d, s->once);
	fill_in_extra(m, i, s);
	hw_monitor_no_longer_provisional(d);
	hw_parent_load(m, i, s->parents);
	hw_captures_load(m, i, s->captures);
	if (s->gaps)
		hw_learning_load(m, now, i, s->gaps, strlen(s->gaps));
	hw_monitor_place(m, i, s->state, s->reason);
	if (s->state == HW_STATE_OFFLINE && s->reason == HW_REASON_WILL && !d->will_on)
		d->will_on = HW_WILL_ANYWHERE;
	if (s->source & (HW_SOURCE_MQTT | HW_SOURCE_KEY))
		hw_device_set_source(d, s->source);
}

/* The device may belong to another group, whose filters this monitor may not receive now. */
static void note_guess(struct hw_monitor *m, uint32_t i, const struct hw_stored *s)
{
	if (m->conf.adopt_by)
		hw_monitor_at(m, i)->form = s->guessed ? HW_FORM_OTHER : HW_FORM_UNKNOWN;
}

static int load_new(struct hw_monitor *m, struct hw_now now, struct hw_stored *s)
{
	struct hw_id id = {s->id, s->id_len};
	int g = s->group ? hw_form_group(m, id, s->group, strlen(s->group), s->form) : m->groups.order[0];
	uint32_t i;
	if (g == -EINVAL) { /* the stored group is not a valid name */
		g = hw_form_guess_group(&m->groups, id);
		m->stats.refused[HW_REFUSED_STORED]++;
	}
	int rc = g < 0 ? g : hw_monitor_add(m, (uint16_t)g, s->id, s->id_len, &i);
	if (rc) {
		hw_left_out_note(m, g, s->id, s->id_len, s->state);
		return rc;
	}
	hw_gate_found_in_store(m, i, s->seq);
	fill_in(m, now, i, s);
	set_last_seen(m, now, hw_monitor_at(m, i), s);
	hw_form_learn(m, i, s->form);
	note_guess(m, i, s);
	if (s->state == HW_STATE_OFFLINE)
		hw_monitor_arm_offline(m, now, i, s->gone_ms);
	else
		hw_monitor_arm(m, now, i);
	return 0;
}

/* Applies a stored record to a device that has sent a message before the record was read. A heartbeat makes the
 * device online, whatever is stored. A goodbye does not count, because the monitor is blind while it starts. */
static void load_provisional(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_stored *s)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool goodbye = d->flags & HW_FLAG_GOODBYE, was_heard = d->last_heard_ms != HW_NEVER_MS;
	int64_t heard_ms = hw_device_last_seen_ms(d, now);
	fill_in(m, now, i, s);
	/* The stored state is online, so it no longer matters that the device was heard while offline. */
	d->flags &= (uint16_t)~HW_FLAG_HEARD;
	if (was_heard)
		d->flags &= (uint16_t)~HW_FLAG_ONCE;
	else
		set_last_seen(m, now, d, s);
	if (!was_heard)
		hw_form_learn(m, i, s->form);
	if (goodbye)
		hw_monitor_void_goodbye(m, i);
	/* A restart resets the count of online_after: heartbeats that were read before this record do not count. */
	bool too_few = s->state == HW_STATE_OFFLINE && was_heard && hw_monitor_needs_several(m, d);
	if (too_few)
		hw_device_set_heard_ms(d, heard_ms);
	if (hw_monitor_rule(m, now, i,
	                    &(struct hw_evidence){.event = HW_EVENT_STORED, .heard = was_heard, .too_few = too_few}))
		return;
	if (s->state == HW_STATE_ONLINE)
		hw_monitor_arm(m, now, i);
	else
		hw_monitor_arm_offline(m, now, i, too_few ? 0 : s->gone_ms);
}

/* Sets a device's own timeout from the store. If the device has set two timeouts, the longer one is in force: their
 * order is unknown, and no device may go offline too early. */
static void fill_in_timeout(struct hw_monitor *m, uint32_t i, int64_t own_timeout_ms)
{
	struct hw_extra *x = hw_device_extra(hw_monitor_at(m, i));
	if (x && x->own_timeout_ms < own_timeout_ms)
		x->own_timeout_ms = own_timeout_ms;
}

/* Takes the device's source from the store. A stream entry does not contain the source, so the source was assumed to
 * be MQTT; the stored source replaces this assumption. If the device does send heartbeats, the next one adds MQTT
 * again. HW_SOURCE_KEY stays if a key was found since. */
static void fill_in_source(struct hw_device *d, const struct hw_stored *s)
{
	unsigned had = hw_device_source(d);
	if (had == HW_SOURCE_MQTT || s->known_by_stream)
		had &= HW_SOURCE_KEY;
	if (s->source & (HW_SOURCE_MQTT | HW_SOURCE_KEY))
		hw_device_set_source(d, had | s->source);
}

/* Arms an online device for its present deadline. The stored values may have made the deadline later, so a device
 * that had HW_FLAG_SILENT may not be silent any more. */
static void arm_again(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	if (hw_device_state(d) == HW_STATE_OFFLINE)
		return;
	if (d->flags & HW_FLAG_GOODBYE)
		return; /* the goodbye waits to be judged */
	else if (d->flags & HW_FLAG_SILENT)
		hw_monitor_arm(m, now, i);
	else
		hw_monitor_arm_earlier(m, now, i);
}

/*
 * Applies a stored record to a known device for which another node decides. If only the stream has reported the device,
 * the known record lacks most fields of the hash. So these fields are taken even if the hash is older than the last
 * stream entry. `first`: the last entry may have been written to another store, which may be lost. Then seq continues
 * from the value in this store.
 */
static void load_again(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_stored *s, bool first)
{
	struct hw_transition t = {.state = s->state,
	                          .reason = s->reason,
	                          .time_ms = s->since_ms,
	                          .last_seen_ms = s->last_seen_ms,
	                          .seq = s->seq};
	struct hw_device *d = hw_monitor_at(m, i);
	bool known = d->since_ms == (s->since_ms & HW_SINCE_MAX);
	int64_t gone_ms = known ? hw_monitor_gone_ms(m, now, d) : -1; /* as this node has seen */
	fill_in_extra(m, i, s);
	hw_parent_load(m, i, s->parents);
	hw_captures_load(m, i, s->captures);
	fill_in_timeout(m, i, s->own_timeout_ms);
	fill_in_source(d, s);
	if (s->gaps)
		hw_learning_load(m, now, i, s->gaps, strlen(s->gaps));
	if (hw_follow_stored(m, now, i, &t, first)) {
		set_once(d, s->once);
		if (s->state == HW_STATE_OFFLINE)
			hw_monitor_arm_offline(m, now, i, gone_ms > s->gone_ms ? gone_ms : s->gone_ms);
	}
	hw_form_learn(m, i, s->form);
	arm_again(m, now, i);
}

/* Applies a newer status of a device that is only known from an older one. Between the two, the device may have moved
 * to another group. The reported fields, the own timeout and last_seen of the newer status replace those of the older
 * one; but last_seen stays if a message of this run has set it. */
static void load_newer(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_stored *s)
{
	struct hw_device *d = hw_monitor_at(m, i);
	int g = hw_groups_find(&m->groups, s->group);
	if (g >= 0 && g != d->group) {
		hw_monitor_left_topic(m, i, d->group);
		hw_monitor_move(m, now, i, (uint16_t)g);
		hw_parent_relink(m, i);
	}
	if (s->report.has)
		(void)hw_registry_report(m->registry, i, &s->report);
	if (hw_device_extra(d))
		hw_device_extra(d)->own_timeout_ms = 0;
	if (d->last_seen_ns <= m->started.ns)
		set_last_seen(m, now, d, s);
	note_guess(m, i, s);
	load_again(m, now, i, s, false);
}

static void load_known(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_stored *s)
{
	bool first = hw_gate_is_missing_in_store(m, i);
	hw_gate_found_in_store(m, i, s->seq);
	if (hw_device_state(hw_monitor_at(m, i)) == HW_STATE_PROVISIONAL) {
		load_provisional(m, now, i, s);
		return;
	}
	if (!hw_gate_is_sole_writer(m, hw_device_partition(hw_monitor_at(m, i)))) {
		load_again(m, now, i, s, first);
		return;
	}
	bool is_heard = hw_monitor_at(m, i)->form != HW_FORM_UNKNOWN && hw_monitor_at(m, i)->form != HW_FORM_OTHER;
	if (m->conf.adopt_by && !is_heard && s->seq > hw_monitor_at(m, i)->seq) {
		load_newer(m, now, i, s); /* no heartbeat was read in this run */
		return;
	}
	/* This node receives the device's messages, so this node's state is newer than the stored state and must have a
	 * greater seq. The next refresh writes the differences. */
	if (s->known_by_stream)
		fill_in_source(hw_monitor_at(m, i), s);
	if (s->seq > hw_monitor_at(m, i)->seq)
		hw_follow_surpass(m, i, s->seq);
}

/* Corrects a record without a usable state: the device keeps its known state, or is online until it is judged. */
static void correct_state(const struct hw_monitor *m, uint32_t i, struct hw_stored *s)
{
	const struct hw_device *d = i == HW_NIL ? NULL : hw_registry_at(m->registry, i);
	bool offline = d && hw_device_state(d) == HW_STATE_OFFLINE;
	s->state = offline ? HW_STATE_OFFLINE : HW_STATE_ONLINE;
	s->reason = offline ? hw_device_reason(d) : HW_REASON_HEARTBEAT;
}

/* Corrects the stored time for which monitors have seen a device offline. The stored time cannot be longer than the
 * wall-clock time since the device became offline. A value that is much longer becomes 0. So a wrong value from another
 * program cannot make heartwheel forget a device too early, and a wrong wall clock can only make it forget later.
 * Returns whether the stored value was negative or much too large. */
static bool correct_gone(struct hw_stored *s, int64_t clock_ms)
{
	int64_t offline_ms = age_ms(clock_ms, s->since_ms);
	bool wrong = s->gone_ms < 0 || s->gone_ms - HW_BOUNDS_AHEAD_MS > offline_ms;
	if (wrong)
		s->gone_ms = 0;
	else if (s->gone_ms > offline_ms)
		s->gone_ms = offline_ms;
	return wrong;
}

/* Corrects values that are out of bounds (monitor.h). Returns whether there were any. */
static bool correct(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_stored *s)
{
	int64_t clock_ms = now.wall_ms + s->ahead_ms;
	unsigned wrong = 0;
	if (s->state != HW_STATE_ONLINE && s->state != HW_STATE_OFFLINE) {
		correct_state(m, i, s);
		wrong++;
	}
	if (!hw_bounds_time(s->since_ms, clock_ms)) {
		s->since_ms = clock_ms;
		wrong++;
	}
	if (!hw_bounds_time(s->last_seen_ms, clock_ms)) {
		s->last_seen_ms = clock_ms;
		wrong++;
	}
	if (!hw_bounds_seq(s->seq, clock_ms)) {
		s->seq = hw_follow_known_seq(m, now, i);
		wrong++;
	}
	wrong += correct_gone(s, clock_ms);
	if (s->own_timeout_ms != 0 &&
	    (s->own_timeout_ms < HW_TIMEOUT_MIN_MS || s->own_timeout_ms > HW_TIMEOUT_MAX_MS)) {
		s->own_timeout_ms = 0;
		wrong++;
	}
	m->stats.refused[HW_REFUSED_STORED] += wrong;
	return wrong > 0;
}

int hw_monitor_load(struct hw_monitor *m, struct hw_now now, struct hw_stored *s)
{
	if (!hw_id_valid(s->id, s->id_len))
		return -EINVAL;
	uint32_t i = hw_registry_find(m->registry, s->id, s->id_len);
	bool corrected = correct(m, now, i, s);
	if (i != HW_NIL)
		load_known(m, now, i, s);
	int rc = i == HW_NIL ? load_new(m, now, s) : 0;
	if (corrected && rc == 0)
		hw_monitor_emit_device(m, HW_OUT_REFRESH, hw_registry_find(m->registry, s->id, s->id_len));
	return rc;
}

int hw_monitor_load_forgotten(struct hw_monitor *m, const char *id, size_t len, struct hw_ref *device)
{
	uint32_t i;
	if (!hw_id_valid(id, len))
		return -EINVAL;
	if (hw_registry_find(m->registry, id, len) != HW_NIL)
		return -EEXIST;
	int rc = hw_monitor_add(m, hw_form_guess_group(&m->groups, (struct hw_id){id, len}), id, len, &i);
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
