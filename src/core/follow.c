/* SPDX-License-Identifier: MIT */
/*
 * The decisions of other nodes, as read from the event stream, and the take-over of their devices. See monitor.h and
 * gate.h.
 *
 * Rule: this node accepts a state from the stream, but does not use it as evidence, because the clocks of two machines
 * are not compared. A device that becomes online gets a full timeout from the moment of reading, unless this node has
 * heard it itself. If a device becomes offline, only a message that is read afterwards sets HW_FLAG_HEARD; if the
 * device still sends, such a message follows soon. The time until an offline device is forgotten also begins with the
 * reading.
 *
 * At a take-over, this node makes a transition only if its own verdict on a device differs from the state in the
 * stream. A device with HW_FLAG_SILENT is judged again, by barriers that are sent from now on.
 */
#include "follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arm.h"
#include "door.h"
#include "form.h"
#include "gate.h"
#include "heartwheel/bounds.h"
#include "key.h"
#include "left_out.h"
#include "out.h"
#include "parent_death.h"
#include "probe.h"

#define EVIDENCE_FLAGS                                                                                                 \
	(HW_FLAG_GOODBYE | HW_FLAG_HELD | HW_FLAG_PACED | HW_FLAG_HEARD | HW_FLAG_TOUCHED) /* cleared by new state */

/* --- following ----------------------------------------------------------------- */

/* Stores last_seen_ms, which is the wall clock of another machine: as monotonic time for an online device, as wall
 * time for others. The value is only displayed. */
static void set_heard(struct hw_device *d, struct hw_now now, enum hw_state state, int64_t last_seen_ms)
{
	int64_t ms = last_seen_ms;
	if (!hw_state_is_gone(state))
		ms += now.mono.ns / HW_NS_PER_MS - now.wall_ms;
	if (last_seen_ms <= 0 || ms <= HW_NEVER_MS || ms >= -HW_NEVER_MS)
		d->last_heard_ms = HW_NEVER_MS;
	else
		hw_device_set_heard_ms(d, ms);
}

/* Whether the store should have the device. The store has no provisional and no forgotten devices. */
static bool is_in_store(const struct hw_device *d)
{
	enum hw_state state = hw_device_state(d);
	return state == HW_STATE_ONLINE || state == HW_STATE_OFFLINE;
}

static bool is_heard(const struct hw_device *d)
{
	bool provisional = hw_device_state(d) == HW_STATE_PROVISIONAL;
	return d->flags & HW_FLAG_HEARD || (provisional && d->last_heard_ms != HW_NEVER_MS);
}

void hw_follow(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_transition *t)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool same = hw_device_state(d) == t->state, heard = is_heard(d);
	bool changed = d->since_ms != (t->time_ms & HW_SINCE_MAX);
	d->seq = t->seq & HW_SEQ_MAX;
	d->since_ms = t->time_ms & HW_SINCE_MAX;
	hw_monitor_no_longer_provisional(d);
	hw_monitor_place(m, i, t->state, t->reason);
	if (same && changed && t->state == HW_STATE_OFFLINE)
		hw_monitor_arm(m, now, i);
	if (same)
		return;
	d->flags &= (uint16_t)~EVIDENCE_FLAGS;
	if (t->state != HW_STATE_ONLINE || !heard)
		set_heard(d, now, t->state, t->last_seen_ms);
	if (t->state == HW_STATE_ONLINE && !heard) {
		d->flags &= (uint16_t)~HW_FLAG_TIMED;
		if (d->form != HW_FORM_UNKNOWN && !hw_form_is_ours(m, d))
			d->form = HW_FORM_OTHER;
		d->last_seen_ns = hw_monitor_group_seen(m, now, d->group).ns;
	}
	hw_monitor_arm(m, now, i);
}

