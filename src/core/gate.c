/* SPDX-License-Identifier: MIT */
/* See gate.h, and monitor.h for the partitions that this node owns. */
#include "gate.h"

#include "arm.h"

/* --- verdicts ---------------------------------------------------------------- */

/*
 * Whether a heartbeat may have been sent before the device became offline by another node's decision.
 *
 * Before that decision, the other node had received no heartbeat for at least one timeout. The broker handled the
 * heartbeat after the last barrier that is back was sent. So if that barrier was sent less than a timeout ago, the
 * heartbeat is newer than that silence. Otherwise it may be older: after a network split, or a standstill of the broker
 * or of a reader.
 */
static bool may_be_old(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	int64_t age_ns = now.mono.ns - hw_sight_later(&m->sight).ns;
	return hw_state_is_gone(hw_device_state(d)) && age_ns >= hw_monitor_timeout_ms(m, d) * HW_NS_PER_MS;
}

void hw_gate_note(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_act act)
{
	struct hw_device *d = hw_monitor_at(m, i);
	if (act == HW_ACT_ONLINE) {
		d->flags |= HW_FLAG_HEARD;
		if (may_be_old(m, now, d))
			hw_gate_clear_heard(d, now);
	} else if (act == HW_ACT_OFFLINE && hw_device_state(d) == HW_STATE_ONLINE) {
		hw_monitor_unlink(m, i);
		d->flags = (uint16_t)((d->flags & ~HW_FLAG_PACED) | HW_FLAG_SILENT);
	}
}

void hw_gate_clear_heard(struct hw_device *d, struct hw_now now)
{
	if (hw_device_state(d) == HW_STATE_OFFLINE)
		d->goodbye_period = 0;
	if (!(d->flags & HW_FLAG_HEARD))
		return;
	if (hw_state_is_gone(hw_device_state(d)))
		hw_device_set_heard_ms(d, hw_device_last_seen_ms(d, now));
	d->flags &= (uint16_t)~HW_FLAG_HEARD;
}

/* --- this node's partitions ------------------------------------------------------- */

/* Adds a partition to the running sweep. A sweep is not restarted, because it would never end if new partitions kept
 * arriving. */
static void take_over(struct hw_gate *g, unsigned p)
{
	hw_partitions_add(g->sweep.active ? &g->waiting : &g->swept, p);
	g->sweep.active = true;
}

static void put(struct hw_partitions *s, unsigned p, bool in)
{
	if (in)
		hw_partitions_add(s, p);
	else
		hw_partitions_del(s, p);
}

void hw_monitor_role(struct hw_monitor *m, unsigned p, enum hw_role role, uint64_t epoch)
{
	struct hw_gate *g = &m->gate;
	if (role == HW_ROLE_AUTHORITATIVE && !hw_partitions_has(&g->authoritative, p))
		take_over(g, p);
	put(&g->owned, p, role != HW_ROLE_WATCHES);
	put(&g->authoritative, p, role == HW_ROLE_AUTHORITATIVE);
	if (role != HW_ROLE_OWNS) /* OWNS: the partition is being gained or handed over */
		put(&g->sole_writer, p, role == HW_ROLE_AUTHORITATIVE);
	g->epoch[p] = role == HW_ROLE_WATCHES ? 0 : epoch;
	g->all = hw_partitions_count(&g->authoritative) == HW_PARTITIONS;
}

struct hw_partitions hw_monitor_takes_over(const struct hw_monitor *m)
{
	const struct hw_gate *g = &m->gate;
	struct hw_partitions set = {{0}};
	for (unsigned k = 0; g->sweep.active && k < HW_PARTITIONS / 64; k++)
		set.bits[k] = g->swept.bits[k] | g->waiting.bits[k];
	return set;
}

uint64_t hw_monitor_peer_messages(const struct hw_monitor *m)
{
	return m->peer_messages;
}

bool hw_monitor_owns(const struct hw_monitor *m, const struct hw_device *d)
{
	return hw_gate_owns(m, d);
}

bool hw_monitor_owns_partition(const struct hw_monitor *m, unsigned p)
{
	return m->gate.all || hw_partitions_has(&m->gate.owned, p);
}

bool hw_monitor_is_authoritative(const struct hw_monitor *m, const struct hw_device *d)
{
	return hw_gate_is_authoritative(m, d);
}

uint64_t hw_monitor_epoch(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->conf.several ? m->gate.epoch[hw_device_partition(d)] : 0;
}
