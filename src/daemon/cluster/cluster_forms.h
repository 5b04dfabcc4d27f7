/* SPDX-License-Identifier: MIT */
/*
 * Which groups each node has, and in which form, as published in the node's entry in device:nodes. The entries are used
 * for three purposes:
 *
 * - A device that becomes known by the stream was received by the node that wrote the entry, in that node's form of the
 *   group.
 * - If the nodes have different timeouts for a group, the longest one counts.
 * - A node names the partitions with devices that it cannot judge but another member can. That member then becomes
 *   their owner. Devices that no member can judge have no effect. A partition also moves to a node that receives new
 *   devices there, if the owner does not report them because it has other groups.
 *
 * Even nodes with the same groups may not have received the same devices in the present form. In a rolling reload, a
 * device may stop before the last node reloads; that node has not received the device in the new form. So each node of
 * a mirror also names, for each group, the partitions with online devices that it cannot judge. If an owner cannot
 * judge a device past its deadline, the partition moves to a node that can judge all online devices of the group there.
 * The owner waits for the deadline, because otherwise each reload would move all partitions.
 *
 * In standby, only the owner knows the devices. The whole fleet moves, and only to a node that can judge all that the
 * owner judges, and more. The owner names that node in its entry, and releases the fleet when all ready members have
 * read the entry.
 *
 * A node that has left devices out because it has no room (hw_monitor_left_out()) names their partitions too, so that a
 * node with room owns them. In standby, the owner then names a member with a greater max_devices, and a member with too
 * few for the owner's devices does not take the fleet.
 *
 * A group may be blind on one node alone: deaf, or without the message of its `while`. In a mirror its devices then
 * count as unjudged ones past their deadline, so they go to a node where the group is not blind. In standby, the owner
 * of a deaf group names a member, although that member cannot know yet whether it hears the group. A member that was
 * deaf while it was the owner is not named.
 *
 * A node's groups count until that node publishes others, even if the node has left or is lost, because its devices
 * still exist.
 */
#ifndef HW_CLUSTER_FORMS_H
#define HW_CLUSTER_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/judging.h"
#include "nodes/members.h"

struct hw_app;
struct hw_json;

#define HW_CLUSTER_FORMS_MAX (HW_MEMBERS_MAX + 8) /* nodes that are remembered */

struct hw_cluster_forms {
	struct {
		char node[HW_NODE_ID_MAX + 1];
		char *text;                /* owned: the groups as the node published them; NULL: not known */
		struct hw_node_group *all; /* owned */
		size_t n;
		struct hw_partitions unstored;   /* hw_monitor_unstored_in() */
		int64_t max_devices, devices;    /* devices: known to the node or left out there, if it owns the
		                                  * fleet; otherwise 0 */
		bool was_deaf;                   /* hw_app_standby_was_deaf() */
		char better[HW_NODE_ID_MAX + 1]; /* that node's `better`, as below */
	} of[HW_CLUSTER_FORMS_MAX];
	char *own;            /* owned: this node's groups as its entry contains them; NULL: not published yet */
	bool changed, differ; /* changed: the core must be updated. differ: a member has other groups than this node */
	char better[HW_NODE_ID_MAX +
	            1]; /* standby, on the owner: the node that can judge more of the fleet; "": there is none */
	struct hw_partitions
		unable;      /* for hw_nodes_unable(); calculated again after each entry that was read or written */
	bool unknown_writer; /* the stream had an entry of a node whose groups are not known */
	bool decided, stood, known; /* decided: `unable` is up to date; stood, known: when `unable` was calculated, this
	                               node stood by, and unjudged devices were known */
	size_t n, next;             /* next: the slot to reuse when all are taken */
};

/* Decides again which partitions this node is unable to judge, before its own entry of device:nodes is written. */
void hw_app_cluster_forms_update(struct hw_app *a);
/* Writes members of this node's entry in device:nodes. `groups`: writes its groups. `unjudged`: writes the devices that
 * it cannot judge. Both grow with the number of groups. */
void hw_app_cluster_forms_write(struct hw_app *a, bool groups, bool unjudged, struct hw_json *j);
/* Reads a member's entry. */
void hw_app_cluster_forms_saw(struct hw_app *a, const char *node, const char *json);
/* The form of a group at a node; 0: unknown. */
uint64_t hw_app_cluster_form(const struct hw_app *a, const char *node, size_t node_len, const char *group,
                             size_t group_len);
/* Called once a turn. Passes the partitions that this node cannot judge to src/nodes. Returns false if they are not
 * known yet. */
bool hw_app_cluster_forms_turn(struct hw_app *a, struct hw_now now);
void hw_app_cluster_forms_free(struct hw_app *a);

#endif
