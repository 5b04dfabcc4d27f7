/* SPDX-License-Identifier: MIT */
/* Several nodes, as they are shown: who lives, who is gone, who owns how much; built when it is asked for. */
#ifndef HW_CLUSTER_VIEW_H
#define HW_CLUSTER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/bounds.h"
#include "heartwheel/registry.h"
#include "heartwheel/time.h"
#include "nodes/nodes.h"
#include "redis/cluster.h"

#define HW_CLUSTER_LOST_MAX 8                  /* so many that are gone are remembered */
#define HW_CLUSTER_JSON     HW_BOUNDS_JSON_MAX /* bytes of a node's own entry at most, with its NUL */
#define HW_CLUSTER_PROTOCOL 1

#define HW_CLUSTER_CLIENT_ID 160 /* bytes of a publisher's at most, with its NUL */

struct hw_app;

/* What is counted. */
struct hw_cluster_totals {
	uint64_t claims, releases, evictions, joins, removals;
	uint64_t takeovers_clean, takeovers_unclean; /* partitions taken over */
	uint64_t fenced_redis, fenced_broker;
	double takeover_s_last; /* from the claim to deciding; 0: none yet */
};

/* A node, valid until the next turn. */
struct hw_cluster_one {
	const char *node;
	bool self, ready;
	bool lost;         /* it was a member, and is gone without having said so */
	const char *state; /* "joining", "ready", "blind", "leaving", "lapsed", "lost" */
	const char *json;  /* its own entry in device:nodes, with a NUL; "{}": it is not known */
	int64_t since_ms;  /* wall clock: it is a member since then, or lost since then */
	unsigned owns;     /* partitions, by device:owners */
};

struct hw_cluster_view {
	size_t n;
	struct hw_cluster_one at[HW_MEMBERS_MAX + HW_CLUSTER_LOST_MAX];
	unsigned owned;   /* partitions of ours */
	unsigned unowned; /* partitions that no member owns */
	unsigned orphans; /* ... for a second or longer: no handover takes so long */
	bool member, lapsed;
	int64_t as_of_ms; /* wall clock: the last confirmed renewal, if lapsed; else 0 */
	struct hw_cluster_totals totals;
	int64_t stream_lag_ms; /* since when the end of the stream was not reached; 0: it is */
};

/* What is remembered for it: a node that is, or was. */
struct hw_cluster_was {
	char node[HW_NODE_ID_MAX + 1];
	char *json; /* owned; NULL: not known */
	int64_t since_ms;
	bool lost, there;
	bool leaves; /* it said so */
};

struct hw_cluster_seen {
	struct hw_cluster_was at[HW_MEMBERS_MAX + HW_CLUSTER_LOST_MAX];
	size_t n;
	uint64_t takeovers_clean, takeovers_unclean, fenced_broker;
	double takeover_s_last;
	struct hw_partitions unowned,
		orphans;                 /* as of the last tick: no member owns them; nor did at the tick before */
	struct hw_cluster_totals before; /* of the daemons that were before this one in the same process */
};

void hw_app_cluster_view_free(struct hw_app *a);

/* What becomes of the cluster is logged, and remembered for the view: an order goes to Redis; its answer was taken in;
 * partitions were won (`unclean`: those whose last owner may have owed something), or lost; all that was won is decided
 * about, so long after; and a node said that it leaves. */
void hw_app_cluster_asks(struct hw_app *a, const struct hw_nodes_order *o);
void hw_app_cluster_saw(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o,
                        const struct hw_cluster_answer *answer);
void hw_app_cluster_won(struct hw_app *a, const struct hw_partitions *set, const struct hw_partitions *unclean);
void hw_app_cluster_lost(struct hw_app *a, const struct hw_partitions *set);
void hw_app_cluster_decides(struct hw_app *a, int64_t after_ns);
void hw_app_cluster_leaves(struct hw_app *a, const char *node);
/* Each second. */
void hw_app_cluster_view_tick(struct hw_app *a);
/* Writes our own entry of device:nodes: an object. */
void hw_app_cluster_json(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o,
                         char buf[HW_CLUSTER_JSON]);

/* The client id of that node's publisher, as it says in its entry of device:nodes, or said when it was last a member;
 * of one that says none, or was never seen, what it is if it has our prefix. */
void hw_app_cluster_publisher_id(struct hw_app *a, const char *node, char *buf, size_t cap);

/* Of one of several nodes, as it is configured. */
const char *hw_app_cluster_mode(const struct hw_app *a);
void hw_app_cluster_totals(const struct hw_app *a, struct hw_cluster_totals *out);
/* False: mode = off. */
bool hw_app_cluster_view(const struct hw_app *a, struct hw_now now, struct hw_cluster_view *out);
/* The node that owns this device, valid until the next turn; NULL: mode = off, or nobody does. */
const char *hw_app_cluster_owner(const struct hw_app *a, const struct hw_device *d);

#endif
