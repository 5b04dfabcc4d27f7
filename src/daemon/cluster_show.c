/* SPDX-License-Identifier: MIT */
/* See cluster_show.h. */
#include "cluster_show.h"

#include <stdio.h>

#include "cluster_priv.h"
#include "heartwheel/fnv.h"
#include "wake.h"

_Static_assert(HW_CONTROL_NODES_MAX >= HW_MEMBERS_MAX + HW_CLUSTER_LOST_MAX, "whoever is seen is shown");

void hw_app_show_nodes(const struct hw_app *a, struct hw_control_nodes *out)
{
	struct hw_cluster_view v;
	*out = (struct hw_control_nodes){.mode = "mirror",
	                                 .name = a->start->cluster_name,
	                                 .lease_ms = a->start->cluster_lease_ms,
	                                 .partitions = HW_PARTITIONS};
	if (!hw_app_cluster_view(a, hw_app_now(), &v))
		return;
	for (; out->n < v.n; out->n++)
		out->at[out->n] = (struct hw_control_node){.node = v.at[out->n].node,
		                                           .self = v.at[out->n].self,
		                                           .lost = v.at[out->n].lost,
		                                           .state = v.at[out->n].state,
		                                           .json = v.at[out->n].json,
		                                           .since_ms = v.at[out->n].since_ms,
		                                           .owns = v.at[out->n].owns};
	out->member = v.member;
	out->lapsed = v.lapsed;
	out->owned = v.owned;
	out->unowned = v.unowned;
	out->takeovers_clean = v.takeovers_clean;
	out->takeovers_unclean = v.takeovers_unclean;
	out->claims = v.claims;
	out->releases = v.releases;
	out->evictions = v.evictions;
	out->fenced_redis = v.fenced_redis;
	out->fenced_broker = v.fenced_broker;
	out->stream_lag_ms = v.stream_lag_ms;
	out->takeover_s = v.takeover_s_last;
}

static size_t add_difference(const struct hw_control_node *node, unsigned bits, char *text, size_t n, size_t cap)
{
	bool first = true;
	n += (size_t)snprintf(text + n, cap - n, "%s'%s' has another ", n ? "; " : "", node->node);
	for (unsigned i = 0; hw_control_difference(i); i++)
		if (bits & 1u << i) {
			n += (size_t)snprintf(text + n, cap - n, "%s%s", first ? "" : ", ", hw_control_difference(i));
			first = false;
		}
	return n;
}

void hw_app_tell_differences(struct hw_app *a)
{
	struct hw_control_nodes n;
	char text[HW_CONTROL_NODES_MAX * (HW_NODE_ID_MAX + 64)] = "";
	size_t len = 0;
	unsigned all = 0;
	if (!a->cluster)
		return;
	hw_app_show_nodes(a, &n);
	const struct hw_control_node *self = hw_control_nodes_self(&n);
	for (size_t i = 0; self && i < n.n; i++) {
		unsigned bits = n.at[i].lost || n.at[i].self ? 0 : hw_control_differs(self->json, n.at[i].json);
		if (bits)
			len = add_difference(&n.at[i], bits, text, len, sizeof(text));
		all |= bits;
	}
	uint64_t hash = hw_fnv64(HW_FNV64_BEGIN, text, len);
	if (hash == a->cluster->told.differs)
		return;
	a->cluster->told.differs = hash;
	if (len > 0)
		hw_log(a->log, all & HW_NODES_APART ? HW_LOG_ERROR : HW_LOG_WARNING, "nodes: %s%s", text,
		       all & HW_NODES_APART ? ": they cannot watch one fleet together" : " than this one");
}
