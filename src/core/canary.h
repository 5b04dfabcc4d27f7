/* SPDX-License-Identifier: MIT */
/*
 * Canaries: the monitor publishes test messages on a heartbeat filter, to check that the filter still delivers. The
 * monitor's name takes the place of a device's id. Private to the core.
 *
 * States of a filter's canary: idle, due, sent, then back or lost. A canary is lost when two in succession did not come
 * back although later barriers did.
 */
#ifndef HW_CANARY_H
#define HW_CANARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hearing_table.h"
#include "sight.h"

/* Handles a message that arrived on the canary topic `topic`. The message may be another monitor's canary; then its
 * `seq` is another monitor's too. */
void hw_canary_back(struct hw_hearing *h, struct hw_mono now, struct hw_mono sent_after, const char *topic, size_t len,
                    int64_t seq);
/* Whether a canary is sent on this topic. */
bool hw_canary_is_topic(const struct hw_hearing *h, const char *topic, size_t len);
/* Called with the broker's answer to the canary on a group's filter. */
void hw_canary_answered(struct hw_hearing *h, uint16_t group, uint16_t index, enum hw_canary_answer answer);

/* hw_canary_had(): returns in *had the filters whose canaries came back in this run or in an earlier one
 * (hw_monitor_canaries()). hw_canary_recall(): takes over these filters from the previous run, at the start. Without
 * them, a run could not notice that the right to read was lost before it started. */
void hw_canary_had(const struct hw_hearing *h, struct hw_canaries *had);
void hw_canary_recall(struct hw_hearing *h, const struct hw_canaries *had);

/*
 * Whether the filter's silence proves nothing until its canary is back.
 *
 * True if a canary has come back in this run or in an earlier one. Also true if the broker accepted the canary but the
 * group has never received a message: this monitor then probably lacks the right to read.
 *
 * False if devices were heard but a canary never was: probably only the canary's topic cannot be read. The silence then
 * counts, because a fleet that stops as a whole must become offline.
 */
bool hw_canary_can_be_had(const struct hw_hearing *h, size_t k);

/*
 * Whether to send a canary on filter k. The canary is for devices that wait to be judged, and each of them needs a
 * message of the filter that was published after `need`.
 *
 * False if the filter has delivered such a message, or if a useful canary is on its way. A canary is useful if it was
 * sent after the last barrier. It is also useful if it was sent after `need` and each barrier that is back was sent
 * before the canary.
 *
 * A device that becomes a suspect later needs another canary, because an earlier canary proves nothing for this device.
 * The later canary comes back before the device's pair of barriers.
 */
bool hw_canary_is_pending(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono need, size_t k);
/* Sends the canary if it is due. Returns whether a canary was sent, with its number in `*seq`. Limits how many bytes of
 * canaries are sent until a later barrier is back (BURST in canary.c). */
bool hw_canary_send(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k, int64_t *seq);
/* Returns after what time to check again a device that needs a delivery of this filter. 0: with the next pair of
 * barriers. The time grows each time that the canary is not back. */
int64_t hw_canary_wait(const struct hw_hearing *h, size_t k, struct hw_mono now);
/*
 * Called when a device needs a delivery of this filter, and its pair of barriers is back, but the canary that was sent
 * before the pair is not. Marks the canary as missed. The canary is not marked if no canary has ever come back, or if
 * canaries are known not to come back: then perhaps only the canary's topic cannot be read, which proves nothing about
 * the filter.
 */
void hw_canary_miss(struct hw_hearing *h, const struct hw_sight *s, size_t k);
/* Gives up the canary that is out, if it is overdue. */
void hw_canary_give_up(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k);
/* Whether to report now that canaries do not come back on this filter. Reports some seconds after the last canary
 * was given up, and not again until a canary comes back. If the group is deaf by then, the report of the deafness is
 * enough. */
bool hw_canary_report(struct hw_hearing *h, struct hw_mono now, size_t k);
/* Returns the first instant at which a canary may have to be sent, reported or given up. */
struct hw_mono hw_canary_next(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k);

#endif
