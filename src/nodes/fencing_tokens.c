/* SPDX-License-Identifier: MIT */
/* The tokens of this node and of other nodes, and the orders to Redis. The other files of this folder build on this
 * one. */
#include "nodes/nodes_priv.h"

struct hw_fencing_token hw_nodes_fencing_token(const struct hw_nodes *n, unsigned p)
{
	return hw_fencing_token_make(n->part[p].epoch, n->node);
}

void hw_nodes_drop(struct hw_nodes *n, unsigned p)
{
	struct hw_part *part = &n->part[p];
	part->epoch = 0;
	part->hold = HW_HOLD_NONE;
	hw_fence_claim(&n->fence, p, 0);
	hw_partitions_del(&n->won, p);
	hw_partitions_del(&n->drain, p);
	hw_partitions_del(&n->resume, p);
	hw_partitions_add(&n->lost, p);
}

void hw_nodes_drop_all(struct hw_nodes *n)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (n->part[p].epoch)
			hw_nodes_drop(n, p);
}

uint64_t hw_nodes_redis_s(const struct hw_nodes *n, struct hw_now now)
{
	return n->redis_at.ns == INT64_MIN ? 0 : n->redis_s + (uint64_t)((now.mono.ns - n->redis_at.ns) / HW_NS_PER_S);
}

uint64_t hw_nodes_epoch_max(const struct hw_nodes *n, struct hw_now now)
{
	return n->redis_at.ns == INT64_MIN ? UINT64_MAX : hw_nodes_redis_s(n, now) + HW_EPOCH_AHEAD_S;
}

void hw_nodes_hear(struct hw_nodes *n, struct hw_now now, unsigned p, const struct hw_fencing_token *t)
{
	struct hw_part *part = &n->part[p];
	if (hw_fencing_token_compare(t, &part->heard) <= 0)
		return;
	if (t->epoch > hw_nodes_epoch_max(n, now)) {
		n->stats.impossible++;
		return;
	}
	part->heard = *t;
	/* This node has lost p if `heard` is greater than its token: when the node claimed p, its token was the
	 * greatest known one. */
	if (part->epoch) {
		n->stats.lost++;
		hw_nodes_drop(n, p);
	}
}

int64_t hw_nodes_silent_ns(const struct hw_nodes *n, struct hw_now now)
{
	return n->renewed.ns == INT64_MIN ? INT64_MAX : now.mono.ns - n->renewed.ns;
}

bool hw_nodes_lapsed(const struct hw_nodes *n, struct hw_now now)
{
	return n->doubted || hw_nodes_silent_ns(n, now) >= n->lease_ns * 3 / 5;
}

void hw_nodes_ask(struct hw_nodes *n, struct hw_now now, enum hw_ask ask, struct hw_nodes_order *out)
{
	out->serial = ++n->serials;
	n->asked[ask] = (struct hw_asked){.out = true,
	                                  .kind = out->kind,
	                                  .serial = out->serial,
	                                  .at = now.mono,
	                                  .sessions = n->fence.sessions,
	                                  .begun = n->fence.begun};
	if (!n->fence.session)
		n->asked[ask].sessions = n->asked[ask].begun = UINT64_MAX; /* no session */
}
