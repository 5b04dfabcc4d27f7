/* SPDX-License-Identifier: MIT */
/* Ownership: the preferred owners, claims, handovers and releases. */
#include "nodes/nodes_priv.h"
#include "nodes/place.h"

/* --- preferred owners ------------------------------------------------------------------------------------------- */

/* Whether another member may be a preferred owner. This node itself is always a candidate: while this node is not
 * ready, it claims nothing anyway, and a short blindness must not cause handovers. */
static bool is_candidate(const struct hw_nodes *n, const struct hw_member *m)
{
	return m->ready && strcmp(m->node, n->node) != 0;
}

static uint64_t candidates(const struct hw_nodes *n)
{
	uint64_t h = 1 + hw_xxh64(&n->unable, sizeof(n->unable));
	for (size_t i = 0; i < n->members.n; i++) {
		const struct hw_member *m = &n->members.all[i];
		if (is_candidate(n, m)) /* in any order */
			h += hw_xxh64(m->node, strlen(m->node)) ^ 3 * hw_xxh64(&m->unable, sizeof(m->unable));
	}
	return h;
}

/* Returns the partition by which p is weighed. A standby owns all partitions or none, so all have the weight of
 * partition 0. */
static unsigned weighed(const struct hw_nodes *n, unsigned p)
{
	return n->mode == HW_NODES_STANDBY ? 0 : p;
}

static bool is_able(const struct hw_nodes *n, const struct hw_partitions *unable, unsigned p)
{
	return n->mode == HW_NODES_STANDBY ? !hw_partitions_any(unable) : !hw_partitions_has(unable, p);
}

/* Chooses the preferred owner of p. A node that can judge every device of p is preferred to a node that cannot; then
 * the greater weight decides. */
static const char *choose(const struct hw_nodes *n, unsigned p)
{
	const char *best = n->node;
	bool able = is_able(n, &n->unable, p);
	uint64_t most = hw_partition_weight(weighed(n, p), best);
	for (size_t i = 0; i < n->members.n; i++) {
		const struct hw_member *m = &n->members.all[i];
		bool is = is_able(n, &m->unable, p);
		if (!is_candidate(n, m) || (able && !is))
			continue;
		uint64_t weight = hw_partition_weight(weighed(n, p), m->node);
		if ((is && !able) || weight > most || (weight == most && strcmp(m->node, best) > 0)) {
			most = weight;
			best = m->node;
			able = is;
		}
	}
	return best;
}

void hw_nodes_choose(struct hw_nodes *n)
{
	uint64_t of = candidates(n);
	if (of == n->preferred_of)
		return;
	n->preferred_of = of;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		snprintf(n->preferred[p], sizeof(n->preferred[p]), "%s", choose(n, p));
}

static bool wants_us(const struct hw_nodes *n, unsigned p)
{
	return strcmp(n->preferred[p], n->node) == 0;
}

/* --- claims --------------------------------------------------------------------------------------------------- */

static bool is_absent(const struct hw_record *r)
{
	return r->token.epoch == 0;
}

/*
 * Whether this node may claim p. If the record is absent, or less than a token that was read, Redis was flushed or
 * failed over. Then p can be claimed only after a lease, because the owner of p stores its token again with its next
 * renewal.
 */
static bool is_claimable(const struct hw_nodes *n, struct hw_now now, unsigned p)
{
	const struct hw_part *part = &n->part[p];
	const struct hw_record *r = &part->stored;
	if (part->epoch || !wants_us(n, p))
		return false;
	if (!is_absent(r) && !r->released && strcmp(r->token.node, n->node) != 0 &&
	    hw_members_find(&n->members, r->token.node))
		return false;
	bool behind = is_absent(r) || hw_fencing_token_is_less(&r->token, &part->heard);
	return !behind || now.mono.ns - part->since.ns >= n->lease_ns;
}

/* Returns the epoch of a new claim: one more than the greatest known epoch, and at least the time of Redis' clock in
 * seconds. */
