/* SPDX-License-Identifier: MIT */
/* See judging.h. Cost: a search by name for each group that has devices. */
#include "nodes/judging.h"

#include <string.h>

static const struct hw_node_group *find(const struct hw_node_group *groups, size_t n, const char *name)
{
	for (size_t k = 0; k < n; k++)
		if (strcmp(groups[k].name, name) == 0)
			return &groups[k];
	return NULL;
}

static bool has(const struct hw_node_group *groups, size_t n, const char *name, uint64_t form)
{
	const struct hw_node_group *group = find(groups, n, name);
	return group && (!form || group->form == form);
}

static void add_late(struct hw_partitions *more, const struct hw_group_use *use, const struct hw_node_group *group)
{
	for (unsigned w = 0; group && w < HW_PARTITIONS / 64; w++)
		more->bits[w] |= use->late.bits[w] & ~group->unjudged.bits[w];
}

struct hw_partitions hw_judging_more(const struct hw_group_use *uses, size_t n_uses, const struct hw_node_group *groups,
                                     size_t n_groups)
{
	struct hw_partitions more = {{0}};
	for (size_t i = 0; i < n_uses; i++) {
		if (hw_partitions_any(&uses[i].late))
			add_late(&more, &uses[i], find(groups, n_groups, uses[i].name));
		for (int k = 0; k < 2; k++) {
			const struct hw_partitions *in = &uses[i].unjudged[k].in;
			if (!hw_partitions_any(in) || !has(groups, n_groups, uses[i].name, uses[i].unjudged[k].form))
				continue;
			for (unsigned w = 0; w < HW_PARTITIONS / 64; w++)
				more.bits[w] |= in->bits[w];
		}
	}
	return more;
}

bool hw_judging_all(const struct hw_group_use *uses, size_t n_uses, const struct hw_node_group *groups, size_t n_groups)
{
	for (size_t i = 0; i < n_uses; i++)
		if (uses[i].judged && !has(groups, n_groups, uses[i].name, uses[i].form))
			return false;
	return true;
}
