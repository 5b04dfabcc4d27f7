/* SPDX-License-Identifier: MIT */
#include "nodes/fence.h"

#include <string.h>

void hw_fence_init(struct hw_fence *f, const char *node)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->node, sizeof(f->node), "%s", node);
	f->asked.ns = INT64_MIN;
}

static uint64_t bit(size_t peer)
{
	return UINT64_C(1) << peer;
}

/* Partition p no longer waits for this peer. */
static void unblock(struct hw_fence *f, unsigned p, size_t peer)
{
	if (f->before[p] & bit(peer)) {
		f->before[p] &= ~bit(peer);
		f->peer[peer].blocks--;
		if (f->proven[p] && !f->before[p])
			hw_partitions_add(&f->open, p);
	}
}

static void unprove(struct hw_fence *f, unsigned p)
{
	f->proven[p] = false;
	hw_partitions_del(&f->open, p);
	for (size_t i = 0; f->before[p] && i < HW_PEERS_MAX; i++)
		unblock(f, p, i);
}

static void begin_again(struct hw_fence *f)
{
	f->begun++;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		unprove(f, p);
	f->proof = HW_PROOF_NONE;
	f->asked.ns = INT64_MIN;
}

void hw_fence_claim(struct hw_fence *f, unsigned p, uint64_t epoch)
{
	if (f->claims[p] == epoch)
		return;
	unprove(f, p);
	f->claims[p] = epoch;
	f->stale = true;
}

void hw_fence_session(struct hw_fence *f, bool up)
{
	begin_again(f);
	f->session = up;
	f->sessions += up;
	f->confirmed = false;
	f->published = f->acked = 0;
	f->stale = true;
}

void hw_fence_reader(struct hw_fence *f, bool up)
{
	begin_again(f);
	f->reader = up;
	f->overflow = false;
	memset(f->peer, 0, sizeof(f->peer)); /* retained presences will be delivered again */
}

/* Called when a renewal was confirmed (condition 2). The renewal counts only if it was sent after this session began:
 * the answer to an earlier one may lack claims that other nodes made before the session. */
void hw_fence_confirm(struct hw_fence *f, uint64_t sessions)
{
	f->confirmed |= f->session && sessions == f->sessions;
}

bool hw_fence_must_publish(const struct hw_fence *f)
{
	return f->session && f->stale;
}

bool hw_fence_recalled(const struct hw_fence *f)
{
	return f->recalled;
}

static bool has_unproven(const struct hw_fence *f)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (f->claims[p] && !f->proven[p] && f->published_claims[p] == f->claims[p])
			return true;
	return false;
}

/* Begins a proof of condition 1 for the claims in one presence. Later claims wait for the next proof, so frequent
 * changes cannot prevent the first proof. */
static void begin_proof(struct hw_fence *f)
{
	if (f->proof != HW_PROOF_NONE || !f->session || !f->reader)
		return;
	if (!f->recalled) {
		f->proof = HW_PROOF_SEND;
		return;
	}
	if (f->published == 0 || !has_unproven(f))
		return;
	f->proof_published = f->published;
	memcpy(f->proof_claims, f->published_claims, sizeof(f->proof_claims));
	f->proof = f->acked >= f->published ? HW_PROOF_SEND : HW_PROOF_ACK;
	f->asked.ns = INT64_MIN;
}

uint64_t hw_fence_publish(struct hw_fence *f)
{
	memcpy(f->published_claims, f->claims, sizeof(f->published_claims));
	f->stale = false;
	f->published++;
	begin_proof(f);
	return f->sessions << 32 | f->published;
}

void hw_fence_acked(struct hw_fence *f, uint64_t number)
{
	if (!f->session || number >> 32 != f->sessions)
		return;
	number &= UINT32_MAX;
	f->acked = number > f->acked ? number : f->acked;
	if (f->proof == HW_PROOF_ACK && f->acked >= f->proof_published)
		f->proof = HW_PROOF_SEND;
}

bool hw_fence_ask_barrier(struct hw_fence *f, struct hw_mono now)
{
	begin_proof(f);
	if (f->proof != HW_PROOF_SEND && f->proof != HW_PROOF_BACK)
		return false;
	if (f->asked.ns != INT64_MIN && now.ns - f->asked.ns < HW_FENCE_RETRY_NS)
		return false;
	f->asked = now;
	return true;
}

