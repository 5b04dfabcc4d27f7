/* SPDX-License-Identifier: MIT */
/* See form.h. */
#include "form.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arm.h"
#include "heartwheel/unseen.h"
#include "left_out.h"
#include "parent_death.h"
#include "parent_peers.h"

/* --- forms ---------------------------------------------------------------------- */

uint16_t hw_form_guess_group(const struct hw_groups *g, struct hw_id device)
{
	uint16_t best = g->order[0];
	size_t best_len = 0;
	bool any = false;
	for (size_t k = 0; k < g->n_order; k++) {
		const struct hw_group *one = g->all[g->order[k]];
		if ((any && one->id_prefix_len <= best_len) || !hw_group_fits(one, device.text, device.len))
			continue;
		best = g->order[k];
		best_len = one->id_prefix_len;
		any = true;
	}
	return best;
}

/* Returns the index of the group of the file that has this form, or -1. */
static int find_form(const struct hw_groups *g, uint64_t form)
{
	for (size_t k = 0; k < g->n_order && form; k++)
		if (g->all[g->order[k]]->form_hash == form)
			return g->order[k];
	return -1;
}

bool hw_form_are_kin(const struct hw_monitor *m, size_t a, size_t b)
{
	const struct hw_group *x = m->groups.all[a], *y = m->groups.all[b];
	return !x->retired && !y->retired && x->status.filter && y->status.filter &&
	       strcmp(x->status.filter, y->status.filter) == 0;
}

bool hw_form_is_kin_blind(const struct hw_monitor *m, uint16_t group)
{
	for (size_t g = 0; (m->hearing.deaf_groups || m->hearing.upstream_groups) && g < m->groups.n; g++)
		if (hw_hearing_is_blind(&m->hearing, (uint16_t)g) && hw_form_are_kin(m, group, g))
			return true;
	return false;
}

int hw_form_named(struct hw_monitor *m, const char *name, size_t len)
{
	size_t n = m->groups.n + 1;
	if (hw_monitor_fit_groups(m, n) || hw_hearing_fit_groups(&m->hearing, n))
		return -ENOMEM;
	return hw_groups_name(&m->groups, name, len);
}

int hw_form_group(struct hw_monitor *m, struct hw_id device, const char *name, size_t len, uint64_t form)
{
	const struct hw_groups *g = &m->groups;
	size_t at = 0;
	while (at < g->n && (strlen(g->all[at]->name) != len || memcmp(g->all[at]->name, name, len) != 0))
		at++;
	if (at < g->n && !g->all[at]->retired && g->all[at]->form_hash == form)
		return (int)at;
	int of_form = find_form(g, form);
	if (at < g->n || of_form >= 0)
		return of_form >= 0 ? of_form : (int)at;
	if (g->n >= HW_GROUPS_MAX && hw_id_valid(name, len)) {
		m->stats.refused[HW_REFUSED_STORED]++;
		return hw_form_guess_group(g, device);
	}
	return hw_form_named(m, name, len);
}

void hw_form_learn(struct hw_monitor *m, uint32_t i, uint64_t form)
{
	struct hw_device *d = hw_monitor_at(m, i);
	struct hw_group *g = m->groups.all[d->group];
	m->unjudged.any |= g->unheard;
	if (!form)
		return;
	if (!g->form_hash)
		g->form_hash = form;
	if (form == g->form_hash) {
		int64_t heard_ns = m->form[d->group].heard_ns;
		if (d->form != HW_FORM_MOVED && m->conf.several)
			d->form = HW_FORM_OURS;
		d->last_seen_ns = d->last_seen_ns > heard_ns ? d->last_seen_ns : heard_ns;
	} else if (!hw_form_is_ours(m, d)) {
		d->form = HW_FORM_OTHER;
		m->form[d->group].other = form;
		m->unjudged.any |= m->conf.several;
	}
}

int hw_form_begin(const struct hw_monitor *m, struct hw_form_was **was)
{
	*was = calloc(m->groups.n + 1, sizeof(**was));
	for (size_t g = 0; *was && g < m->groups.n; g++) {
		const struct hw_group *group = m->groups.all[g];
		(*was)[g] = (struct hw_form_was){group->form_hash, group->timeout_ms, group->timeout_max_ms,
		                                 group->retired ? 0 : hw_group_proves(group), group->unheard};
	}
	return *was ? 0 : -ENOMEM;
}

/* Stores the timeouts from before a reload. If devices may still use the timeouts from before an earlier reload,
 * keeps the longer ones. */
