/* SPDX-License-Identifier: MIT */
/* Membership: joining, renewing, leaving, and removing silent members. Also the answers of Redis. */
#include "nodes/nodes_priv.h"

static bool owns_any(const struct hw_nodes *n)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (n->part[p].epoch)
			return true;
	return false;
}

static bool settles(const struct hw_nodes *n)
{
	return owns_any(n) || n->asked[HW_ASK_CLAIM].out || n->asked[HW_ASK_RELEASE].out;
}

bool hw_nodes_ask_renewal(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out)
{
	if (!n->redis || n->asked[HW_ASK_RENEWAL].out || n->stopped || now.mono.ns < n->renew_next.ns)
		return false;
	if (n->abandoned && settles(n))
		return false;
	if (n->stopping && !settles(n)) {
		if (!n->member || n->left) {
			n->left = true;
			return false;
		}
		out->kind = HW_NODES_LEAVE;
	} else {
		out->kind = n->member ? HW_NODES_RENEW : HW_NODES_JOIN;
	}
	out->run = n->run;
	out->count = ++n->count; /* The count also grows when the node joins again. So within one run, an unchanged
	                          * count always means silence. */
	out->ready = n->ready && !n->stopping;
	n->renew_next = hw_mono_add(now.mono, n->lease_ns / HW_LEASE_RENEWALS);
	hw_nodes_ask(n, now, HW_ASK_RENEWAL, out);
	return true;
}

/*
 * Whether to remove a member. The first node that observes a silent member removes it. A lapsed node removes no member,
 * because that node itself may be cut off from Redis. A node that has not joined yet removes only a silent entry with
 * its own name, which prevents it from joining.
 */
static bool is_to_be_removed(const struct hw_nodes *n, const struct hw_member *m, bool may)
{
	bool own = strcmp(m->node, n->node) == 0;
	return hw_member_is_silent(&n->members, m) && (own ? !n->member && m->run != n->run : may);
}

bool hw_nodes_ask_removal(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out)
{
	if (!n->redis || n->asked[HW_ASK_REMOVE].out || n->stopping)
		return false;
	bool may = n->member && !hw_nodes_lapsed(n, now);
	for (size_t i = 0; i < n->members.n; i++) {
		struct hw_member *m = &n->members.all[i];
		if (!is_to_be_removed(n, m, may))
			continue;
		m->since = n->members.answered; /* next attempt after a lease */
		out->kind = HW_NODES_REMOVE;
		memcpy(out->node, m->node, sizeof(out->node));
		out->run = m->run;
		out->count = m->count;
		n->stats.removals++;
		hw_nodes_ask(n, now, HW_ASK_REMOVE, out);
		return true;
	}
	return false;
}

/* Called when Redis' clock becomes known, or was set. Tokens that were read before may have an epoch that is
 * impossible by this clock. */
static void set_clock(struct hw_nodes *n, struct hw_now now, uint64_t now_s)
{
	n->redis_s = now_s;
	n->redis_at = now.mono;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (n->part[p].epoch > hw_nodes_epoch_max(n, now))
			hw_nodes_drop(n, p);
		if (n->part[p].heard.epoch > hw_nodes_epoch_max(n, now)) {
			n->part[p].heard = (struct hw_fencing_token){0};
			n->stats.impossible++;
		}
	}
}

static void see_members(struct hw_nodes *n, struct hw_now now, const struct hw_nodes_answer *a)
{
	hw_members_update(&n->members, now.mono, a->members, a->n_members);
	hw_members_left(&n->members, a->left, a->n_left);
}

static void see(struct hw_nodes *n, struct hw_now now, const struct hw_nodes_answer *a)
{
	set_clock(n, now, a->now_s);
	see_members(n, now, a);
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		struct hw_part *part = &n->part[p];
		const struct hw_record *r = a->owners ? &a->owners[p] : &part->stored;
		bool same = hw_fencing_token_compare(&r->token, &part->stored.token) == 0 &&
		            r->released == part->stored.released && r->clean == part->stored.clean;
		if (!same || !n->members.continuous)
			part->since = now.mono;
		part->stored = *r;
		hw_nodes_hear(n, now, p, &r->token);
	}
	hw_nodes_choose(n);
}

/* Called when another run uses this node's name. If that run is still running, the operator must know. If that run has
 * ended, its entry becomes silent and is removed. */
static void taken(struct hw_nodes *n)
{
	const struct hw_member *m = hw_members_find(&n->members, n->node);
	if (!m || m->run == n->run || !m->grew || n->namesake_reported)
		return;
	n->report_namesake = n->namesake_reported = true;
}

static void set_denied(struct hw_nodes *n, struct hw_now now, bool denied)
{
	if (denied && !n->denied)
		n->denied_since = now.mono;
	if (denied != n->denied)
		n->renew_next = now.mono;
	n->denied = denied;
}

static void joined(struct hw_nodes *n, struct hw_now now, const struct hw_asked *asked)
{
	n->member = n->connects = true;
	n->namesake_reported = false;
	n->renewed = asked->at;
	n->renew_next = now.mono;
	n->stats.joins++;
}

static void renewed(struct hw_nodes *n, const struct hw_asked *asked)
{
	n->renewed = asked->at;
	hw_fence_confirm(&n->fence, asked->sessions);
}

/* Called when this node was removed from the members. It owns nothing now, and joins again. */
static void gone(struct hw_nodes *n, struct hw_now now)
{
	n->member = false;
	n->renewed.ns = INT64_MIN;
	n->renew_next = now.mono;
	hw_nodes_drop_all(n);
}

static struct hw_asked *asked_as(struct hw_nodes *n, uint64_t serial)
{
	for (int i = 0; i < HW_ASKS; i++)
		if (n->asked[i].out && n->asked[i].serial == serial)
			return &n->asked[i];
	return NULL;
}

void hw_nodes_answer(struct hw_nodes *n, struct hw_now now, const struct hw_nodes_answer *a)
{
	struct hw_asked *slot = asked_as(n, a->serial);
	if (!slot)
		return;
	struct hw_asked asked = *slot;
	slot->out = false;
	n->redis_ever = true;
	see(n, now, a);
	if (a->result == HW_NODES_GONE)
		gone(n, now);
	else if (a->result == HW_NODES_TAKEN)
		taken(n);
	else if (asked.kind == HW_NODES_JOIN)
		joined(n, now, &asked);
	else if (asked.kind == HW_NODES_RENEW)
		renewed(n, &asked);
	else if (asked.kind == HW_NODES_CLAIM)
		hw_nodes_claimed(n, &asked, a);
	else if (asked.kind == HW_NODES_REMOVE)
		n->renew_next = n->member ? n->renew_next : now.mono;
	else
		n->attend = true; /* other nodes may claim the released partitions */
	if (asked.kind == HW_NODES_LEAVE)
		n->left = true;
	if (a->result == HW_NODES_DONE && (asked.kind == HW_NODES_JOIN || asked.kind == HW_NODES_RENEW))
		set_denied(n, now, a->denied);
}
