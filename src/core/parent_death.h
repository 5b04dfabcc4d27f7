/* SPDX-License-Identifier: MIT */
/* Which children go offline with their parent, and how children's heartbeats prove that their parent is online.
 * Private to the core. */
#ifndef HW_PARENT_DEATH_H
#define HW_PARENT_DEATH_H

#include "monitor_priv.h"
#include "verdict.h"

/*
 * Called before a device becomes offline, by a decision of this node or by an entry of the stream. If the device is a
 * parent, and its children's group has parent_death = take, the children go offline too. `delay_ns` and `seq` as in
 * struct hw_transition. If Redis fails over, the owner may write an entry of the stream again: `seq` shows this.
 */
void hw_parent_goes_down(struct hw_monitor *m, struct hw_now now, uint32_t i, enum hw_reason reason, int64_t delay_ns,
                         uint64_t seq);
/* Called when the device has left the state offline. */
void hw_parent_is_up(struct hw_monitor *m, uint32_t i);
/* hw_parent_returns(): the device is online again. `heard`: this node has read a heartbeat of the device since the
 * device's last goodbye. hw_parent_says_goodbye(): the device's goodbye was read. */
void hw_parent_returns(struct hw_monitor *m, struct hw_now now, uint32_t i, bool heard);
void hw_parent_says_goodbye(struct hw_monitor *m, struct hw_now now, uint32_t i);

/* Whether an online child must go offline, because no known parent of it is online. */
bool hw_parent_orphaned(const struct hw_monitor *m, uint32_t i);
/* Decides whether one child of an offline parent goes offline too. Returns false if there is nothing to do now. */
bool hw_parent_take_next(struct hw_monitor *m, struct hw_now now, unsigned *budget);

/*
 * Called for a device that is due, or whose barriers are back (e->event). If it is online and its deadline has passed,
 * searches for a child whose heartbeat is newer than the device's own, and counts this heartbeat as the device's.
 * Returns false if some children are not checked yet: call again. Costs a unit of the budget for each HW_PARENT_SCAN
 * children.
 *
 * If no child proves the device, but an online child cannot be heard here, sets e->deaf. If it is not known yet whether
 * the children's groups hear, sets e->unheard and e->wait_ns. Also sets e->deaf if another node may prove the device
 * (parent_peers.h).
 */
#define HW_PARENT_SCAN 16
/* Whether hw_parent_prove() must be called. */
static inline bool hw_parent_may_be_proven(const struct hw_monitor *m)
{
	return m->family.proving || m->family.lacks_until_ns > 0;
}
bool hw_parent_prove(struct hw_monitor *m, struct hw_now now, uint32_t i, struct hw_evidence *e, unsigned *budget);
/* Whether a device was overdue but was not judged, because its children may prove that it is online. */
bool hw_parent_rests(const struct hw_monitor *m, uint32_t i);

#endif