bool hw_follow_stored(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_transition *t, bool first)
{
	struct hw_device *d = hw_monitor_at(m, i);
	bool older = t->seq < d->seq, lost = older && is_in_store(d) && hw_device_state(d) != t->state;
	if (older && !first)
		return false;
	hw_follow(m, now, i, t);
	if (lost)
		d->flags |= HW_FLAG_TOUCHED;
	return true;
}

/* Raises the seq of this node's state above the stored one. With several nodes, another node may take the device over
 * before this node has written the raised seq, and then the store would never have the raised seq. So the state is
 * pending like a transition, until the store has confirmed it. */
void hw_follow_surpass(struct hw_monitor *m, uint32_t i, uint64_t stored_seq)
{
	if (m->conf.several) {
		hw_monitor_at(m, i)->seq = stored_seq & HW_SEQ_MAX;
		hw_monitor_emit_device(m, HW_OUT_UNWRITTEN, i);
		return;
	}
	hw_monitor_adopt_seq(m, hw_registry_ref(m->registry, i), stored_seq);
	hw_monitor_emit_device(m, HW_OUT_REFRESH, i);
	hw_monitor_emit_device(m, HW_OUT_STATUS, i);
}

/* Whether the entry was written by a newer owner of a partition for which this node is still the owner. */
static bool is_lost(const struct hw_monitor *m, const struct hw_event *e)
{
	unsigned p = hw_partition_of(e->id, e->id_len);
	return m->conf.several && hw_partitions_has(&m->gate.owned, p) && e->epoch > m->gate.epoch[p];
}

bool hw_monitor_is_known_by_stream(const struct hw_monitor *m, const struct hw_event *e)
{
	if (e->state != HW_STATE_ONLINE || hw_gate_is_sole_writer(m, hw_partition_of(e->id, e->id_len)))
		return false;
	uint32_t i = hw_registry_find(m->registry, e->id, e->id_len);
	const struct hw_device *d = i == HW_NIL ? NULL : hw_registry_at(m->registry, i);
	return !d || (hw_device_state(d) != HW_STATE_ONLINE && !is_heard(d));
}

uint64_t hw_follow_known_seq(const struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = i == HW_NIL ? NULL : hw_registry_at(m->registry, i);
	return d && d->seq ? d->seq : now.wall_ms > 0 ? (uint64_t)now.wall_ms : 1;
}

/* Applies an entry of the event stream, which another node wrote, to a device. Only here may the children of an
 * offline device go offline with it; they do not when a state is loaded from the store. */
static void follow_entry(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_transition *t, bool first,
                         uint64_t form)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	enum hw_state was = hw_device_state(d);
	bool heard = is_heard(d);
	if (was == HW_STATE_ONLINE && t->state == HW_STATE_OFFLINE && (first || t->seq >= d->seq))
		hw_parent_goes_down(m, now, i, t->reason, -1, t->seq & HW_SEQ_MAX);
	if (!hw_follow_stored(m, now, i, t, first) || t->state != HW_STATE_ONLINE)
		return;
	hw_form_learn(m, i, form);
	if (was != HW_STATE_ONLINE)
		hw_parent_returns(m, now, i, heard);
}

