/* SPDX-License-Identifier: MIT */
/*
 * Which groups the nodes have, and in which form: part of each node's entry in device:nodes. It decides three things.
 * A device that the stream makes known was heard by the entry's author in that node's form. Of several timeouts of one
 * group the longest is in force. And a node says in which partitions another member could judge devices that it cannot:
 * the other one owns them. Devices that no member can judge move nothing. A partition also goes to a node that hears
 * new devices which the owner, having other groups, does not report.
 *
 * Nodes with the same groups may have heard different devices in the present form: after a rolling reload the last node
 * has not heard a device that stopped before. So each node of a mirror also names the partitions with online devices
 * that it cannot judge, by group. A device is past its deadline, and its owner cannot judge it: the partition goes to a
 * node that can judge all online devices of the group there. The owner waits for the deadline, or each reload would
 * move all.
 *
 * In standby the owner alone knows the devices. The whole fleet moves, and only to a node that can judge all that the
 * owner judges, and more. The owner names that node in its entry; it lets go after all ready members have read that.
 *
 * What a node said of its groups counts until that node says otherwise, also after the node has left or is lost: its
 * devices are still there.
 */
#ifndef HW_CLUSTER_FORMS_H
#define HW_CLUSTER_FORMS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "nodes/judging.h"
#include "nodes/members.h"

struct hw_app;

#define HW_CLUSTER_FORMS_MAX (HW_MEMBERS_MAX + 8) /* nodes that are remembered */

struct hw_cluster_forms {
	struct {
		char node[HW_NODE_ID_MAX + 1];
		char *text;                /* owned: the groups as the node said them; NULL: it said none */
		struct hw_node_group *all; /* owned */
		size_t n;
		struct hw_partitions untold;     /* hw_monitor_untold_in() */
		char better[HW_NODE_ID_MAX + 1]; /* as below, of that node */
	} of[HW_CLUSTER_FORMS_MAX];
	char *own;                       /* owned: our own groups, as they are in our entry; NULL: not said yet */
	bool changed, differ;            /* the core is to be told again; a member has other groups than this node */
	char better[HW_NODE_ID_MAX + 1]; /* standby, the owner: the node that can judge more of the fleet; "": none */
	struct hw_partitions unable;     /* what src/nodes is to know: decided with each entry that is read or made */
	bool decided, stood, known;      /* `unable` is up to date; as it was then */
	size_t n, next;                  /* next: whose place is taken when there is no other */
};

/* Adds to our own entry of device:nodes. */
void hw_app_cluster_forms_add(struct hw_app *a, cJSON *entry);
/* A member's entry was read. */
void hw_app_cluster_forms_saw(struct hw_app *a, const char *node, const char *json);
/* The form of a group at a node; 0: not known. */
uint64_t hw_app_cluster_form(const struct hw_app *a, const char *node, size_t node_len, const char *group,
                             size_t group_len);
/* Once a turn: tells src/nodes which partitions this node cannot judge. False: that is not known yet. */
bool hw_app_cluster_forms_turn(struct hw_app *a, struct hw_now now);
void hw_app_cluster_forms_free(struct hw_app *a);

#endif
