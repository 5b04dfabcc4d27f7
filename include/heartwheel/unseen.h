/* SPDX-License-Identifier: MIT */
#ifndef HEARTWHEEL_UNSEEN_H
#define HEARTWHEEL_UNSEEN_H

#include "heartwheel/expected.h"
#include "heartwheel/monitor.h"

/*
 * The expected devices (expected.h). The driver fills the table, and calls hw_monitor_expect() after each change of an
 * entry, and hw_monitor_expect_no_more() in place of hw_expected_remove(). The entry's timeout is then in force for its
 * device, the device is not forgotten by itself, and an id without a device is checked after its group's first_within.
 *
 * hw_monitor_next_unseen(): returns the next id that this node calls unseen; false: there is none now, or *budget is
 * used up. The driver then sets the id's state: unseen, or resting. Without an answer the id is returned again after
 * ten seconds. If the group's canaries must come back first, they become due (hw_monitor_next()). The driver calls the
 * function about once a second, and only while it reads and follows the store and the inventory there. now.wall_ms must
 * be by the clock that sets the since_ms of entries.
 */

struct hw_expected *hw_monitor_expected(const struct hw_monitor *m);
/* The number of unseen devices of a group. */
uint32_t hw_monitor_unseen_of(const struct hw_monitor *m, size_t group);
void hw_monitor_expect(struct hw_monitor *m, struct hw_now now, uint32_t i);
void hw_monitor_expect_no_more(struct hw_monitor *m, struct hw_now now, uint32_t i);
/* Called once when an id was found unseen: counts this as a transition. */
void hw_monitor_count_unseen(struct hw_monitor *m);
bool hw_monitor_next_unseen(struct hw_monitor *m, struct hw_now now, unsigned *budget, uint32_t *i);
/* Whether there is a device of this id that is not forgotten. */
bool hw_monitor_is_known(const struct hw_monitor *m, struct hw_id id);
/* Returns the index that an entry's `group` gets for a group of this name ("": none), or -errno. If the file has no
 * group of this name, a retired one is made, and the id is not called unseen here. */
int hw_monitor_entry_group(struct hw_monitor *m, const char *name);
/* Returns the group whose first_within counts for an entry: the group that the entry names, or the first group of the
 * file if the entry names none. */
const struct hw_group *hw_monitor_expected_group(const struct hw_monitor *m, const struct hw_expected_view *v);
/* Whether the first heartbeat of an entry's device may arrive in this group. */
bool hw_monitor_may_arrive_in(const struct hw_monitor *m, const struct hw_expected_view *v, uint16_t group);

#endif
