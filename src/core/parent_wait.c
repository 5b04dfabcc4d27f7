/* SPDX-License-Identifier: MIT */
/*
 * Decides how long it is unknown why a device became offline, because its parent may be the cause. See
 * docs/incidents.md and parent_wait.h.
 *
 * If a device becomes offline while a parent is online, there are two explanations. The device stopped by itself. Or
 * its parent is the cause: the parent has stopped too and is found silent at its deadline, or the parent has just come
 * back and the device follows soon. The first heartbeat of the parent after the device's transition decides: the parent
 * did not stop. heartwheel checks parents once a second, so heartbeats cost nothing.
 *
 * If there is no memory or room for a wait, the cause stays unknown for the whole of wait_ms.
 */
#include "parent_wait.h"

#include <stdlib.h>

#include "arm.h"
#include "out.h"
#include "parent_peers.h"

#define CHECK_NS      HW_NS_PER_S
#define WAITS_MAX     100000 /* as many as the stream has entries */
#define SETTLE_MIN_MS 60000
#define SETTLE_ADD_MS 10000

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The record of a parent that is online, or NULL. */
static const struct hw_device *online(const struct hw_monitor *m, const struct hw_parent *p)
{
	const struct hw_device *d = p->record == HW_NIL ? NULL : hw_monitor_at(m, p->record);
	return d && hw_device_state(d) == HW_STATE_ONLINE ? d : NULL;
}

/* If a parent has sent a heartbeat after a silence of more than half its timeout, stores the time of the heartbeat.
 * Checks happen once a second. So a silence that exceeds half the timeout by less than a second may be missed. */
static void check_parent(struct hw_monitor *m, struct hw_now now, struct hw_parent *p)
{
	const struct hw_device *d = online(m, p);
	if (!d || d->last_heard_ms == HW_NEVER_MS)
		return;
	if (p->silent && d->last_heard_ms != p->heard_ms)
		p->returned_ms = d->last_heard_ms;
	p->heard_ms = d->last_heard_ms;
	p->silent = now.mono.ns / HW_NS_PER_MS - p->heard_ms > hw_monitor_timeout_ms(m, d) / 2;
}

/* Returns how long the devices that depend on a parent may take to come back after the parent. */
static int64_t settle_ms(const struct hw_monitor *m, uint32_t i)
{
	int64_t longest_ms = 0;
	const struct hw_parent_bond *e = hw_parents_first(&m->parents, i);
	for (; e; e = hw_parents_next(&m->parents, e->next)) {
		uint32_t record = m->parents.parent[e->parent].record;
		if (record != HW_NIL)
			longest_ms = longer(longest_ms, hw_monitor_timeout_ms(m, hw_monitor_at(m, record)));
	}
	return longer(SETTLE_MIN_MS, hw_monitor_timeout_ms(m, hw_monitor_at(m, i)) + longest_ms + SETTLE_ADD_MS);
}

/* Returns how long a device may still take to come back after its parent, if that parent has returned after the
 * device's last heartbeat at `heard_ms`; otherwise 0. */
static int64_t settle_left_ms(const struct hw_monitor *m, struct hw_now now, const struct hw_parent *p, uint32_t i,
                              int64_t heard_ms)
{
	if (p->returned_ms == INT64_MIN || p->returned_ms <= heard_ms)
		return 0;
	return longer(0, settle_ms(m, i) - (now.mono.ns / HW_NS_PER_MS - p->returned_ms));
}

int64_t hw_parent_wait_ms(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	int64_t wait_ms = -1, heard_ms = hw_monitor_at(m, i)->last_heard_ms;
	const struct hw_parent_bond *e = hw_parents_first(&m->parents, i);
	int64_t settle = e ? settle_ms(m, i) : 0;
	for (; e; e = hw_parents_next(&m->parents, e->next)) {
		struct hw_parent *p = &m->parents.parent[e->parent];
		const struct hw_device *d = online(m, p);
		if (!d)
			continue;
		check_parent(m, now, p);
		int64_t due_ms = hw_monitor_due_in_ms(m, now, d);
		wait_ms = longer(wait_ms, due_ms < 0 ? 0 : due_ms == INT64_MAX ? settle : due_ms);
		wait_ms = longer(wait_ms, settle_left_ms(m, now, p, i, heard_ms));
	}
	return wait_ms;
}

