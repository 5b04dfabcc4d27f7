/* SPDX-License-Identifier: MIT */
/*
 * The death of parents: which children go offline with them, and how children prove that their parent is online. See
 * parent_death.h, and monitor.h for the rules.
 *
 * Invariant: `down_ms` of a parent is set only while the parent is offline, and only if this run saw it become offline.
 * So a state that was loaded or taken over makes no child go offline.
 *
 * A child that waits for its turn under max_offline_rate is in the wheel, like every paced device. When its turn comes,
 * hw_parent_orphaned() decides again whether it goes offline.
 *
 * Cost: if any device has a parent, each transition looks up the id of its device among the parents. A sweep costs one
 * unit of the budget for each child.
 */
#include "parent_death.h"

#include "arm.h"
#include "door.h"
#include "form.h"
#include "parent_intake.h"
#include "parent_peers.h"
#include "parent_wait.h"

#define LONG_AGO (INT64_MIN / 4)
#define SCAN_MAX 65536 /* children that one step of a scan looks at */

static struct hw_parent *parent_of(const struct hw_monitor *m, uint32_t i, uint32_t *parent)
{
	if (!m->parents.names)
		return NULL;
	*parent = hw_parents_find(&m->parents, hw_device_id(hw_monitor_at(m, i)));
	return *parent == HW_NIL ? NULL : &m->parents.parent[*parent];
}

/* --- death of a parent ---------------------------------------------------------- */

static void queue(struct hw_monitor *m, uint32_t parent)
{
	struct hw_family *f = &m->family;
	struct hw_parent *p = &m->parents.parent[parent];
	hw_parents_walk(p, &p->sweep);
	if (p->queued)
		return;
	p->queued = true;
	p->next = HW_NIL;
	if (f->head == HW_NIL)
		f->head = parent;
	else
		m->parents.parent[f->tail].next = parent;
	f->tail = parent;
}

/*
 * Returns when a device stopped, in monotonic time: at its goodbye or at its deadline. If another source may have
 * delivered heartbeats of children that were sent after the goodbye, the result is the time before the first of these
 * heartbeats.
 *
 * A device that goes offline because its own parents are offline stopped when the last of these parents did. If another
 * node decided, that node's clock cannot be compared with this node's. The deadline that this node has calculated is
 * then used if it has passed, otherwise now.
 */
static int64_t down_ms(const struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_parent *p,
                       enum hw_reason reason, int64_t delay_ns)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS, latest_ms = INT64_MIN;
	/* If the device was heard since its goodbye, it may have returned. The node that accepted the goodbye then
	 * writes the return as its next entry. A goodbye that is older than a timeout is not the accepted one. */
	if (reason == HW_REASON_WILL && p->goodbye_ms != INT64_MIN &&
	    (p->goodbye_ms >= d->last_heard_ms || now_ms - p->goodbye_ms < hw_monitor_timeout_ms(m, d)))
		return p->before_ms;
	const struct hw_parent_bond *e = reason == HW_REASON_PARENT ? hw_parents_first(&m->parents, i) : NULL;
	for (; e; e = hw_parents_next(&m->parents, e->next)) {
		int64_t ms = m->parents.parent[e->parent].down_ms;
		latest_ms = ms > latest_ms ? ms : latest_ms;
	}
	if (latest_ms != INT64_MIN)
		return latest_ms;
	int64_t late_ns = hw_monitor_seen(m, now).ns - hw_monitor_deadline(m, now, d).ns;
	if (delay_ns < 0 && reason == HW_REASON_TIMEOUT)
		delay_ns = late_ns;
	return now_ms - (delay_ns > 0 ? delay_ns / HW_NS_PER_MS : 0);
}