static void note_timeouts(const struct hw_monitor *m, struct hw_form *f, const struct hw_form_was *was, int64_t seen_ns)
{
	int64_t lasts_ms = m->conf.grace_ms + f->was_timeout_ms;
	bool lasts = f->heard_ns != INT64_MIN && seen_ns - f->heard_ns < lasts_ms * HW_NS_PER_MS;
	if (!lasts || f->was_timeout_ms < was->timeout_ms)
		f->was_timeout_ms = was->timeout_ms;
	if (!lasts || f->was_timeout_max_ms < was->timeout_max_ms)
		f->was_timeout_max_ms = was->timeout_max_ms;
}

/* Sets heard_ns so that each device that was heard before the reload counts as heard in an earlier form. The group's
 * clock at the reload would not be enough: it stands still while the group is blind, and deafness that is found late
 * sets it back. */
static void put_after_devices(struct hw_monitor *m, const struct hw_form_was *was, size_t n_was)
{
	for (uint32_t i = 0; i < hw_registry_bound(m->registry); i++) {
		const struct hw_device *d = hw_registry_at(m->registry, i);
		if (d && d->group < n_was && m->groups.all[d->group]->form_hash != was[d->group].form &&
		    d->last_seen_ns >= m->form[d->group].heard_ns)
			m->form[d->group].heard_ns = d->last_seen_ns + 1;
	}
}

void hw_form_end(struct hw_monitor *m, struct hw_now now, const struct hw_form_was *was, size_t n_was)
{
	bool any = false;
	for (size_t g = 0; g < n_was; g++) {
		const struct hw_group *group = m->groups.all[g];
		bool changed = group->form_hash != was[g].form;
		any |= changed;
		int64_t seen_ns = hw_monitor_group_seen(m, now, (uint16_t)g).ns;
		uint32_t proves = group->retired ? 0 : hw_group_proves(group);
		m->unjudged.any |= group->unheard || (changed && m->conf.several);
		if (proves != was[g].proves || (proves && changed))
			hw_parent_peers_changed(m);
		if (changed) {
			note_timeouts(m, &m->form[g], &was[g], seen_ns);
			m->form[g].other_ns = m->form[g].heard_ns;
			m->form[g].heard_ns = seen_ns;
			m->form[g].other = was[g].form;
		}
		if (changed || was[g].unheard)
			m->form[g].silent_ns = seen_ns + m->conf.grace_ms * HW_NS_PER_MS;
	}
	if (any)
		put_after_devices(m, was, n_was);
	if (m->unjudged.any)
		m->unjudged.begun = false;
}

/* Returns the form in which a node last heard the device; 0: unknown, and the stored form stays as it is. A node
 * with that form can judge the device. If nodes report several other forms, the one that was read last is returned.
 *
 * If a single monitor does not know the form, it returns the form of the device's group, because it judges each
 * device of its groups. After a restart, the form shows which group was renamed. */
uint64_t hw_monitor_form(const struct hw_monitor *m, const struct hw_device *d)
{
	bool older = hw_form_is_older(m, d), other = d->form == HW_FORM_OTHER || older;
	if ((m->conf.several && d->form == HW_FORM_UNKNOWN) || (older && d->last_seen_ns < m->form[d->group].other_ns))
		return 0;
	return other ? m->form[d->group].other : m->groups.all[d->group]->form_hash;
}

/* --- other nodes' timeouts ------------------------------------------------------- */

void hw_monitor_peer_groups(struct hw_monitor *m, const struct hw_peer_group *peers, size_t n, bool differ)
{
	bool changed = false;
	m->unjudged.differ = differ;
	m->unjudged.any |= differ;
	for (size_t g = 0; g < m->groups.n; g++) {
		struct hw_form *f = &m->form[g];
		int64_t timeout_ms = 0, timeout_max_ms = 0;
		for (size_t k = 0; k < n; k++) {
			if (strcmp(peers[k].name, m->groups.all[g]->name) != 0)
				continue;
			if (peers[k].timeout_ms > timeout_ms)
				timeout_ms = peers[k].timeout_ms;
			if (peers[k].timeout_max_ms > timeout_max_ms)
				timeout_max_ms = peers[k].timeout_max_ms;
		}
		changed |= timeout_ms != f->timeout_ms || timeout_max_ms != f->timeout_max_ms;
		f->timeout_ms = timeout_ms;
		f->timeout_max_ms = timeout_max_ms;
	}
	if (changed)
		hw_monitor_begin_relink(m);
}

/* --- devices that are not judged ------------------------------------------------ */

static void forget_found(struct hw_form *f)
{
	f->counted = 0;
	f->found = (struct hw_group_judging){0};
}

static bool lasts(const struct hw_monitor *m, struct hw_now now, size_t g)
{
	return m->form[g].blind_at.ns && now.mono.ns - m->form[g].blind_at.ns >= m->conf.blind_lasts_ms * HW_NS_PER_MS;
}

