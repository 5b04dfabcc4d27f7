/* SPDX-License-Identifier: MIT */
/* Several nodes, as they are shown: who lives, who is gone, who owns how much; built when it is asked for. */
#ifndef HW_CLUSTER_VIEW_H
#define HW_CLUSTER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/nodes.h"

#define HW_CLUSTER_LOST_MAX 8 /* so many that are gone are remembered */

struct hw_app;
struct hw_device;

/* A node, valid until the next turn. */
struct hw_cluster_one {
	const char *node;
	bool self, ready;
	bool lost;         /* it was a member, and is gone without having said so */
	const char *state; /* "joining", "ready", "blind", "leaving", "lost" */
	const char *json;  /* its own entry in device:nodes, with a NUL; "{}": it is not known */
	int64_t since_ms;  /* wall clock: it is a member since then, or lost since then */
	unsigned owns;     /* partitions, by device:owners */
};

struct hw_cluster_view {
	size_t n;
	struct hw_cluster_one at[HW_MEMBERS_MAX + HW_CLUSTER_LOST_MAX];
	unsigned owned;   /* partitions of ours */
	unsigned unowned; /* partitions that nobody owns */
	bool member, lapsed;
	uint64_t claims, releases, evictions, joins, removals;
	uint64_t takeovers_clean, takeovers_unclean; /* partitions taken over */
	uint64_t fenced_redis, fenced_broker;
	int64_t stream_lag_ms;  /* since when the end of the stream was not reached; 0: it is */
	double takeover_s_last; /* from the claim to deciding; 0: none yet */
};

/* What is remembered for it. */
struct hw_cluster_seen {
	struct {
		char node[HW_NODE_ID_MAX + 1];
		char *json; /* owned; NULL: not known */
		int64_t since_ms;
		bool lost, there;
	} at[HW_MEMBERS_MAX + HW_CLUSTER_LOST_MAX];
	size_t n;
	uint64_t takeovers_clean, takeovers_unclean, fenced_broker;
	double takeover_s_last;
};

void hw_app_cluster_view_free(struct hw_app *a);
/* False: mode = off. */
bool hw_app_cluster_view(const struct hw_app *a, struct hw_now now, struct hw_cluster_view *out);
/* The node that owns this device, valid until the next turn; NULL: mode = off, or nobody does. */
const char *hw_app_cluster_owner(const struct hw_app *a, const struct hw_device *d);

#endif
