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

/* A message arrived on the canary topic `topic`. Its seq may be that of another monitor. */
void hw_canary_back(struct hw_hearing *h, struct hw_mono now, struct hw_mono sent_after, const char *topic, size_t len,
                    int64_t seq);
/* Whether a canary is sent on this topic. */
bool hw_canary_is_topic(const struct hw_hearing *h, const char *topic, size_t len);
/* The broker's answer to the canary on a group's filter. */
void hw_canary_answered(struct hw_hearing *h, uint16_t group, uint16_t index, enum hw_canary_answer answer);

/* See hw_monitor_canaries(). A run cannot know otherwise that canaries came back before if the right to read is lost by
 * then. */
void hw_canary_had(const struct hw_hearing *h, struct hw_canaries *had);
void hw_canary_recall(struct hw_hearing *h, const struct hw_canaries *had);

/*
 * Whether the canary must come back before the filter's silence is believed. True if a canary has come back in this
 * run. Also true if the broker accepted the canary and the group has never received a message: then the right to read
 * must be missing. False if devices were heard but a canary never was: then only the canary's topic cannot be read. The
 * silence is then believed, because a fleet that stops as a whole must become offline.
 */
bool hw_canary_can_be_had(const struct hw_hearing *h, size_t k);

/*
 * Whether to send a canary, so that a device of the group can be judged by what the filter has delivered since `need`.
 * False if the filter is proven since `need`. Also false if a canary is already on its way that was sent after the last
 * barrier, or that was sent after `need` and that no returned barrier has overtaken. A later suspect does not wait for
 * an earlier canary, which proves nothing for that suspect. Its own canary comes back before its pair of barriers.
 */
bool hw_canary_is_pending(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono need, size_t k);
/* Sends the canary if it is due. Returns true, and the canary's number, if so. Limits the bytes of canaries that are
 * sent before a later barrier is back. */
bool hw_canary_send(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k, int64_t *seq);
/* How long to wait until a device that needs proof of this filter is checked again. 0: until the next pair of barriers.
 * The wait grows each time that the canary is not back. */
int64_t hw_canary_wait(const struct hw_hearing *h, size_t k, struct hw_mono now);
/*
 * A device needs proof of this filter, and its pair of barriers is back. Notes the canary that should have come back
 * before the pair. Notes none if no canary has ever come back, or if canaries are known not to come back: if only the
 * canary's topic cannot be read, a missing canary proves nothing about the filter.
 */
void hw_canary_miss(struct hw_hearing *h, const struct hw_sight *s, size_t k);
/* Gives up the canary that is out, if it is overdue. */
void hw_canary_give_up(struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k);
/* Whether to report now that this filter's canaries do not come back. Reported some seconds after the last canary was
 * given up, and once until a canary comes back. Not reported if the group is deaf by then, because the report of the
 * deafness says so. */
bool hw_canary_report(struct hw_hearing *h, struct hw_mono now, size_t k);
/* The first instant at which a canary may have to be sent, reported or given up. */
struct hw_mono hw_canary_next(const struct hw_hearing *h, const struct hw_sight *s, struct hw_mono now, size_t k);

#endif