static uint64_t next_epoch(const struct hw_nodes *n, struct hw_now now)
{
	uint64_t epoch = hw_nodes_redis_s(n, now);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (n->part[p].heard.epoch >= epoch)
			epoch = n->part[p].heard.epoch + 1;
	return epoch;
}

static void claimable(const struct hw_nodes *n, struct hw_now now, struct hw_partitions *set)
{
	bool whole = true;
	*set = (struct hw_partitions){{0}};
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (is_claimable(n, now, p))
			hw_partitions_add(set, p);
		else if (!n->part[p].epoch)
			whole = false;
	}
	if (n->mode == HW_NODES_STANDBY && !whole)
		*set = (struct hw_partitions){{0}}; /* all or nothing */
}

/*
 * Whether a claim of p is clean: no earlier owner has left pending writes.
 *
 * Condition 1: the last owner has released p as clean. Condition 2: this node has read that owner's claim in a
 * presence, and has missed no message since. So the broker still has the statuses that it acknowledged before the owner
 * withdrew, and this node has received any will that replaced one of them later. An owner's record in Redis proves less
 * than the presence, because a release may reach Redis late.
 */
static bool is_clean(const struct hw_nodes *n, unsigned p)
{
	const struct hw_part *part = &n->part[p];
	return part->stored.released && part->stored.clean && n->fence.session && n->fence.reader &&
	       part->watched_in == n->fence.begun && hw_fencing_token_compare(&part->watched, &part->stored.token) == 0;
}

/* Whether this node may claim anything. A node that gave its partitions up while it was blind may not, until the
 * blindness is over. */
static bool may_take(const struct hw_nodes *n)
{
	return n->ready && !n->gave_up && !n->stopping;
}

bool hw_nodes_ask_claim(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out)
{
	if (!n->redis || !n->member || !may_take(n) || n->asked[HW_ASK_CLAIM].out || n->asked[HW_ASK_RELEASE].out ||
	    n->members.answered.ns == INT64_MIN || hw_nodes_lapsed(n, now))
		return false;
	uint64_t epoch = next_epoch(n, now);
	if (epoch > hw_nodes_epoch_max(n, now)) /* until Redis' clock has advanced */
		return false;
	claimable(n, now, &out->set);
	if (!hw_partitions_any(&out->set))
		return false;
	out->kind = HW_NODES_CLAIM;
	out->run = n->run;
	out->epoch = epoch;
	n->stats.claims += hw_partitions_count(&out->set);
	hw_nodes_ask(n, now, HW_ASK_CLAIM, out);
	n->asked[HW_ASK_CLAIM].epoch = out->epoch;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (hw_partitions_has(&out->set, p) && is_clean(n, p))
			hw_partitions_add(&n->asked[HW_ASK_CLAIM].clean, p);
	return true;
}

/* Called when this node has won partitions, which it owns now. But if a greater token was read meanwhile, the partition
 * is released, because Redis has this node's name for a partition that the node does not own. */
void hw_nodes_claimed(struct hw_nodes *n, const struct hw_asked *asked, const struct hw_nodes_answer *a)
{
	struct hw_fencing_token token = hw_fencing_token_make(asked->epoch, n->node);
	bool same = n->fence.session && n->fence.begun == asked->begun;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		struct hw_part *part = &n->part[p];
		if (!hw_partitions_has(&a->won, p) || n->abandoned)
			continue;
		if (hw_fencing_token_compare(&part->heard, &token) != 0) {
			n->stats.claims_lost++;
			continue;
		}
		part->epoch = asked->epoch;
		part->hold = HW_HOLD_OWNED;
		hw_fence_claim(&n->fence, p, part->epoch);
		hw_partitions_add(&n->won, p);
		if (n->mode == HW_NODES_STANDBY) {
			n->saw = false;
			n->blind_since = asked->at;
		}
		if (same && hw_partitions_has(&asked->clean, p))
			hw_partitions_add(&n->won_clean, p);
	}
	n->last = a->last;
}

/* --- handover ------------------------------------------------------------------------------------------------- */

