/* SPDX-License-Identifier: MIT */
/* What is shown of the cluster: the nodes, their states, and the partitions that each node owns. Built on request. */
#ifndef HW_CLUSTER_VIEW_H
#define HW_CLUSTER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster.h"
#include "heartwheel/bounds.h"
#include "heartwheel/registry.h"
#include "heartwheel/time.h"
#include "nodes/nodes.h"
#include "redis/cluster.h"

#define HW_CLUSTER_LOST_MAX 8                  /* lost nodes that are remembered */
#define HW_CLUSTER_JSON     HW_BOUNDS_JSON_MAX /* bytes of a node's own entry at most, with the NUL */
#define HW_CLUSTER_PROTOCOL 1

#define HW_CLUSTER_CLIENT_ID 160 /* bytes of a publisher's client id at most, with the NUL */

struct hw_app;

/* A present or former node, as the view remembers it. */
struct hw_cluster_was {
	char node[HW_NODE_ID_MAX + 1];
	char *json; /* owned; NULL: unknown */
	int64_t since_ms;
	bool lost, there;
	bool leaves; /* the node announced its clean stop */
};

struct hw_cluster_seen {
	struct hw_cluster_was at[HW_MEMBERS_MAX + HW_CLUSTER_LOST_MAX];
	size_t n;
	uint64_t takeovers_clean, takeovers_unclean, fenced_broker;
	double takeover_s_last;
	struct hw_partitions unowned,
		/* unowned: the partitions that no member owned at the last tick; orphans: at the last two ticks */
		orphans;
	struct hw_cluster_totals before; /* counters of the previous daemons in the same process */
};

void hw_app_cluster_view_free(struct hw_app *a);

/*
 * These functions log the changes of the cluster and store them for the view.
 *
 * asks: an order is sent to Redis. saw: its answer was read. won, lost: partitions; `unclean`: the last owner may have
 * left pending writes. became_authoritative: this node decides for all that it won, `after_ns` after the claim. leaves:
 * a node has announced its clean stop.
 */
void hw_app_cluster_asks(struct hw_app *a, const struct hw_nodes_order *o);
void hw_app_cluster_saw(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o,
                        const struct hw_cluster_answer *answer);
void hw_app_cluster_won(struct hw_app *a, const struct hw_partitions *set, const struct hw_partitions *unclean);
void hw_app_cluster_lost(struct hw_app *a, const struct hw_partitions *set);
void hw_app_cluster_became_authoritative(struct hw_app *a, int64_t after_ns);
void hw_app_cluster_leaves(struct hw_app *a, const char *node);
/* Called each second. */
void hw_app_cluster_view_tick(struct hw_app *a);
/* Writes this node's own entry of device:nodes, a JSON object. */
void hw_app_cluster_json(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o,
                         char buf[HW_CLUSTER_JSON]);

/* Writes the client id of a node's publisher, which the node's entry of device:nodes contains. The id of a lost node
 * stays known. If there was no such entry, the id is built with this node's prefix. */
void hw_app_cluster_publisher_id(struct hw_app *a, const char *node, char *buf, size_t cap);

/* Returns the totals of this daemon and of the earlier daemons in this process. */
void hw_app_cluster_totals(const struct hw_app *a, struct hw_cluster_totals *out);

#endif
