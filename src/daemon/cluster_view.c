/* SPDX-License-Identifier: MIT */
/* See cluster_view.h. */
#include "cluster_view.h"

#include "cluster_priv.h"

#include <stdlib.h>
#include <string.h>

void hw_app_cluster_view_free(struct hw_app *a)
{
	struct hw_cluster_seen *s = &a->cluster->seen;
	for (size_t i = 0; i < s->n; i++)
		free(s->at[i].json);
}

static unsigned owned_by(const struct hw_nodes *n, const char *node)
{
	unsigned owns = 0;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		const struct hw_record *r = hw_nodes_record(n, p);
		owns += r->token.epoch && !r->released && strcmp(r->token.node, node) == 0;
	}
	return owns;
}

static unsigned unowned(const struct hw_nodes *n)
{
	unsigned none = 0;
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		const struct hw_record *r = hw_nodes_record(n, p);
		none += !r->token.epoch || r->released || !hw_members_find(hw_nodes_members(n), r->token.node);
	}
	return none;
}

static void fill_one(const struct hw_app *a, struct hw_cluster_one *one, size_t i)
{
	const struct hw_cluster_seen *s = &a->cluster->seen;
	const struct hw_member *m = hw_members_find(hw_nodes_members(a->cluster->nodes), s->at[i].node);
	*one = (struct hw_cluster_one){.node = s->at[i].node,
	                               .self = strcmp(s->at[i].node, a->start->node_id) == 0,
	                               .ready = m && m->ready,
	                               .lost = s->at[i].lost,
	                               .state = s->at[i].lost    ? "lost"
	                                        : m && m->ready ? "ready"
	                                                        : "joining",
	                               .json = s->at[i].json ? s->at[i].json : "{}",
	                               .since_ms = s->at[i].since_ms,
	                               .owns = owned_by(a->cluster->nodes, s->at[i].node)};
}

bool hw_app_cluster_view(const struct hw_app *a, struct hw_now now, struct hw_cluster_view *out)
{
	const struct hw_app_cluster *c = a->cluster;
	*out = (struct hw_cluster_view){0};
	if (!c)
		return false;
	const struct hw_nodes_stats *s = hw_nodes_stats(c->nodes);
	for (size_t i = 0; i < c->seen.n; i++)
		fill_one(a, &out->at[out->n++], i);
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		out->owned += hw_nodes_owns(c->nodes, p);
	out->unowned = unowned(c->nodes);
	out->member = hw_nodes_is_member(c->nodes);
	out->lapsed = hw_nodes_lapsed(c->nodes, now);
	out->claims = s->claims;
	out->releases = s->released;
	out->evictions = s->evictions;
	out->joins = s->joins;
	out->removals = s->removals;
	out->fenced_redis = s->fenced_redis;
	out->fenced_broker = c->seen.fenced_broker;
	out->takeovers_clean = c->seen.takeovers_clean;
	out->takeovers_unclean = c->seen.takeovers_unclean;
	out->takeover_s_last = c->seen.takeover_s_last;
	return true;
}

const char *hw_app_cluster_owner(const struct hw_app *a, const struct hw_device *d)
{
	if (!a->cluster)
		return NULL;
	struct hw_id id = hw_device_id(d);
	const struct hw_record *r = hw_nodes_record(a->cluster->nodes, hw_partition_of(id.text, id.len));
	return r->token.epoch && !r->released ? r->token.node : NULL;
}