static bool has_pace(struct hw_nodes *n, struct hw_now now)
{
	if (n->mode == HW_NODES_STANDBY || n->stopping)
		return true;
	if (now.mono.ns - n->pace_from.ns >= HW_NS_PER_S) {
		n->pace_from = now.mono;
		n->paced = 0;
	}
	n->pace_waits |= n->paced >= HW_HANDOVERS_A_SECOND;
	return n->paced < HW_HANDOVERS_A_SECOND;
}

static bool goes_elsewhere(const struct hw_nodes *n, struct hw_now now, unsigned p)
{
	const struct hw_member *m;
	if (n->stopping)
		return true;
	if (wants_us(n, p) || !n->redis || n->denied || now.mono.ns < n->part[p].not_before.ns ||
	    hw_nodes_lapsed(n, now))
		return false;
	m = hw_members_find(&n->members, n->preferred[p]);
	return m && hw_member_is_settled(m);
}

static void drain(struct hw_nodes *n, struct hw_now now, unsigned p)
{
	n->part[p].hold = HW_HOLD_DRAINING;
	n->part[p].drained = now.mono;
	n->paced++;
	hw_partitions_add(&n->drain, p);
}

/* Ends the handover of p, which stays with this node. If the claim of p was withdrawn, it must be proven again. */
static void resume(struct hw_nodes *n, struct hw_now now, unsigned p)
{
	struct hw_part *part = &n->part[p];
	part->hold = HW_HOLD_OWNED;
	part->not_before = hw_mono_add(now.mono, HW_HANDOVER_BOUND_MS * HW_NS_PER_MS);
	hw_fence_claim(&n->fence, p, part->epoch);
	hw_partitions_del(&n->drain, p);
	hw_partitions_add(&n->resume, p);
	n->stats.resumed++;
}

static bool is_overdue(const struct hw_part *part, struct hw_now now)
{
	return now.mono.ns - part->drained.ns >= HW_HANDOVER_BOUND_MS * HW_NS_PER_MS;
}

/* Returns for how long an owner may be blind before it gives the fleet up. A standby subscribes only after its claim,
 * so it gets more time at first. */
static int64_t patience_ns(const struct hw_nodes *n)
{
	int64_t begin_ns = HW_BEGIN_LEASES * n->lease_ns, least_ns = HW_BEGIN_LEAST_MS * HW_NS_PER_MS;
	if (n->mode != HW_NODES_STANDBY || n->saw)
		return n->lease_ns;
	return begin_ns > least_ns ? begin_ns : least_ns;
}

/*
 * Gives the partitions of a blind node up, with all pending writes, if the node is blind for a lease while another node
 * is ready.
 *
 * A standby subscribes only when it owns the fleet, and is then blind until its grace is over. This time does not
 * count: otherwise two standbys would pass the fleet to each other for ever. A standby also keeps the fleet if the
 * other node became ready only a moment ago: after an outage of the broker, the owner may see soon.
 */
static void let_go(struct hw_nodes *n, struct hw_now now)
{
	bool other = false;
	if (!n->blind || !n->redis || n->doubted || now.mono.ns - n->blind_since.ns < patience_ns(n))
		return;
	for (size_t i = 0; i < n->members.n; i++)
		other |= is_candidate(n, &n->members.all[i]) &&
		         (n->mode != HW_NODES_STANDBY || hw_member_is_settled(&n->members.all[i]));
	if (!other)
		return;
	n->gave_up = true;
	hw_nodes_drop_all(n); /* the records left with this node's name are released */
}

/* Whether p goes to another node because Redis denies this node the right to write. True if the right was missing
 * for a lease, and p's preferred owner is settled and able. Pending writes cannot be confirmed, so there is no
 * handover. */
static bool is_given_away(const struct hw_nodes *n, struct hw_now now, unsigned p)
{
	if (now.mono.ns - n->denied_since.ns < n->lease_ns || wants_us(n, p) || !n->redis || hw_nodes_lapsed(n, now))
		return false;
	const struct hw_member *m = hw_members_find(&n->members, n->preferred[p]);
	return m && hw_member_is_settled(m) && is_able(n, &m->unable, p);
}

