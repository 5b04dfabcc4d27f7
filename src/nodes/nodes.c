/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "nodes/claims.h"
#include "nodes/nodes_priv.h"

struct hw_nodes *hw_nodes_new(const struct hw_nodes_conf *conf, struct hw_now now)
{
	struct hw_nodes *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	snprintf(n->node, sizeof(n->node), "%s", conf->node);
	n->run = conf->run;
	n->mode = conf->mode;
	n->lease_ns = conf->lease_ms * HW_NS_PER_MS;
	n->outwait_ns = conf->keepalive_ms * 3 / 2 * HW_NS_PER_MS + 5 * HW_NS_PER_S;
	n->started = n->renew_next = n->pace_from = now.mono;
	n->renewed.ns = n->redis_at.ns = INT64_MIN;
	n->blind = true;
	n->blind_since = now.mono;
	hw_members_init(&n->members, n->lease_ns);
	hw_fence_init(&n->fence, n->node);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		n->part[p].not_before.ns = INT64_MIN;
	hw_nodes_choose(n);
	return n;
}

void hw_nodes_free(struct hw_nodes *n)
{
	free(n);
}

/* --- Redis ---------------------------------------------------------------------------------------------------- */

void hw_nodes_redis(struct hw_nodes *n, struct hw_now now, bool up)
{
	n->redis = up;
	for (int i = 0; i < HW_ASKS; i++)
		n->asked[i].out = false;
	hw_members_forget(&n->members);
	n->renew_next = now.mono;
}

void hw_nodes_refused(struct hw_nodes *n, struct hw_now now, unsigned p, const struct hw_fencing_token *stored)
{
	n->stats.fenced_redis += n->part[p].epoch != 0;
	hw_nodes_hear(n, now, p, stored);
	n->renew_next = now.mono;
}

void hw_nodes_attend(struct hw_nodes *n, struct hw_now now)
{
	n->renew_next = now.mono;
}

void hw_nodes_doubt(struct hw_nodes *n, struct hw_now now, bool doubted)
{
	if (doubted != n->doubted)
		n->renew_next = now.mono;
	n->doubted = doubted;
}

/* --- the broker ----------------------------------------------------------------------------------------------- */

void hw_nodes_session(struct hw_nodes *n, struct hw_now now, bool up)
{
	hw_fence_session(&n->fence, up);
	if (up)
		n->renew_next = now.mono; /* condition 2 of fence.h needs a renewal in this session */
}

void hw_nodes_reader(struct hw_nodes *n, struct hw_now now, bool up)
{
	(void)now;
	hw_fence_reader(&n->fence, up);
}

void hw_nodes_acked(struct hw_nodes *n, struct hw_now now, uint64_t serial)
{
	(void)now;
	hw_fence_acked(&n->fence, serial);
}

void hw_nodes_barrier_sent(struct hw_nodes *n, struct hw_now now, uint64_t number)
{
	(void)now;
	hw_fence_barrier_sent(&n->fence, number);
}

void hw_nodes_barrier_back(struct hw_nodes *n, struct hw_now now, uint64_t number)
{
	hw_fence_barrier_back(&n->fence, now.mono, number);
}

static bool is_or_was_member(const struct hw_nodes *n, const char *node)
{
	return strcmp(node, n->node) == 0 || hw_members_knows(&n->members, node);
}

/* Whether messages of `node` are accepted. While Redis is in doubt, messages of every node are accepted, because `node`
 * may have joined at another master, which this node does not use. */
bool hw_nodes_knows(const struct hw_nodes *n, const char *node)
{
	return n->doubted || is_or_was_member(n, node);
}

void hw_nodes_passed_over(struct hw_nodes *n, struct hw_now now)
{
	if (n->passed_over)
		return;
	n->passed_over = true;
	n->names = n->members.names;
	n->renew_next = now.mono;
}

bool hw_nodes_rereads(struct hw_nodes *n)
{
	bool rereads = n->passed_over && (n->doubted || n->members.names != n->names);
	n->passed_over &= !rereads;
	return rereads;
}

static void watch(struct hw_nodes *n, unsigned p, const struct hw_fencing_token *t)
{
	struct hw_part *part = &n->part[p];
	if (part->watched_in == n->fence.begun && !hw_fencing_token_is_less(&part->watched, t))
		return;
	part->watched = *t;
	part->watched_in = n->fence.begun;
}

/* Handles a known token of p. The node that claimed p last was a member. That node is remembered as a former member,
 * because Redis may have been emptied since and have lost the node's name. */
static void hear_known(struct hw_nodes *n, struct hw_now now, unsigned p, const struct hw_fencing_token *t)
{
	const char *name = t->node;
	hw_nodes_hear(n, now, p, t);
	if (hw_fencing_token_compare(t, &n->part[p].heard) == 0 && !is_or_was_member(n, name))
		hw_members_left(&n->members, &name, 1);
}

