/* SPDX-License-Identifier: MIT */
#include "cluster_strangers.h"

#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"
#include "control/nodes.h"
#include "heartwheel/fnv.h"
#include "heartwheel/print.h"

void hw_app_hold_strangers(const struct hw_app *a, struct hw_cluster_answer *answer)
{
	const char *ours = NULL;
	for (size_t i = 0; i < answer->nodes.n_members; i++)
		if (strcmp(answer->members[i].node, a->start->node_id) == 0)
			ours = answer->json[i];
	for (size_t i = 0; ours && i < answer->nodes.n_members; i++)
		if (hw_control_differs(ours, answer->json[i]) & HW_NODES_APART)
			answer->members[i].ready = false;
}

static size_t add_difference(const struct hw_control_node *node, unsigned bits, char *text, size_t n, size_t cap)
{
	bool first = true;
	n += hw_print(text + n, cap - n, "%s'%s' has another ", n ? "; " : "", node->node);
	for (unsigned i = 0; hw_control_difference(i); i++)
		if (bits & 1u << i) {
			n += hw_print(text + n, cap - n, "%s%s", first ? "" : ", ", hw_control_difference(i));
			first = false;
		}
	return n;
}

void hw_app_log_strangers(struct hw_app *a)
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
	if (hash == a->cluster->strangers.reported)
		return;
	a->cluster->strangers.reported = hash;
	if (len > 0)
		hw_log(a->log, all & HW_NODES_APART ? HW_LOG_ERROR : HW_LOG_WARNING, "nodes: %s%s", text,
		       all & HW_NODES_APART ? ": they cannot watch one fleet together" : " than this one");
}
