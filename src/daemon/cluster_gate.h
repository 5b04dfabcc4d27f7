/* SPDX-License-Identifier: MIT */
/*
 * What this node owns and decides about: the core's roles, as src/nodes orders them.
 *
 * What is won is owned at once, and decided about once the stream has been followed to where it ended at the claim and
 * nothing of the store is being read again. What is lost takes back what was said of it and not written: such a word is
 * unsaid, and all of the store is read again, since the stream may never speak of that device again.
 */
#ifndef HW_CLUSTER_GATE_H
#define HW_CLUSTER_GATE_H

#include "heartwheel/registry.h"
#include "nodes/nodes.h"

struct hw_app;

struct hw_cluster_gate {
	struct hw_partitions waits;   /* owned, and not decided about before the stream is followed to `last` */
	struct hw_partitions compare; /* ... of these, those whose last owner may have owed something */
	struct hw_partitions drained; /* on their way to another node, and not settled yet */
	struct hw_event_id last;
	uint64_t won_pages;         /* pages of the stream that were read by then */
	struct hw_mono won_at;      /* the first of `waits` was won then */
	struct hw_mono settle_next; /* what is settled is looked at then */

	struct hw_ref
		*unsaid; /* owned: words of a partition that src/nodes has lost and the core still decides about */
	size_t n_unsaid, cap_unsaid;
	struct hw_partitions unsaying; /* lost, and what was owed of them to the store is being unsaid: it is not read
	                                  again, and nothing of them is written, before that is done */
	uint32_t unsay_at, unsay_left; /* the next record, and how many are still to be looked at */

	uint32_t pending_store[HW_PARTITIONS], pending_status[HW_PARTITIONS]; /* devices */
};

/* OWN, LOSE, DRAIN, RESUME. */
void hw_app_cluster_role(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o);
/* RELEASE is about to be sent. What has come to be owed since its partitions were settled is another node's to send:
 * they are not clean. */
void hw_app_cluster_released(struct hw_app *a, struct hw_now now, struct hw_nodes_order *o);
/* The stream has a gap, and may end before the place that it was to be followed to: what is read again instead covers
 * it. */
void hw_app_cluster_gap(struct hw_app *a);
/* Each second: the end of the stream was reached again and again since the claim, and the claim's place was not on the
 * way. The stream has lost it before anything of it was read, or it was another Redis': all is read again instead. */
void hw_app_cluster_gate_tick(struct hw_app *a);
/* Claims are asked for over a new connection from now on, perhaps of another Redis: the place that an answer over the
 * old one named may never come in the stream. */
void hw_app_cluster_asks_anew(struct hw_app *a);
/* Once a turn, before orders are pulled: what is followed, drained or seen by now is said to src/nodes. */
void hw_app_cluster_gate(struct hw_app *a, struct hw_now now);
void hw_app_cluster_gate_free(struct hw_app *a);

/* A word of ours about this device was not written, and will not be: another node owns it. */
void hw_app_cluster_unsay(struct hw_app *a, struct hw_ref device);
/* Whether words of ours about devices of this partition, or of any, are still being taken back. */
bool hw_app_cluster_unsays(const struct hw_app *a, unsigned partition);
bool hw_app_cluster_unsays_any(const struct hw_app *a);
/* Something is owed to the store of this device, and was not; or the other way round. */
void hw_app_cluster_pending(struct hw_app *a, const struct hw_device *d, bool pending);

#endif
