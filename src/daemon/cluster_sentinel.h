/* SPDX-License-Identifier: MIT */
/*
 * Several nodes, and a Redis that Sentinels watch. If the network is split, the old master and the new one both take
 * writes for a while, and on either side the other side's nodes fall silent: each would claim what the other owns,
 * again and again. So a node claims only while more than half of the Sentinels say that its Redis is the master. A node
 * whose Sentinels do not say so keeps what it owns, until another node's greater claim is read at the broker.
 */
#ifndef HW_CLUSTER_SENTINEL_H
#define HW_CLUSTER_SENTINEL_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/time.h"

struct hw_app;
struct hw_voices;

struct hw_cluster_sentinel {
	struct hw_voices *voices; /* NULL: no Sentinels are configured */
	struct hw_mono confirmed; /* more than half of them confirmed the master then, or this node began */
	bool doubts;              /* that was long ago, and the log has said so */
	int64_t to_write, lag_s;  /* min-replicas-to-write and -max-lag of the master; -1: not known */
	bool asked, checked;      /* for these; they were compared with what Sentinels say */
};

/* 0 or -ENOMEM. After the link to Redis is made; and before it goes. */
int hw_app_cluster_sentinel_start(struct hw_app *a);
void hw_app_cluster_sentinel_free(struct hw_app *a);
/* The link to Redis is there, perhaps to another master. */
void hw_app_cluster_sentinel_linked(struct hw_app *a);
/* Once a turn, before orders are pulled: what Sentinels confirm is passed to src/nodes. Whether this node may be ready:
 * it was confirmed lately; always without Sentinels. */
bool hw_app_cluster_confirmed(struct hw_app *a, struct hw_now now);
/* Each second: logs what has changed. */
void hw_app_cluster_sentinel_tick(struct hw_app *a);
/* How many Sentinels confirm the master, and of how many (0: none are configured). Whether too few have done so for
 * some time. */
bool hw_app_cluster_voices(const struct hw_app *a, unsigned *confirm, unsigned *all);

#endif