void hw_parent_wait(struct hw_monitor *m, struct hw_now now, uint32_t i, int64_t heard_ms)
{
	struct hw_family *f = &m->family;
	if (f->n_waits == f->waits_cap) {
		uint32_t cap = f->waits_cap ? 2 * f->waits_cap : 64;
		cap = cap < WAITS_MAX ? cap : WAITS_MAX;
		struct hw_parent_wait *waits = cap > f->n_waits ? realloc(f->waits, cap * sizeof(*waits)) : NULL;
		if (!waits)
			return;
		f->waits = waits;
		f->waits_cap = cap;
	}
	f->waits[f->n_waits++] = (struct hw_parent_wait){.device = hw_registry_ref(m->registry, i),
	                                                 .since_ms = hw_monitor_at(m, i)->since_ms,
	                                                 .mono_ms = now.mono.ns / HW_NS_PER_MS,
	                                                 .heard_ms = heard_ms};
}

/* Whether the wait continues. Emits HW_OUT_PARENT_HEARD if a parent was heard; the wait is over then. */
static bool goes_on(struct hw_monitor *m, struct hw_now now, const struct hw_parent_wait *w)
{
	const struct hw_device *d = hw_registry_get(m->registry, w->device);
	bool any = false;
	if (!d || hw_device_state(d) != HW_STATE_OFFLINE || d->since_ms != w->since_ms)
		return false;
	const struct hw_parent_bond *e = hw_parents_first(&m->parents, w->device.index);
	for (; e; e = hw_parents_next(&m->parents, e->next)) {
		const struct hw_parent *p = &m->parents.parent[e->parent];
		const struct hw_device *is = online(m, p);
		if (is && is->last_heard_ms > w->mono_ms) {
			struct hw_out out = {
				.kind = HW_OUT_PARENT_HEARD,
				.parent_heard = {.device = w->device,
			                         .seq = d->seq,
			                         .parent = hw_registry_ref(m->registry, p->record),
			                         .settle_ms = settle_left_ms(m, now, p, w->device.index, w->heard_ms)}};
			hw_monitor_emit(m, &out);
			return false;
		}
		any |= is != NULL;
	}
	return any;
}

static bool check_on(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	struct hw_family *f = &m->family;
	if (f->at_parent < hw_registry_bound(m->parents.names)) {
		struct hw_parent *p = &m->parents.parent[f->at_parent++];
		if (p->children > 0) {
			check_parent(m, now, p);
			hw_parent_peers_check(m, p, budget);
		}
		return true;
	}
	if (f->at_wait < f->n_waits) {
		struct hw_parent_wait w = f->waits[f->at_wait++];
		if (goes_on(m, now, &w))
			f->waits[f->kept++] = w;
		return true;
	}
	f->n_waits = f->kept;
	hw_parent_peers_end(m);
	return f->checking = false;
}

struct hw_mono hw_parent_check_at(const struct hw_monitor *m, struct hw_now now)
{
	const struct hw_family *f = &m->family;
	if (!m->parents.names || hw_registry_count(m->parents.names) == 0)
		return (struct hw_mono){INT64_MAX};
	return f->checking ? now.mono : hw_mono_add(f->checked, CHECK_NS);
}

bool hw_parent_check_next(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	struct hw_family *f = &m->family;
	if (*budget == 0 || hw_parent_check_at(m, now).ns > now.mono.ns)
		return false;
	if (!f->checking) {
		f->checking = true;
		f->checked = now.mono;
		f->at_parent = f->at_wait = f->kept = 0;
		hw_parent_peers_begin(m);
	}
	(*budget)--;
	for (unsigned k = 0; k < 16 && m->outs_n == 0; k++)
		if (!check_on(m, now, budget))
			break;
	return true;
}