/* Counts a device, or an expected id, of a group that is blind on this node, perhaps on this node only. Such a device
 * or id is not counted as unjudged. */
static void count_blind(struct hw_monitor *m, struct hw_now now, size_t group, unsigned p)
{
	m->form[group].found.judged = true;
	hw_partitions_add(&m->form[group].found.online, p);
	hw_partitions_add(&m->unjudged.found_in, p);
	if (lasts(m, now, group))
		hw_partitions_add(&m->form[group].found.late, p);
}

/* Counts an expected id that may become unseen, for each group in which its first heartbeat may arrive, if this node
 * cannot hear the group, or may not know that the group's upstream is down. Other ids do not count: this node can judge
 * those ids like any node. */
static void count_expected(struct hw_monitor *m, struct hw_now now, uint32_t i)
{
	struct hw_expected_view v = hw_expected_at(m->expected, i);
	unsigned p = hw_partition_of(v.id.text, v.id.len);
	if (v.state != HW_EXPECTED_WAITS || hw_monitor_is_known(m, v.id))
		return;
	for (size_t g = 0; g < m->groups.n; g++) {
		struct hw_form *f = &m->form[g];
		if (!(f->blind_at.ns || f->unsure) || m->groups.all[g]->retired ||
		    !hw_monitor_may_arrive_in(m, &v, (uint16_t)g))
			continue;
		if (f->blind_at.ns)
			count_blind(m, now, g, p);
		else
			hw_partitions_add(&f->found.online, p);
	}
}

/* Counts an overdue device that is not judged, because its children, which this node does not hear, may prove that it
 * is online. The device's own group does deliver. The device counts as unjudged only if this node lacks the children's
 * group. */
static bool count_resting(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_device *d)
{
	int64_t late_ns = hw_monitor_seen(m, now).ns - hw_monitor_deadline(m, now, d).ns;
	bool lacks = hw_parent_peers_may_prove(m, now, d);
	if (late_ns < 0 || hw_device_state(d) != HW_STATE_ONLINE || !hw_form_judges(m, d) ||
	    !(lacks || hw_parent_rests(m, i)))
		return false;
	unsigned p = hw_device_partition(d);
	struct hw_group_judging *found = &m->form[d->group].found;
	found->judged = true;
	m->form[d->group].counted += lacks && hw_gate_owns(m, d);
	hw_partitions_add(&found->online, p);
	hw_partitions_add(&m->unjudged.found_in, p);
	if (late_ns >= m->conf.blind_lasts_ms * HW_NS_PER_MS)
		hw_partitions_add(&found->late, p);
	m->unjudged.resting = true;
	return true;
}

static void begin_round(struct hw_monitor *m, struct hw_now now)
{
	struct hw_unjudged *u = &m->unjudged;
	u->begun = true;
	u->found_in = u->found_heard = (struct hw_partitions){{0}};
	u->found = u->at = u->expected_at = 0;
	u->blind = u->resting = false;
	for (size_t g = 0; g < m->groups.n; g++) {
		struct hw_form *f = &m->form[g];
		forget_found(f);
		if (!hw_hearing_is_blind(&m->hearing, (uint16_t)g))
			f->blind_at.ns = 0;
		else if (!f->blind_at.ns)
			f->blind_at = now.mono;
		f->unsure = hw_upstream_is_unknown(&m->upstream, g);
		u->blind |= f->blind_at.ns != 0 || f->unsure;
		f->found.deaf = lasts(m, now, g) && hw_hearing_is_deaf(&m->hearing, (uint16_t)g);
	}
}

/* Counts a device that this node cannot judge. An offline device counts too: if it sends again, this node may not
 * receive it. */
