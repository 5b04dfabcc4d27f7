/* SPDX-License-Identifier: MIT */
/*
 * When a node gets the group that it lacked, it does not know the children's parents yet. The parents become known by
 * the next heartbeat of each child, or when the caller reads the store again. So for a grace and the longest timeout of
 * the groups with child_proves, the node behaves as if it still lacked the group.
 */
#include "parent_peers.h"

#include <stdlib.h>
#include <string.h>

#include "form.h"
#include "parent_death.h"

#define SCAN_MAX 65536 /* children of a parent that one check looks at */

/* --- this node's proofs ----------------------------------------------------------- */

static bool is_peer_form(const struct hw_monitor *m, uint64_t form)
{
	size_t k = 0;
	while (k < m->family.n_peer_forms && m->family.peer_forms[k] != form)
		k++;
	return form && k < m->family.n_peer_forms;
}

void hw_parent_peers_begin(struct hw_monitor *m)
{
	for (size_t g = 0; g < m->groups.n; g++) {
		m->form[g].proven_found = (struct hw_partitions){{0}};
		m->form[g].other_there = m->groups.all[g]->child_proves && is_peer_form(m, m->form[g].other);
	}
	m->family.counts = !m->conf.loading;
}

/* Whether the child proves its parent, or may have sent a heartbeat that no node has received. A child that another
 * node hears does not count, because that node proves the parent. */
static bool is_proof(const struct hw_monitor *m, const struct hw_device *child)
{
	return hw_device_state(child) == HW_STATE_ONLINE && m->groups.all[child->group]->child_proves &&
	       (hw_form_judges(m, child) || !m->form[child->group].other_there);
}

void hw_parent_peers_check(struct hw_monitor *m, struct hw_parent *p, unsigned *budget)
{
	const struct hw_device *d = p->record == HW_NIL ? NULL : hw_monitor_at(m, p->record);
	if (!m->conf.several || !m->family.proving || !d || hw_device_state(d) != HW_STATE_ONLINE)
		return;
	struct hw_parent_walk walk;
	uint32_t n = 0, bond = 0, parent = (uint32_t)(p - m->parents.parent);
	hw_parents_walk(p, &walk);
	while (n++ < SCAN_MAX && (bond = hw_parents_step(&m->parents, parent, &walk)) != 0) {
		const struct hw_device *child = hw_monitor_at(m, m->parents.bond[bond - 1].child);
		p->first = bond;
		if (!is_proof(m, child))
			continue;
		hw_partitions_add(&m->form[d->group].proven_found, hw_device_partition(d));
		break;
	}
	*budget -= n / HW_PARENT_SCAN < *budget ? n / HW_PARENT_SCAN : *budget;
}

void hw_parent_peers_end(struct hw_monitor *m)
{
	for (size_t g = 0; g < m->groups.n; g++)
		m->form[g].proven = m->form[g].proven_found;
	m->family.counted |= m->family.counts;
}

static bool has_parents(const struct hw_monitor *m)
{
	return m->parents.names && hw_registry_count(m->parents.names) > 0;
}

bool hw_monitor_proven_known(const struct hw_monitor *m)
{
	return !m->conf.loading && (m->family.counted || !has_parents(m));
}

struct hw_partitions hw_monitor_proven_in(const struct hw_monitor *m, size_t group)
{
	return has_parents(m) ? m->form[group].proven : (struct hw_partitions){{0}};
}

/* --- proofs of other nodes --------------------------------------------------------- */

static bool has_group(const struct hw_monitor *m, const struct hw_peer_group *peer)
{
	for (size_t k = 0; k < m->groups.n_order; k++) {
		const struct hw_group *g = m->groups.all[m->groups.order[k]];
		if (strcmp(g->name, peer->name) == 0)
			return (uint32_t)g->form_hash == (uint32_t)peer->form && hw_group_proves(g) == peer->proves;
	}
	return false;
}

static int64_t longest_timeout_ms(const struct hw_monitor *m)
{
	int64_t longest_ms = 0;
	for (size_t k = 0; k < m->groups.n_order; k++) {
		const struct hw_group *g = m->groups.all[m->groups.order[k]];
		const struct hw_form *f = &m->form[m->groups.order[k]];
		int64_t ms = g->timeout_ms > f->timeout_ms ? g->timeout_ms : f->timeout_ms;
		if (g->child_proves && ms > longest_ms)
			longest_ms = ms;
	}
	return longest_ms;
}

static void add_proven(struct hw_monitor *m, const struct hw_peer_group *peer)
{
	for (size_t g = 0; g < m->groups.n; g++)
		for (unsigned k = 0; strcmp(m->groups.all[g]->name, peer->name) == 0 && k < HW_PARTITIONS / 64; k++)
			m->form[g].proven_there.bits[k] |= peer->proven.bits[k];
}

/* If memory cannot be allocated, no form is kept, and a child that this node cannot hear counts as a proof. */
static void keep_forms(struct hw_monitor *m, const struct hw_peer_group *peers, size_t n)
{
	free(m->family.peer_forms);
	m->family.peer_forms = calloc(n + 1, sizeof(*m->family.peer_forms));
	m->family.n_peer_forms = m->family.peer_forms ? n : 0;
	for (size_t k = 0; k < m->family.n_peer_forms; k++)
		m->family.peer_forms[k] = peers[k].form;
}

bool hw_monitor_peer_proofs(struct hw_monitor *m, struct hw_now now, const struct hw_peer_group *peers, size_t n)
{
	bool lacks = false, lacked = m->family.lacks_until_ns == INT64_MAX;
	keep_forms(m, peers, n);
	for (size_t g = 0; g < m->groups.n; g++)
		m->form[g].proven_there = (struct hw_partitions){{0}};
	for (size_t k = 0; k < n; k++) {
		lacks |= peers[k].proves && !has_group(m, &peers[k]);
		if (hw_partitions_any(&peers[k].proven))
			add_proven(m, &peers[k]);
	}
	if (lacks)
		m->family.lacks_until_ns = INT64_MAX;
	else if (lacked)
		m->family.lacks_until_ns =
			hw_monitor_seen(m, now).ns + (m->conf.grace_ms + longest_timeout_ms(m)) * HW_NS_PER_MS;
	return lacked && !lacks;
}

void hw_parent_peers_changed(struct hw_monitor *m)
{
	if (m->conf.several)
		m->family.lacks_until_ns = INT64_MAX;
}

bool hw_parent_peers_may_prove(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d)
{
	return hw_monitor_seen(m, now).ns < m->family.lacks_until_ns &&
	       hw_partitions_has(&m->form[d->group].proven_there, hw_device_partition(d));
}
