/* SPDX-License-Identifier: MIT */
/*
 * Several nodes whose Redis is watched by Sentinels. After a network split, the old and the new master both accept
 * writes for a while. On each side, the nodes of the other side seem silent, so each node would claim the partitions of
 * the others again and again. To prevent this, a node claims only while more than half of the Sentinels confirm that
 * its Redis is the master. Without a confirmation, a node keeps its partitions until it reads at the broker that
 * another node claims them with a greater token.
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
	/* When more than half of the Sentinels last confirmed the master; initially the start of this node. */
	struct hw_mono confirmed;
	bool doubts;             /* `confirmed` is too long ago, and this was logged */
	int64_t to_write, lag_s; /* the master's min-replicas-to-write and min-replicas-max-lag; -1: unknown */
	bool asked, checked;     /* asked: to_write and lag_s were read. checked: they were compared with the
	                          * settings of the Sentinels */
};

/* Returns 0 or -ENOMEM. Called after the connection to Redis is created. Must be freed before that connection. */
int hw_app_cluster_sentinel_start(struct hw_app *a);
void hw_app_cluster_sentinel_free(struct hw_app *a);
/* The link to Redis is up, perhaps to another master. */
void hw_app_cluster_sentinel_linked(struct hw_app *a);
/* Called once a turn, before orders are taken. Reports to src/nodes whether the Sentinels confirm the master.
 * Returns whether this node may be ready: the Sentinels have confirmed the master recently, or none are configured. */
bool hw_app_cluster_confirmed(struct hw_app *a, struct hw_now now);
/* Each second: logs changes. */
void hw_app_cluster_sentinel_tick(struct hw_app *a);
/* Returns how many Sentinels confirm the master and how many are configured (0: none), and whether too few have
 * confirmed it for some time. */
bool hw_app_cluster_voices(const struct hw_app *a, unsigned *confirm, unsigned *all);

#endif
