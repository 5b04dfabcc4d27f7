/* SPDX-License-Identifier: MIT */
/*
 * Parents that their children prove on other nodes only. Private to the core.
 *
 * A node proves a parent by the children that it receives (parent_death.h). So a node that lacks a group with
 * child_proves, or has it in another form, cannot prove the parents of that group's devices. Each node therefore
 * publishes the partitions in which it knows online parents with an online child that proves them, or that no node
 * hears. If a node lacks such a group of another node, it does not judge overdue devices in these partitions that have
 * the same group as those parents. Such a device is unjudged, and its partition goes to a node that can judge it.
 *
 * Cost: a node without other nodes, or without child_proves, does nothing. Otherwise the check of all parents
 * (parent_wait.h) also finds an online child of each online parent; it begins with the child that it found last.
 */
#ifndef HW_PARENT_PEERS_H
#define HW_PARENT_PEERS_H

#include "monitor_priv.h"

/* Called by the check of all parents: at its begin, for each parent, and at its end. hw_parent_peers_check() takes a
 * unit of the budget for each HW_PARENT_SCAN children. */
void hw_parent_peers_begin(struct hw_monitor *m);
void hw_parent_peers_check(struct hw_monitor *m, struct hw_parent *p, unsigned *budget);
void hw_parent_peers_end(struct hw_monitor *m);

/* Called after a reload that changed a group with child_proves: until hw_monitor_peer_groups(), this node may lack a
 * group of another node. */
void hw_parent_peers_changed(struct hw_monitor *m);

/* Whether only other nodes may be able to prove an overdue device by its children. */
bool hw_parent_peers_may_prove(const struct hw_monitor *m, struct hw_now now, const struct hw_device *d);

#endif