/* Gives these partitions away. Their records, which still have this node's name, are then released. */
static void give_away(struct hw_nodes *n, struct hw_now now)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (n->part[p].epoch && is_given_away(n, now, p))
			hw_nodes_drop(n, p);
}

void hw_nodes_hand_over(struct hw_nodes *n, struct hw_now now)
{
	let_go(n, now);
	if (n->denied && !n->stopping)
		give_away(n, now);
	n->pace_waits = false;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		struct hw_part *part = &n->part[p];
		if (part->hold == HW_HOLD_NONE)
			continue;
		if (part->hold == HW_HOLD_OWNED) {
			if (goes_elsewhere(n, now, p) && has_pace(n, now))
				drain(n, now, p);
		} else if (!n->stopping && (wants_us(n, p) || is_overdue(part, now))) {
			resume(n, now, p);
		}
	}
}

/* --- releases ------------------------------------------------------------------------------------------------- */

/* Whether p is flushed, and no presence of this node claims p any more. */
static bool is_given_up(const struct hw_nodes *n, unsigned p)
{
	return n->part[p].hold == HW_HOLD_WITHDRAWN && hw_fence_withdrawn(&n->fence, p);
}

/* Whether Redis has this node's name for a partition that this node does not own. Redis has such a name after a failed
 * claim, after a blindness, and if Redis has lost its newest writes. Other nodes can claim the partition only after
 * this node has released it. */
static bool is_left_over(const struct hw_nodes *n, unsigned p)
{
	const struct hw_part *part = &n->part[p];
	return !part->epoch && !is_absent(&part->stored) && !part->stored.released &&
	       strcmp(part->stored.token.node, n->node) == 0 && (!wants_us(n, p) || !may_take(n));
}

/* Whether this node may release partitions now. A standby releases all partitions together, because no node claims only
 * a part of them. A node that stops releases each partition that it can. */
static bool may_release(const struct hw_nodes *n)
{
	for (unsigned p = 0; p < HW_PARTITIONS && n->mode == HW_NODES_STANDBY && !n->stopping; p++)
		if (n->part[p].hold != HW_HOLD_NONE && !is_given_up(n, p))
			return false;
	return true;
}

/* Collects the partitions to release. A release is clean unless the session in which the statuses were acknowledged
 * is over, or messages were missed since. The broker may then have restarted, and may have lost statuses or replaced
 * them by wills. */
static void collect_given_up(struct hw_nodes *n, struct hw_partitions *set, struct hw_partitions *clean)
{
	if (!may_release(n))
		return;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (!is_given_up(n, p))
			continue;
		n->part[p].given = hw_nodes_fencing_token(n, p);
		if (n->fence.session && n->part[p].settled == n->fence.begun)
			hw_partitions_add(clean, p);
		n->part[p].epoch = 0;
		n->part[p].hold = HW_HOLD_NONE;
		hw_partitions_add(set, p);
	}
}

static void collect_left_over(struct hw_nodes *n, struct hw_partitions *set)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		if (!is_left_over(n, p))
			continue;
		n->part[p].given = n->part[p].stored.token;
		hw_partitions_add(set, p);
	}
}

bool hw_nodes_ask_release(struct hw_nodes *n, struct hw_now now, struct hw_nodes_order *out)
{
	if (!n->redis || n->asked[HW_ASK_RELEASE].out || n->asked[HW_ASK_CLAIM].out ||
	    n->members.answered.ns == INT64_MIN)
		return false;
	collect_given_up(n, &out->set, &out->clean);
	if (!hw_partitions_any(&out->set) && n->member)
		collect_left_over(n, &out->set);
	if (!hw_partitions_any(&out->set))
		return false;
	out->kind = HW_NODES_RELEASE;
	n->stats.released += hw_partitions_count(&out->set);
	hw_nodes_ask(n, now, HW_ASK_RELEASE, out);
	return true;
}
