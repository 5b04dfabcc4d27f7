/* SPDX-License-Identifier: MIT */
/*
 * Canaries: messages that the monitor publishes on a heartbeat filter, with its own name in the place of the device's,
 * to see whether that filter still brings what is published on it. Private to the core.
 *
 * Per filter: idle -> (due) -> out -> back, or lost after two that did not come back although a barrier that was sent
 * later did.
 */
#ifndef HW_CANARY_H
#define HW_CANARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hearing_table.h"
#include "sight.h"

/* A message came on the canaries' topic `topic`, with a seq that may be another monitor's. */
void hw_canary_back(struct hw_hearing *h, struct hw_mono now, struct hw_mono mark, const char *topic, size_t len,
                    int64_t seq);
/* Whether a canary is sent on this topic. */
bool hw_canary_is_topic(const struct hw_hearing *h, const char *topic, size_t len);
/* The broker's answer to the canary on a group's filter. */
void hw_canary_answered(struct hw_hearing *h, uint16_t group, uint16_t index, enum hw_canary_answer answer);

/*
 * For the next run, which cannot know that a canary could be had if the right to read is gone by then: a number that
 * stands for all filters that are asked, once each one's canary was back, in this run or in one that is recalled; 0:
 * not yet, or none is asked. hw_canary_recall() takes it back, and does nothing if the filters are others now.
 */
uint64_t hw_canary_all_had(const struct hw_hearing *h);
void hw_canary_recall(struct hw_hearing *h, uint64_t all_had);

/*
 * Whether its canary must come back before its silence is believed: one did in this run; or the broker has taken it and
 * nothing of a whole group ever came, so that it can only be the right to read that is missing. Where devices were
 * heard and it never was, only its own topic cannot be read, and a fleet that dies whole must not stay online for that.
 */
bool hw_canary_can_be_had(const struct hw_hearing *h, size_t k);

/*
 * Whether one must go out so that a device of this filter's group can be judged by what the filter has brought since
 * `need`: not if it is proven to have brought everything since then, nor if one is out that was sent after the last
 * barrier, or after `need` and no barrier has overtaken it. So a later candidate need not wait for an earlier canary,
 * which proves nothing for it: its own is back before its pair of barriers is.
 */
bool hw_canary_is_pending(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono need, size_t k);
/* Sends it if it is due: true, with the number that it is to bear. At most so many before a later barrier is back. */
bool hw_canary_send(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k, int64_t *seq);
/* When a device that waits for what this filter brings is looked at again: with the next pair of barriers (0), and if
 * the canary is not back by then ever more rarely. */
int64_t hw_canary_wait(const struct hw_hearing *h, size_t k, struct hw_mono now);
/*
 * A device waits for what this filter brings, and its pair of barriers is back: notes a canary that should have been
 * back before that. Not if none ever was, or if it is known that they do not come back: where other things come, a
 * topic that cannot be read says nothing of them.
 */
void hw_canary_miss(struct hw_hearing *h, const struct hw_sight *s, size_t k);
/* Gives up the one that is out, if it is overdue. */
void hw_canary_give_up(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k);
/*
 * Whether it is to be told now that this filter's canary does not come back: once, until one does; a moment after it
 * was given up, and not at all if its group is deaf by then: that says the same, and more.
 */
bool hw_canary_tell(struct hw_hearing *h, struct hw_mono now, size_t k);
/* The first moment at which one is to be given up, told of or sent. */
struct hw_mono hw_canary_next(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k);

#endif
