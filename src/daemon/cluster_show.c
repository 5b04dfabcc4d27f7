/* SPDX-License-Identifier: MIT */
/* See cluster_show.h. */
#include "cluster_show.h"

#include "cluster_sentinel.h"
#include "cluster_stream.h"
#include "cluster_view.h"
#include "wake.h"

_Static_assert(HW_CONTROL_NODES_MAX >= HW_MEMBERS_MAX + HW_CLUSTER_LOST_MAX, "whoever is seen is shown");

void hw_app_show_nodes(const struct hw_app *a, struct hw_control_nodes *out)
{
	struct hw_cluster_view v;
	*out = (struct hw_control_nodes){.mode = hw_app_cluster_mode(a),
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
	out->as_of_ms = v.as_of_ms;
	out->denied = hw_app_cluster_is_denied(a);
	out->doubted = hw_app_cluster_voices(a, &out->confirm, &out->sentinels);
	out->owned = v.owned;
	out->unowned = v.unowned;
	out->orphans = v.orphans;
	out->takeovers_clean = v.totals.takeovers_clean;
	out->takeovers_unclean = v.totals.takeovers_unclean;
	out->claims = v.totals.claims;
	out->releases = v.totals.releases;
	out->evictions = v.totals.evictions;
	out->fenced_redis = v.totals.fenced_redis;
	out->fenced_broker = v.totals.fenced_broker;
	out->peer_messages = hw_monitor_peer_messages(a->monitor);
	out->stream_lag_ms = v.stream_lag_ms;
	out->takeover_s = v.totals.takeover_s_last;
}