void hw_parent_goes_down(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_reason reason, int64_t delay_ns,
                         uint64_t seq)
{
	uint32_t parent;
	struct hw_parent *p = parent_of(m, i, &parent);
	if (!p)
		return;
	if (p->end_seq != seq) {
		p->end_seq = seq;
		p->end_ms = down_ms(m, now, i, p, reason, delay_ns);
		p->end_seen_ns = hw_monitor_seen(m, now).ns;
	}
	p->down_ms = p->end_ms;
	p->down_seen_ns = p->end_seen_ns;
	if (m->family.taking)
		queue(m, parent);
}

void hw_parent_is_up(struct hw_monitor *m, uint32_t i)
{
	uint32_t parent;
	struct hw_parent *p = parent_of(m, i, &parent);
	if (p)
		p->down_ms = INT64_MIN;
}

void hw_parent_returns(struct hw_monitor *m, struct hw_now now, uint32_t i, bool heard)
{
	uint32_t parent;
	struct hw_parent *p = parent_of(m, i, &parent);
	if (!p)
		return;
	/* A goodbye that this node read after the device's last heartbeat stays. The device is online, but another node
	 * may still accept that goodbye, or the entry "online" may be older than the goodbye. If this node has read no
	 * heartbeat since the goodbye, the time of the last heartbeat comes from another node's clock, and cannot be
	 * compared. The goodbye then stays until it is older than the device's timeout. */
	const struct hw_device *d = hw_monitor_at(m, i);
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS, bye_ms = p->goodbye_ms;
	if (heard ? d->last_heard_ms == HW_NEVER_MS || d->last_heard_ms > bye_ms
	          : bye_ms < now_ms - hw_monitor_timeout_ms(m, d))
		p->goodbye_ms = INT64_MIN;
	p->returned_ms = p->heard_ms = now_ms;
}

void hw_parent_says_goodbye(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	uint32_t parent;
	struct hw_parent *p = parent_of(m, i, &parent);
	if (!p)
		return;
	int64_t unordered_ms = hw_sight_unordered_ms(&m->sight);
	p->goodbye_ms = m->family.goodbye_ms = now.mono.ns / HW_NS_PER_MS;
	p->before_ms = p->goodbye_ms < unordered_ms ? p->goodbye_ms : unordered_ms - 1;
}

/* --- the children of an offline parent ------------------------------------------ */

/* Returns the one of a child's parents that stopped last. NULL: a known parent is not offline, or no parent has stopped
 * in this run. */
static const struct hw_parent *last_death(const struct hw_monitor *m, uint32_t child)
{
	const struct hw_parent *last = NULL;
	const struct hw_parent_bond *e = hw_parents_first(&m->parents, child);
	for (; e; e = hw_parents_next(&m->parents, e->next)) {
		const struct hw_parent *p = &m->parents.parent[e->parent];
		enum hw_state state =
			p->record == HW_NIL ? HW_STATE_FORGOTTEN : hw_device_state(hw_monitor_at(m, p->record));
		if (state == HW_STATE_ONLINE || state == HW_STATE_PROVISIONAL)
			return NULL;
		if (state == HW_STATE_OFFLINE && p->down_ms != INT64_MIN && (!last || p->down_ms > last->down_ms))
			last = p;
	}
	return last;
}

bool hw_parent_orphaned(const struct hw_monitor *m, uint32_t i)
{
	const struct hw_device *d = hw_monitor_at(m, i);
	if (m->groups.all[d->group]->parent_death != HW_PARENT_TAKE || hw_device_state(d) != HW_STATE_ONLINE ||
	    d->flags & HW_FLAG_GOODBYE || hw_monitor_has_key(m, d) || !hw_gate_is_authoritative(m, d) ||
	    hw_form_is_unheard(m, d))
		return false;
	const struct hw_parent *p = last_death(m, i);
	return p && d->last_heard_ms <= p->down_ms && m->sight.blind.lossy_end.ns < p->down_seen_ns &&
	       hw_parent_is_current(m, i);
}

static void next_parent(struct hw_monitor *m)
{
	struct hw_family *f = &m->family;
	uint32_t done = f->head;
	f->head = m->parents.parent[done].next;
	hw_parents_unqueued(&m->parents, done);
}