static void count(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_device *d)
{
	struct hw_unjudged *u = &m->unjudged;
	enum hw_state state = hw_device_state(d);
	/* Only this node receives the device's messages, so no node has reported the device. */
	bool unstored = state == HW_STATE_PROVISIONAL && d->last_heard_ms != HW_NEVER_MS;
	/* After the store was emptied, it may lack an online device whose owner does not receive the device's
	 * messages. */
	unstored |= state == HW_STATE_ONLINE && hw_form_is_ours(m, d) && hw_gate_is_missing_in_store(m, i);
	/* The owner of such an offline device does not receive its messages, so the owner does not know that the
	 * device sends again. The form does not matter here. */
	unstored |= state == HW_STATE_OFFLINE && (d->flags & HW_FLAG_HEARD);
	if (unstored && !hw_gate_owns(m, d))
		hw_partitions_add(&u->found_heard, hw_device_partition(d));
	if (state != HW_STATE_ONLINE && state != HW_STATE_OFFLINE)
		return;
	struct hw_form *f = &m->form[d->group];
	if (hw_form_judges(m, d) && f->blind_at.ns && !hw_monitor_is_keyed(m, d)) {
		count_blind(m, now, d->group, hw_device_partition(d));
		return;
	}
	if ((m->parents.names || hw_parent_may_be_proven(m)) && count_resting(m, now, i, d))
		return;
	if (hw_form_judges(m, d) || hw_monitor_is_keyed(m, d)) {
		f->found.judged |= hw_form_judges(m, d);
		/* A value of the group's `while` is unknown here, and another node may know that the upstream is
		 * down. So this node must not count as the better judge of the device. */
		if (f->unsure && !hw_monitor_is_keyed(m, d))
			hw_partitions_add(&f->found.online, hw_device_partition(d));
		return;
	}
	bool other = d->form != HW_FORM_UNKNOWN && !hw_form_is_ours(m, d);
	hw_partitions_add(&f->found.unjudged[other].in, hw_device_partition(d));
	u->found++;
	hw_partitions_add(&u->found_in, hw_device_partition(d));
	f->counted += state == HW_STATE_ONLINE && hw_gate_owns(m, d);
	if (state == HW_STATE_ONLINE)
		hw_partitions_add(&f->found.online, hw_device_partition(d));
	if (state == HW_STATE_ONLINE && hw_monitor_deadline(m, now, d).ns <= hw_monitor_seen(m, now).ns)
		hw_partitions_add(&f->found.late, hw_device_partition(d));
}

static void end_round(struct hw_monitor *m)
{
	struct hw_unjudged *u = &m->unjudged;
	u->n = 0;
	hw_left_out_count(m);
	for (size_t g = 0; g < m->groups.n; g++) {
		m->form[g].unjudged = m->form[g].counted;
		m->form[g].is = m->form[g].found;
		forget_found(&m->form[g]);
		u->n += m->form[g].unjudged;
	}
	u->in = u->found_in;
	u->any = u->found > 0 || u->differ || u->blind || u->resting || m->left_out.n > 0;
	u->rounds++;
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
		u->unstored_in.bits[k] = u->differ ? u->heard_in.bits[k] & u->found_heard.bits[k] : 0;
	u->heard_in = u->found_heard;
	u->found_in = u->found_heard = (struct hw_partitions){{0}};
	u->found = 0;
	u->begun = false;
}

bool hw_monitor_count_unjudged(struct hw_monitor *m, struct hw_now now, unsigned budget)
{
	struct hw_unjudged *u = &m->unjudged;
	if (!hw_monitor_may_be_unjudged(m))
		return true;
	if (!u->begun)
		begin_round(m, now);
	for (; budget > 0 && u->at < hw_registry_bound(m->registry); u->at++, budget--) {
		const struct hw_device *d = hw_registry_at(m->registry, u->at);
		if (d)
			count(m, now, u->at, d);
	}
	for (; budget > 0 && u->blind && u->expected_at < hw_expected_bound(m->expected); u->expected_at++, budget--)
		if (hw_expected_is_used(m->expected, u->expected_at))
			count_expected(m, now, u->expected_at);
	if (u->at < hw_registry_bound(m->registry) || (u->blind && u->expected_at < hw_expected_bound(m->expected)))
		return false;
	end_round(m);
	return true;
}

bool hw_monitor_may_be_unjudged(const struct hw_monitor *m)
{
	return m->unjudged.any || (m->conf.several && (m->hearing.deaf_groups > 0 || m->hearing.upstream_groups > 0 ||
	                                               hw_upstream_any_unknown(&m->upstream)));
}

struct hw_partitions hw_monitor_unjudged_in(const struct hw_monitor *m)
{
	return m->unjudged.in;
}

struct hw_partitions hw_monitor_unstored_in(const struct hw_monitor *m)
{
	return m->unjudged.unstored_in;
}

uint32_t hw_monitor_unjudged(const struct hw_monitor *m)
{
	return m->unjudged.n;
}

uint32_t hw_monitor_unjudged_of(const struct hw_monitor *m, size_t group)
{
	return m->form[group].unjudged;
}

struct hw_group_judging hw_monitor_judging(const struct hw_monitor *m, size_t group)
{
	struct hw_group_judging is = m->form[group].is;
	is.unjudged[0].form = m->groups.all[group]->form_hash;
	is.unjudged[1].form = m->form[group].other;
	return is;
}

bool hw_monitor_judges(const struct hw_monitor *m, const struct hw_device *d)
{
	return hw_form_judges(m, d);
}