void hw_nodes_presence(struct hw_nodes *n, struct hw_now now, const char *node, const uint64_t claims[HW_PARTITIONS],
                       const struct hw_fencing_token known[HW_PARTITIONS])
{
	if (claims)
		hw_fence_read(&n->fence, node, claims);
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (claims && claims[p]) {
			struct hw_fencing_token t = hw_fencing_token_make(claims[p], node);
			if (t.epoch <= hw_nodes_epoch_max(n, now))
				watch(n, p, &t);
			hw_nodes_hear(n, now, p, &t);
		}
		if (known && known[p].epoch)
			hear_known(n, now, p, &known[p]);
	}
}

void hw_nodes_not_evicted(struct hw_nodes *n, struct hw_now now, const char *node)
{
	for (size_t i = 0; i < HW_PEERS_MAX; i++) {
		struct hw_peer *peer = hw_fence_blocker(&n->fence, i);
		if (peer && strcmp(peer->node, node) == 0 && peer->refused.ns == INT64_MIN)
			peer->refused = now.mono;
	}
}

/* --- this node ------------------------------------------------------------------------------------------------ */

void hw_nodes_ready(struct hw_nodes *n, struct hw_now now, bool ready)
{
	if (ready != n->ready)
		n->renew_next = now.mono;
	n->ready = ready;
}

void hw_nodes_unable(struct hw_nodes *n, const struct hw_partitions *set)
{
	if (memcmp(&n->unable, set, sizeof(*set)) == 0)
		return;
	n->unable = *set;
	hw_nodes_choose(n);
}

void hw_nodes_blind(struct hw_nodes *n, struct hw_now now, bool blind)
{
	if (blind && !n->blind)
		n->blind_since = now.mono;
	n->saw |= !blind;
	n->gave_up &= blind;
	n->blind = blind;
}

void hw_nodes_flushed(struct hw_nodes *n, struct hw_now now, unsigned p, bool clean)
{
	(void)now;
	if (n->part[p].hold != HW_HOLD_DRAINING)
		return;
	n->part[p].hold = HW_HOLD_WITHDRAWN;
	n->part[p].settled = clean && n->fence.session ? n->fence.begun : UINT64_MAX;
	hw_fence_claim(&n->fence, p, 0);
}

void hw_nodes_stop(struct hw_nodes *n, struct hw_now now)
{
	n->stopping = true;
	n->renew_next = now.mono;
}

void hw_nodes_abandon(struct hw_nodes *n, struct hw_now now)
{
	n->abandoned = true;
	n->renew_next = now.mono;
	hw_nodes_drop_all(n);
}

/* --- queries -------------------------------------------------------------------------------------------------- */

bool hw_nodes_owns(const struct hw_nodes *n, unsigned p)
{
	return n->part[p].epoch != 0 && !hw_partitions_has(&n->won, p);
}

bool hw_nodes_is_authoritative(const struct hw_nodes *n, unsigned p)
{
	return n->part[p].hold == HW_HOLD_OWNED && !hw_partitions_has(&n->won, p);
}

bool hw_nodes_publishes(const struct hw_nodes *n, unsigned p)
{
	return hw_nodes_owns(n, p) && hw_fence_passes(&n->fence, p);
}

/* Returns the partitions whose statuses may be published: those for which the conditions of fence.h hold, and for which
 * HW_NODES_OWN was returned. Ownership is not checked, because the fence passes only partitions that this node claims,
 * and this node claims only partitions that Redis has given to it. */
struct hw_partitions hw_nodes_publishing(const struct hw_nodes *n)
{
	struct hw_partitions set = hw_fence_passing(&n->fence);
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
		set.bits[k] &= ~n->won.bits[k];
	return set;
}

bool hw_nodes_connects(const struct hw_nodes *n, struct hw_now now)
{
	return n->connects || (!n->redis_ever && now.mono.ns - n->started.ns >= HW_ALONE_AFTER_MS * HW_NS_PER_MS);
}

const struct hw_record *hw_nodes_record(const struct hw_nodes *n, unsigned p)
{
	return &n->part[p].stored;
}

const struct hw_fencing_token *hw_nodes_given(const struct hw_nodes *n, unsigned p)
{
	return &n->part[p].given;
}

const uint64_t *hw_nodes_claims(const struct hw_nodes *n)
{
	return n->fence.claims;
}

void hw_nodes_known(const struct hw_nodes *n, struct hw_fencing_token known[HW_PARTITIONS])
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		known[p] = n->part[p].heard;
}

bool hw_nodes_recalled(const struct hw_nodes *n)
{
	return hw_fence_recalled(&n->fence);
}

const struct hw_members *hw_nodes_members(const struct hw_nodes *n)
{
	return &n->members;
}

bool hw_nodes_is_denied(const struct hw_nodes *n)
{
	return n->denied;
}

bool hw_nodes_is_member(const struct hw_nodes *n)
{
	return n->member;
}

const char *hw_nodes_preferred_owner(const struct hw_nodes *n, unsigned p)
{
	return n->preferred[p];
}

const struct hw_nodes_stats *hw_nodes_stats(const struct hw_nodes *n)
{
	return &n->stats;
}