int hw_monitor_stream(struct hw_monitor *m, struct hw_now now, const struct hw_event *e)
{
	struct hw_transition t = {.state = e->state,
	                          .reason = e->reason,
	                          .time_ms = e->time_ms,
	                          .last_seen_ms = e->last_seen_ms,
	                          .seq = e->seq};
	if (!hw_id_valid(e->id, e->id_len) || e->state == HW_STATE_PROVISIONAL || e->seq == 0)
		return -EINVAL;
	if (is_lost(m, e))
		return -ESTALE;
	uint32_t i = hw_registry_find(m->registry, e->id, e->id_len);
	if (!hw_bounds_seq(e->seq, now.wall_ms)) {
		m->stats.refused[HW_REFUSED_STORED]++;
		t.seq = hw_follow_known_seq(m, now, i);
	}
	bool first = i != HW_NIL && hw_gate_is_missing_in_store(m, i);
	if (i != HW_NIL)
		hw_gate_found_in_store(m, i, t.seq);
	if (hw_gate_is_sole_writer(m, hw_partition_of(e->id, e->id_len))) {
		if (i != HW_NIL && is_in_store(hw_monitor_at(m, i)) && t.seq > hw_monitor_at(m, i)->seq)
			hw_follow_surpass(m, i, t.seq); /* our own, from before another Redis was read */
		return 0;
	}
	if (i == HW_NIL && e->state == HW_STATE_FORGOTTEN) {
		hw_left_out_remove(m, e->id, e->id_len);
		return 0;
	}
	int group =
		i == HW_NIL ? hw_form_group(m, (struct hw_id){e->id, e->id_len}, e->group, e->group_len, e->form) : 0;
	int rc = group < 0 ? group : i == HW_NIL ? hw_monitor_add(m, (uint16_t)group, e->id, e->id_len, &i) : 0;
	if (rc) {
		hw_left_out_note(m, group, e->id, e->id_len, e->state);
		return rc;
	}
	hw_gate_found_in_store(m, i, t.seq);
	follow_entry(m, now, i, &t, first, e->form);
	return 0;
}

void hw_monitor_withdraw(struct hw_monitor *m, struct hw_ref ref)
{
	struct hw_device *d = hw_registry_get(m->registry, ref);
	if (d && !hw_gate_is_authoritative(m, d))
		d->seq = 0;
}

/* --- reading the store again ----------------------------------------------------- */

static uint64_t *bits(uint32_t n)
{
	return calloc(n / 64 + 1, sizeof(uint64_t));
}

int hw_monitor_reread_begin(struct hw_monitor *m, bool other)
{
	struct hw_reread *r = &m->gate.reread;
	uint32_t n = hw_registry_bound(m->registry);
	uint64_t *missing = other ? bits(n) : NULL;
	free(r->found);
	r->found = other && !missing ? NULL : bits(n);
	r->n = r->found ? n : 0;
	r->other |= r->n && other;
	r->at = 0;
	if (r->n && other) {
		free(r->missing);
		memset(missing, 0xff, (n / 64 + 1) * sizeof(*missing));
		r->missing = missing;
		r->n_missing = n;
	} else {
		free(missing);
	}
	return r->found ? 0 : -ENOMEM;
}

/* Called when a reading of the store ends. Returns whether the store should have the device, but the reading has not
 * returned it. */
static bool is_missing(const struct hw_monitor *m, uint32_t i)
{
	const struct hw_device *d = hw_registry_at(m->registry, i);
	return d && !(m->gate.reread.found[i / 64] >> i % 64 & 1) && is_in_store(d);
}

/* Marks the device as pending, so that this node writes and publishes it if it becomes the owner. The present owner
 * writes the device now, but may lose the partition before Redis accepts the write. */
static void keep_for_later(struct hw_monitor *m, uint32_t i)
{
	hw_monitor_at(m, i)->flags |= HW_FLAG_TOUCHED;
}

static struct hw_ref forget(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	const struct hw_transition t = {.state = HW_STATE_FORGOTTEN,
	                                .reason = HW_REASON_OPERATOR,
	                                .time_ms = now.wall_ms,
	                                .last_seen_ms = hw_device_last_seen_ms(d, now),
	                                .seq = d->seq};
	hw_follow(m, now, i, &t);
	return hw_registry_ref(m->registry, i);
}

bool hw_monitor_reread_end(struct hw_monitor *m, struct hw_now now, unsigned *budget, struct hw_ref *gone)
{
	struct hw_reread *r = &m->gate.reread;
	while (*budget > 0 && r->at < r->n) {
		uint32_t i = r->at++;
		(*budget)--;
		if (!is_missing(m, i))
			continue;
		if (hw_gate_is_missing_in_store(m, i)) {
			keep_for_later(m, i);
		} else if (!hw_gate_is_sole_writer(m, hw_device_partition(hw_monitor_at(m, i)))) {
			*gone = forget(m, now, i);
			return true;
		}
	}
	if (r->at < r->n)
		return false;
	free(r->found);
	r->found = NULL;
	r->other = false;
	r->n = 0;
	return false;
}

