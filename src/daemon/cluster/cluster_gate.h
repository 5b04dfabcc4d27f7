/* SPDX-License-Identifier: MIT */
/*
 * The partitions that this node owns, and those for which it is authoritative. src/nodes orders this, and the core's
 * roles follow.
 *
 * This node owns a partition from the moment at which it is won. It becomes authoritative when it has followed the
 * stream to the end that the claim's answer named, and the store is not being read again.
 *
 * When a partition is lost, its unwritten transitions are withdrawn (hw_monitor_withdraw()). Then the whole store is
 * read again, because the stream may never mention those devices again.
 */
#ifndef HW_CLUSTER_GATE_H
#define HW_CLUSTER_GATE_H

#include "heartwheel/registry.h"
#include "nodes/nodes.h"

struct hw_app;

struct hw_cluster_gate {
	struct hw_partitions waits; /* owned partitions that become authoritative when the stream is followed to
	                             * `last` */
	struct hw_partitions
		compare; /* the partitions of `waits` in which the last owner may have left pending writes */
	struct hw_partitions drained; /* being handed over, and not settled yet */
	struct hw_stream_id last;
	uint64_t won_pages;         /* pages of the stream that were read at the claim */
	struct hw_mono won_at;      /* the time at which the first of `waits` was won */
	struct hw_mono settle_next; /* time of the next check for settled partitions */
	struct hw_mono blind_since; /* since when this node is blind or a group is deaf, after loading; 0: neither */

	struct hw_ref *refused; /* owned; refused devices in partitions that src/nodes has lost, but the core has not
	                         * lost yet */
	size_t n_refused, cap_refused;
	/* Lost partitions whose pending writes are being withdrawn. Until this is done, the store is not read again,
	 * and nothing of these partitions is written. */
	struct hw_partitions withdrawing;
	uint32_t withdraw_at, withdraw_left; /* the next record; the number of records still to check */

	uint32_t pending_store[HW_PARTITIONS], pending_status[HW_PARTITIONS]; /* numbers of devices */
};

/* Executes the orders OWN, LOSE, DRAIN and RESUME. */
void hw_app_cluster_role(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o);
/* Called before RELEASE is sent. If a write has become pending since a partition was settled, another node must send
 * it, so the partition is not released as clean. */
void hw_app_cluster_released(struct hw_app *a, struct hw_now now, struct hw_nodes_order *o);
/* Called when the event stream has a gap. The stream may then never reach the offset that a claim's answer named, so
 * this node stops waiting for that offset. The caller reads the store again, and the store is newer. */
void hw_app_cluster_gap(struct hw_app *a);
/* Called each second. If the end of the stream was reached several times since the claim, but not the claim's
 * offset, the stream was trimmed, or the offset is of another Redis. The whole store is then read again. */
void hw_app_cluster_gate_tick(struct hw_app *a);
/* Called when claims use a new connection, which may reach another Redis. If an offset came over the old connection,
 * the stream may never reach it. */
void hw_app_cluster_retry_claims(struct hw_app *a);
/* Called once a turn, before the orders are taken. Reports to src/nodes which partitions are followed or drained, and
 * whether this node is blind or ready. */
void hw_app_cluster_gate(struct hw_app *a, struct hw_now now);
void hw_app_cluster_gate_free(struct hw_app *a);

/* Whether transitions of any partition are still being withdrawn. */
bool hw_app_cluster_withdraws_any(const struct hw_app *a);

#endif
