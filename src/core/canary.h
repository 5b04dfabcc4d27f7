/* SPDX-License-Identifier: MIT */
/*
 * Canaries: the monitor publishes them on a heartbeat filter, to check that the filter still delivers. The monitor's
 * name takes the place of a device's id. Private to the core.
 *
 * Per filter: idle -> (due) -> out -> back or lost. It is lost after two canaries that did not come back although later
 * barriers did.
 */
#ifndef HW_CANARY_H
#define HW_CANARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hearing_table.h"
#include "sight.h"

/* A message arrived on the canary topic `topic`. Its seq may be that of another monitor. */
void hw_canary_back(struct hw_hearing *h, struct hw_mono now, struct hw_mono sent_after, const char *topic, size_t len,
                    int64_t seq);
/* Whether a canary is sent on this topic. */
bool hw_canary_is_topic(const struct hw_hearing *h, const char *topic, size_t len);
/* The broker's answer to the canary on a group's filter. */
void hw_canary_answered(struct hw_hearing *h, uint16_t group, uint16_t index, enum hw_canary_answer answer);

/*
 * A number for the next run, which cannot know that canaries came back before if the right to read is lost by then. It
 * stands for all filters with canaries, once each canary was back in this run or in a recalled one. 0: not yet, or
 * there are none. hw_canary_recall() restores this, and does nothing if the filters have changed.
 */
uint64_t hw_canary_all_had(const struct hw_hearing *h);
void hw_canary_recall(struct hw_hearing *h, uint64_t all_had);

/*
 * Whether the canary must come back before the filter's silence is believed. True if one came back in this run. Also
 * true if the broker accepted the canary and the whole group never received a message: then only the right to read can
 * be missing. If devices were heard but never a canary, only the canary's topic cannot be read. Then the silence is
 * believed, or a fleet that stops as a whole would stay online.
 */
bool hw_canary_can_be_had(const struct hw_hearing *h, size_t k);

/*
 * Whether a canary must be sent so that a device of the group can be judged by what the filter has delivered since
 * `need`. False if the filter is proven since `need`. Also false if a canary is out that was sent after the last
 * barrier, or after `need` with no barrier overtaking it. A later suspect thus does not wait for an earlier canary,
 * which proves nothing for it. Its own canary is back before its pair of barriers.
 */
bool hw_canary_is_pending(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono need, size_t k);
/* Sends the canary if it is due: true, with its number. The bytes sent before a later barrier is back are limited. */
bool hw_canary_send(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k, int64_t *seq);
/* How long to wait before a device that needs this filter's proof is checked again. 0: until the next pair of barriers.
 * If the canary is not back by then, the wait grows. */
int64_t hw_canary_wait(const struct hw_hearing *h, size_t k, struct hw_mono now);
/*
 * A device needs this filter's proof, and its pair of barriers is back: notes the canary that should have been back
 * before the pair. Notes nothing if no canary ever came back, or if canaries are known not to. While other messages
 * arrive, an unreadable canary topic proves nothing about the filter.
 */
void hw_canary_miss(struct hw_hearing *h, const struct hw_sight *s, size_t k);
/* Gives up the canary that is out, if it is overdue. */
void hw_canary_give_up(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k);
/* Whether to report now that this filter's canary does not come back. Reported once until one comes back, some seconds
 * after the canary was given up. Not reported if the group is deaf by then, because that report includes it. */
bool hw_canary_report(struct hw_hearing *h, struct hw_mono now, size_t k);
/* The first instant at which a canary must be given up, reported or sent. */
struct hw_mono hw_canary_next(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k);

#endif
