/* SPDX-License-Identifier: MIT */
/* The orders: one per call, losses first. */
#include "nodes/nodes_priv.h"

/* --- orders to the gate --------------------------------------------------------------------------------------- */

static bool take_set(struct hw_partitions *from, enum hw_nodes_kind kind, struct hw_nodes_order *out)
{
	if (!hw_partitions_any(from))
		return false;
	out->kind = kind;
	out->set = *from;
	*from = (struct hw_partitions){{0}};
	return true;
}

static bool take_won(struct hw_nodes *n, struct hw_nodes_order *out)
{
	if (!take_set(&n->won, HW_NODES_OWN, out))
		return false;
	out->clean = n->won_clean;
	out->last = n->last;
	n->won_clean = (struct hw_partitions){{0}};
	return true;
}

static bool take_flag(bool *flag, enum hw_nodes_kind kind, struct hw_nodes_order *out)
{
	if (!*flag)
		return false;
	*flag = false;
	out->kind = kind;
	return true;
}

static bool report_gate(struct hw_nodes *n, struct hw_nodes_order *out)
{
	return take_set(&n->lost, HW_NODES_LOSE, out) || take_won(n, out) || take_set(&n->drain, HW_NODES_DRAIN, out) ||
	       take_set(&n->resume, HW_NODES_RESUME, out) || take_flag(&n->report_namesake, HW_NODES_NAMESAKE, out);
}

/* --- orders to the broker ------------------------------------------------------------------------------------- */

/* Whether to evict a peer with a lesser claim. A member that runs is not evicted: it reads this node's greater token
 * and withdraws its claim by itself. */
static bool is_to_be_evicted(const struct hw_nodes *n, struct hw_now now, const struct hw_peer *peer)
{
	const struct hw_member *m = hw_members_find(&n->members, peer->node);
	bool lives = m && !hw_member_is_silent(&n->members, m);
	if (peer->refused.ns != INT64_MIN)
		return false;
	if (peer->evicted.ns != INT64_MIN)
		return now.mono.ns - peer->evicted.ns >= HW_EVICT_AGAIN_MS * HW_NS_PER_MS;
	return !lives || now.mono.ns - peer->since.ns >= HW_WITHDRAWAL_MS * HW_NS_PER_MS;
}

static bool evict(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out)
{
	for (size_t i = 0; n->fence.session && i < HW_PEERS_MAX; i++) {
		struct hw_peer *peer = hw_fence_blocker(&n->fence, i);
		if (!peer)
			continue;
		if (peer->refused.ns != INT64_MIN && now.mono.ns - peer->refused.ns >= n->outwait_ns)
			hw_fence_peer_closed(&n->fence, i);
		if (!is_to_be_evicted(n, now, peer))
			continue;
		peer->evicted = now.mono;
		out->kind = HW_NODES_EVICT;
		memcpy(out->node, peer->node, sizeof(out->node));
		n->stats.evictions++;
		return true;
	}
	return false;
}

static bool ask_broker(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out)
{
	if (hw_fence_must_publish(&n->fence)) {
		out->kind = HW_NODES_PRESENCE;
		out->serial = hw_fence_publish(&n->fence);
		return true;
	}
	if (hw_fence_ask_barrier(&n->fence, now.mono)) {
		out->kind = HW_NODES_BARRIER;
		return true;
	}
	return evict(n, now, out);
}

/* --- the next order ------------------------------------------------------------------------------------------- */

static bool ask_redis(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out)
{
	return hw_nodes_ask_claim(n, now, out) || hw_nodes_ask_release(n, now, out) ||
	       hw_nodes_ask_removal(n, now, out) || hw_nodes_ask_renewal(n, now, out);
}

static bool end_stop(struct hw_nodes *n, struct hw_nodes_order *out)
{
	if (!n->stopping || !n->left || n->stopped)
		return false;
	n->stopped = true;
	out->kind = HW_NODES_STOPPED;
	return true;
}

bool hw_nodes_next(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out)
{
	*out = (struct hw_nodes_order){0};
	hw_nodes_hand_over(n, now);
	return report_gate(n, out) || ask_broker(n, now, out) || ask_redis(n, now, out) ||
	       take_flag(&n->attend, HW_NODES_ATTEND, out) || end_stop(n, out);
}

static bool is_in_motion(const struct hw_nodes *n)
{
	if (n->pace_waits || n->fence.proof != HW_PROOF_NONE)
		return true;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (n->fence.before[p] || n->part[p].hold > HW_HOLD_OWNED || (n->blind && n->part[p].epoch))
			return true;
	return false;
}

/* Returns when to check again. When work is under way, its progress is checked fifty times in a lease. All other
 * work waits for the next renewal. */
struct hw_mono hw_nodes_due(const struct hw_nodes *n, struct hw_now now)
{
	struct hw_mono at = hw_mono_add(now.mono, n->lease_ns);
	if (n->redis && !n->stopped && !n->asked[HW_ASK_RENEWAL].out && n->renew_next.ns < at.ns)
		at = n->renew_next;
	if (is_in_motion(n) && at.ns > now.mono.ns + n->lease_ns / 50)
		at = hw_mono_add(now.mono, n->lease_ns / 50);
	return at;
}