void hw_fence_barrier_sent(struct hw_fence *f, uint64_t number)
{
	if (f->proof != HW_PROOF_SEND)
		return;
	f->proof_barrier = number;
	f->proof = HW_PROOF_BACK;
}

static bool claims_less(const struct hw_fence *f, const struct hw_peer *peer, unsigned p)
{
	if (peer->claims[p] == 0 || f->claims[p] == 0)
		return false;
	if (peer->claims[p] != f->claims[p])
		return peer->claims[p] < f->claims[p];
	return strcmp(peer->node, f->node) < 0;
}

/* Called when condition 1 is proven for p. By condition 4, p now waits for each peer that claims p with a lesser token
 * and whose presence was read before the barrier. */
static void prove(struct hw_fence *f, struct hw_mono now, unsigned p)
{
	f->proven[p] = true;
	for (size_t i = 0; i < HW_PEERS_MAX; i++) {
		struct hw_peer *peer = &f->peer[i];
		if (!claims_less(f, peer, p))
			continue;
		f->before[p] |= bit(i);
		if (peer->blocks++ == 0) {
			peer->since = now;
			peer->evicted.ns = peer->refused.ns = INT64_MIN;
		}
	}
	if (!f->before[p])
		hw_partitions_add(&f->open, p);
}

/* Called when the known tokens of an earlier run were read. All presences so far were published before that, so
 * their acknowledgements prove nothing. */
static void recall(struct hw_fence *f)
{
	f->recalled = f->stale = true;
	memset(f->published_claims, 0, sizeof(f->published_claims));
}

void hw_fence_barrier_back(struct hw_fence *f, struct hw_mono now, uint64_t number)
{
	if (f->proof != HW_PROOF_BACK || number < f->proof_barrier)
		return;
	f->proof = HW_PROOF_NONE;
	if (!f->recalled) {
		recall(f);
		return;
	}
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (f->claims[p] && !f->proven[p] && f->proof_claims[p] == f->claims[p])
			prove(f, now, p);
	begin_proof(f);
}

static bool is_free(const struct hw_peer *peer)
{
	return peer->node[0] == '\0';
}

static struct hw_peer *place_of(struct hw_fence *f, const char *node)
{
	struct hw_peer *room = NULL;
	for (size_t i = 0; i < HW_PEERS_MAX; i++) {
		if (strcmp(f->peer[i].node, node) == 0)
			return &f->peer[i];
		if (!room && is_free(&f->peer[i]))
			room = &f->peer[i];
	}
	return room;
}

static bool claims_any(const uint64_t claims[HW_PARTITIONS])
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (claims[p])
			return true;
	return false;
}

void hw_fence_read(struct hw_fence *f, const char *node, const uint64_t claims[HW_PARTITIONS])
{
	if (strcmp(node, f->node) == 0)
		return;
	struct hw_peer *peer = strlen(node) <= HW_NODE_ID_MAX ? place_of(f, node) : NULL;
	bool any = claims_any(claims);
	if (!peer) {
		f->overflow |= any;
		return;
	}
	if (is_free(peer) && !any)
		return;
	snprintf(peer->node, sizeof(peer->node), "%s", node);
	memcpy(peer->claims, claims, sizeof(peer->claims));
	for (unsigned p = 0; p < HW_PARTITIONS && peer->blocks; p++)
		if (!claims_less(f, peer, p))
			unblock(f, p, (size_t)(peer - f->peer));
	if (!any)
		memset(peer, 0, sizeof(*peer));
}

struct hw_peer *hw_fence_blocker(struct hw_fence *f, size_t i)
{
	return i < HW_PEERS_MAX && f->peer[i].blocks ? &f->peer[i] : NULL;
}

void hw_fence_peer_closed(struct hw_fence *f, size_t i)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		unblock(f, p, i);
}

struct hw_partitions hw_fence_passing(const struct hw_fence *f)
{
	static const struct hw_partitions none;
	return f->session && f->reader && f->confirmed && !f->overflow ? f->open : none;
}

bool hw_fence_passes(const struct hw_fence *f, unsigned p)
{
	const struct hw_partitions passing = hw_fence_passing(f);
	return hw_partitions_has(&passing, p);
}

bool hw_fence_withdrawn(const struct hw_fence *f, unsigned p)
{
	return f->claims[p] == 0 &&
	       (!f->session || (!f->stale && f->published_claims[p] == 0 && f->acked >= f->published));
}
