/* SPDX-License-Identifier: MIT */
#include "nodes/members.h"

#include <string.h>

void hw_members_init(struct hw_members *m, int64_t lease_ns)
{
	*m = (struct hw_members){.lease_ns = lease_ns, .answered = {INT64_MIN}};
}

void hw_members_forget(struct hw_members *m)
{
	m->answered.ns = INT64_MIN;
}

static struct hw_member *find(struct hw_members *m, const char *node)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->all[i].node, node) == 0)
			return &m->all[i];
	return NULL;
}

const struct hw_member *hw_members_find(const struct hw_members *m, const char *node)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->all[i].node, node) == 0)
			return &m->all[i];
	return NULL;
}

static bool is_former(const struct hw_members *m, const char *node)
{
	for (size_t i = 0; i < HW_FORMER_MAX; i++)
		if (strcmp(m->former[i], node) == 0)
			return true;
	return false;
}

static void keep_former(struct hw_members *m, const char *node)
{
	if (is_former(m, node))
		return;
	memcpy(m->former[m->former_at], node, strlen(node) + 1);
	m->former_at = (m->former_at + 1) % HW_FORMER_MAX;
}

bool hw_members_knows(const struct hw_members *m, const char *node)
{
	return hw_members_find(m, node) || is_former(m, node);
}

void hw_members_left(struct hw_members *m, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(names[i]) > HW_NODE_ID_MAX || hw_members_knows(m, names[i]))
			continue;
		keep_former(m, names[i]);
		m->names++;
	}
}

static void keep(struct hw_members *m, struct hw_mono now, const struct hw_member_entry *e)
{
	struct hw_member *member = find(m, e->node);
	if (!member && (m->n == HW_MEMBERS_MAX || strlen(e->node) > HW_NODE_ID_MAX)) {
		m->refused++;
		return;
	}
	if (!member) {
		member = &m->all[m->n++];
		*member = (struct hw_member){.run = ~e->run};
		memcpy(member->node, e->node, strlen(e->node) + 1);
		m->names += !is_former(m, e->node);
	}
	bool same_run = member->run == e->run, same = same_run && member->count == e->count;
	if (e->ready && !(member->ready && same_run))
		member->ready_from = e->count;
	member->grew = same_run && (member->grew || (m->continuous && member->count != e->count));
	if (!same || !m->continuous)
		member->since = now;
	member->run = e->run;
	member->count = e->count;
	member->ready = e->ready;
	member->unable = e->unable;
	member->lease_ns = e->lease_ns > m->lease_ns ? e->lease_ns : m->lease_ns;
	member->there = true;
}

void hw_members_update(struct hw_members *m, struct hw_mono now, const struct hw_member_entry *entries, size_t n)
{
	m->continuous = m->answered.ns != INT64_MIN &&
	                now.ns - m->answered.ns <= HW_RENEWALS_PAUSE * m->lease_ns / HW_LEASE_RENEWALS;
	m->answered = now;
	for (size_t i = 0; i < m->n; i++)
		m->all[i].there = false;
	for (size_t i = 0; i < n; i++)
		keep(m, now, &entries[i]);
	size_t kept = 0;
	for (size_t i = 0; i < m->n; i++)
		if (m->all[i].there)
			m->all[kept++] = m->all[i];
		else
			keep_former(m, m->all[i].node);
	m->n = kept;
}

bool hw_member_is_silent(const struct hw_members *m, const struct hw_member *member)
{
	return m->answered.ns != INT64_MIN && m->answered.ns - member->since.ns >= member->lease_ns;
}

bool hw_member_is_settled(const struct hw_member *member)
{
	return member->ready && member->count >= member->ready_from + HW_RENEWALS_SETTLED;
}