bool hw_parent_take_next(struct hw_monitor *m, struct hw_now now, unsigned *budget)
{
	struct hw_parents *ps = &m->parents;
	uint32_t parent = m->family.head;
	if (parent == HW_NIL || hw_monitor_is_blind(m) || *budget == 0)
		return false;
	(*budget)--;
	struct hw_parent *p = &ps->parent[parent];
	bool over = p->down_ms == INT64_MIN || m->sight.blind.lossy_end.ns >= p->down_seen_ns;
	uint32_t bond = over ? 0 : hw_parents_step(ps, parent, &p->sweep);
	if (!bond) {
		next_parent(m);
		return true;
	}
	uint32_t child = ps->bond[bond - 1].child;
	__builtin_prefetch(hw_monitor_at(m, ps->bond[p->sweep.at - 1].child), 1);
	if (hw_parent_orphaned(m, child))
		hw_monitor_rule(m, now, child, &(struct hw_evidence){.event = HW_EVENT_ORPHANED});
	return true;
}

/* --- children that prove their parent ---------------------------------------------- */

/*
 * Returns for how long a child can have been silent, at most. Its last heartbeat has an age in monotonic time, and
 * blindness may be a part of it. So the heartbeat may count as older than it is, but never as newer.
 *
 * A heartbeat may be lost while the child cannot be heard. So the child's silence counts from the time when the child
 * can be heard again, as for the child's own deadline (hw_monitor_deadline()). Blindness that comes again and again
 * excuses the parent for three timeouts at most.
 */
static int64_t silence_ns(const struct hw_monitor *m, struct hw_now now, const struct hw_device *child,
                          int64_t timeout_ns)
{
	const struct hw_blind *b = &m->hearing.group[child->group].blind;
	bool never = child->last_heard_ms == HW_NEVER_MS;
	struct hw_mono heard = {never ? 0 : child->last_heard_ms * HW_NS_PER_MS};
	int64_t age_ns = never ? INT64_MAX / 4 : now.mono.ns - heard.ns;
	if (age_ns < 0 && age_ns >= -HW_NS_PER_MS) /* see hw_moment_ms() */
		age_ns = 0;
	if (hw_form_is_unheard(m, child))
		return age_ns;
	int64_t from = hw_monitor_silent_from(m, child), again = LONG_AGO;
	if (never || hw_blind_seen(&m->sight.blind, heard).ns < b->until.ns)
		again = b->begun.ns < from + 2 * timeout_ns ? b->begun.ns : from + 2 * timeout_ns;
	if (from > child->last_seen_ns && from > again)
		again = from;
	int64_t ns = hw_monitor_group_seen(m, now, child->group).ns - again;
	ns = ns > 0 ? ns : 0;
	return ns < age_ns ? ns : age_ns;
}

/* Counts the heartbeat of a child as a heartbeat of its parent. Returns whether the parent's deadline is in the future
 * now. */
static bool proves(struct hw_monitor *m, struct hw_now now, struct hw_device *parent, const struct hw_device *child)
{
	int64_t timeout_ns = hw_monitor_timeout_ms(m, parent) * HW_NS_PER_MS;
	int64_t age_ns = silence_ns(m, now, child, timeout_ns);
	int64_t seen_ns = hw_monitor_group_seen(m, now, parent->group).ns - age_ns;
	if (age_ns < 0 || seen_ns <= parent->last_seen_ns)
		return false;
	/* The child proves that the parent is online, but not that a filter of the parent's group delivers. So after
	 * a reload, the parent's next heartbeat still decides which group it belongs to. */
	if (hw_form_is_older(m, parent))
		parent->form = HW_FORM_OTHER;
	parent->last_seen_ns = seen_ns;
	return hw_monitor_deadline(m, now, parent).ns > hw_monitor_seen(m, now).ns;
}

