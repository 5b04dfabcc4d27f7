/* SPDX-License-Identifier: MIT */
/* Whether a node with other groups can judge devices that this node cannot judge. Pure: no node, clock or socket. */
#ifndef HW_NODES_JUDGING_H
#define HW_NODES_JUDGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/partition.h"

/* A group as another node publishes it. */
struct hw_node_group {
	char *name; /* owned by the list */
	uint64_t form;
	int64_t timeout_ms, timeout_max_ms;
	uint32_t proves;             /* hw_group_proves() */
	struct hw_partitions proven; /* partitions with parents that their children prove there */
	struct hw_partitions
		unjudged; /* partitions with online devices of the group that the other node cannot judge */
};

/* A group of which this node knows devices. */
struct hw_group_use {
	const char *name;
	uint64_t form;
	bool judged; /* this node judges a device of the group, in `form` */
	struct {
		uint64_t form; /* 0: not known; then the name alone counts */
		struct hw_partitions in;
	} unjudged[2];
	struct hw_partitions late; /* partitions with online devices past their deadline that this node cannot judge */
};

/*
 * Returns the partitions with a device that this node cannot judge, but a node with `groups` can. Case 1: the other
 * node has the form in which the device was last heard. Case 2: the device is past its deadline, and the other node can
 * judge all online devices of the group in the partition, so the other node has heard the device itself.
 */
struct hw_partitions hw_judging_more(const struct hw_group_use *uses, size_t n_uses, const struct hw_node_group *groups,
                                     size_t n_groups);
/* Whether a node with `groups` can judge each device that this node judges. */
bool hw_judging_all(const struct hw_group_use *uses, size_t n_uses, const struct hw_node_group *groups,
                    size_t n_groups);

#endif