/* --- taking over --------------------------------------------------------------- */

uint32_t hw_follow_next(struct hw_monitor *m, unsigned *budget)
{
	struct hw_gate *g = &m->gate;
	while (g->sweep.active && *budget > 0) {
		if (g->sweep.at >= hw_registry_bound(m->registry)) {
			g->sweep = (struct hw_sweep){.active = hw_partitions_any(&g->waiting)};
			g->swept = g->waiting;
			g->waiting = (struct hw_partitions){{0}};
			continue;
		}
		(*budget)--;
		uint32_t i = g->sweep.at++;
		const struct hw_device *d = hw_registry_at(m->registry, i);
		if (d && hw_partitions_has(&g->swept, hw_device_partition(d)) && hw_gate_is_authoritative(m, d))
			return i;
	}
	return HW_NIL;
}

/* Whether a key or heartbeats still keep an online device online. */
static bool lives(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	if (hw_monitor_has_key(m, d) && hw_monitor_key_lives(m, now, i))
		return true;
	return hw_monitor_deadline(m, now, d).ns > hw_monitor_seen(m, now).ns;
}

/* Takes over an offline device that was heard while no node was authoritative for it. The device may have stopped
 * again since. */
static void take_over_gone(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if ((d->flags & HW_FLAG_HEARD) && lives(m, now, i)) {
		hw_monitor_rule(m, now, i, &(struct hw_evidence){.event = HW_EVENT_LIFE});
		return;
	}
	hw_gate_clear_heard(d, now);
	if (hw_device_state(d) == HW_STATE_OFFLINE && d->node.place == HW_PLACE_NONE)
		hw_monitor_arm_offline(m, now, i, hw_monitor_gone_ms(m, now, d));
}

/* Takes over a device whose state no node has decided. If the device was heard but is silent by now, there is
 * nothing to report. A record with a flag of the driver (HW_NOTE()) is not removed, because the driver uses it. */
static void take_over_new(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	bool heard = hw_monitor_at(m, i)->last_heard_ms != HW_NEVER_MS;
	if (m->conf.loading)
		return; /* the end of loading settles it */
	if (!heard || lives(m, now, i)) {
		hw_monitor_rule(m, now, i, &(struct hw_evidence){.event = HW_EVENT_SETTLED, .heard = heard});
		return;
	}
	hw_monitor_place(m, i, HW_STATE_FORGOTTEN, HW_REASON_OPERATOR);
	if (!hw_device_noted(hw_monitor_at(m, i), HW_NOTES_ALL))
		hw_monitor_reap(m, hw_registry_ref(m->registry, i));
}

void hw_follow_take_over(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_device *d = hw_monitor_at(m, i);
	enum hw_state state = hw_device_state(d);
	d->flags &= (uint16_t)~HW_FLAG_TIMED;
	if (d->flags & HW_FLAG_TOUCHED) {
		d->flags &= (uint16_t)~HW_FLAG_TOUCHED;
		hw_monitor_emit_device(m, HW_OUT_STATUS, i);
		hw_monitor_emit_device(m, HW_OUT_REFRESH, i); /* the store may lack it too */
	}
	if (d->seq == 0 && is_in_store(d))
		hw_monitor_emit_device(m, HW_OUT_UNWRITTEN, i);
	if (hw_state_is_gone(state))
		take_over_gone(m, now, i);
	else if (state == HW_STATE_PROVISIONAL)
		take_over_new(m, now, i);
	else if ((d->flags & HW_FLAG_SILENT) && (d->flags & HW_FLAG_GOODBYE))
		hw_monitor_suspect(m, i, now.mono);
	else if (hw_probe_taken_over(m, now, i) || d->flags & HW_FLAG_SILENT)
		hw_monitor_arm(m, now, i);
}