/*
 * Called for a child that has not proved its parent. Records whether the child may have sent a heartbeat that this node
 * did not receive. This is so if this node cannot hear the child, or if it is not known yet whether the filters of the
 * child's group deliver. In a group without canaries, this may be unknown for a timeout. The parent waits for that
 * timeout only if the group's timeout is not longer than the parent's own.
 */
static void doubt(struct hw_monitor *m, struct hw_now now, struct hw_parent *p, const struct hw_device *parent,
                  const struct hw_device *child, bool proven)
{
	uint16_t group = (uint16_t)child->group;
	int64_t wait_ns = 0, late_ns = hw_monitor_seen(m, now).ns - hw_monitor_deadline(m, now, parent).ns;
	struct hw_mono need = hw_mono_add(now.mono, late_ns > 0 ? -late_ns : 0);
	if (hw_form_is_unheard(m, child)) {
		p->unheard = true;
		return;
	}
	if (!hw_hearing_has_canaries(&m->hearing, group) &&
	    m->groups.all[group]->timeout_ms > hw_monitor_timeout_ms(m, parent))
		return;
	if (!proven) {
		hw_hearing_ask(&m->hearing, group, need);
		return;
	}
	switch (hw_monitor_hears_group(m, now, group, need, m->group_stats[group].count[HW_STATE_ONLINE], &wait_ns)) {
	case HW_HEARING_HEARS:
		break;
	case HW_HEARING_UNSURE:
		p->unsure = true;
		p->wait_ns = wait_ns > p->wait_ns ? wait_ns : p->wait_ns;
		break;
	default:
		p->unheard = true;
	}
}

/* Called when the scan is over. */
static void conclude(struct hw_monitor *m, struct hw_parent *p, struct hw_evidence *e)
{
	e->deaf |= p->rests = p->unheard;
	e->unheard = p->unsure;
	e->wait_ns = p->wait_ns;
	m->unjudged.any |= p->rests && m->conf.several;
}

bool hw_parent_prove(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_evidence *e, unsigned *budget)
{
	uint32_t parent;
	struct hw_device *d = hw_monitor_at(m, i);
	if (hw_device_state(d) != HW_STATE_ONLINE || d->flags & HW_FLAG_GOODBYE ||
	    hw_monitor_deadline(m, now, d).ns > hw_monitor_seen(m, now).ns)
		return true;
	e->deaf = hw_parent_peers_may_prove(m, now, d);
	m->unjudged.any |= e->deaf;
	struct hw_parent *p = m->family.proving ? parent_of(m, i, &parent) : NULL;
	if (!p)
		return true;
	if (p->scan.left == 0) {
		hw_parents_walk(p, &p->scan);
		p->unheard = p->unsure = false;
		p->wait_ns = 0;
	}
	uint32_t n = 0, bond = 0, doubted = HW_GROUPS_MAX;
	while (n < SCAN_MAX && (bond = hw_parents_step(&m->parents, parent, &p->scan)) != 0) {
		n++;
		const struct hw_device *child = hw_monitor_at(m, m->parents.bond[bond - 1].child);
		__builtin_prefetch(hw_monitor_at(m, m->parents.bond[p->scan.at - 1].child));
		if (hw_device_state(child) != HW_STATE_ONLINE || !m->groups.all[child->group]->child_proves)
			continue;
		if (proves(m, now, d, child)) {
			p->first = bond;
			p->scan.left = 0;
			p->unheard = p->unsure = e->deaf = false;
			break;
		}
		if (p->unheard || (child->group == doubted && !hw_form_is_unheard(m, child)))
			continue;
		doubted = child->group;
		doubt(m, now, p, d, child, e->event == HW_EVENT_PROVEN);
	}
	*budget -= n / HW_PARENT_SCAN < *budget ? n / HW_PARENT_SCAN : *budget;
	if (p->scan.left == 0)
		conclude(m, p, e);
	return p->scan.left == 0;
}

bool hw_parent_rests(const struct hw_monitor *m, uint32_t i)
{
	uint32_t parent;
	const struct hw_parent *p = parent_of(m, i, &parent);
	return p && p->rests;
}
