/* SPDX-License-Identifier: MIT */
/*
 * Probes: in a group with probes, heartwheel sends a probe to a silent online device before its deadline. Private to
 * the core.
 *
 * A device gets no probe in three cases: after its goodbye, if only its key is known, and if another node owns it. No
 * device gets a probe while the monitor is blind or loading, or while the group is deaf. A probe is no evidence and
 * does not move the deadline. An answer moves the deadline, because an answer is a heartbeat.
 *
 * probe_rate: a device for which no turn is free waits for its turn in the wheel (HW_FLAG_PACED). If the turn would
 * come after the deadline, the probe is dropped and counted. A turn that is no longer needed stays unused.
 *
 * Cost: in a group without probes, one comparison each time that a device is due. In a group with probes, a device is
 * due once in probe_after, not once in a timeout. The state is in bits of the record, so probes need no memory.
 */
#ifndef HW_PROBE_H
#define HW_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "monitor_priv.h"
#include "verdict.h"

/* Handles a device of a group with probes that is due in the wheel. Returns whether the device was due for a probe;
 * if so, it is armed again. */
bool hw_probe_due(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e);

/* Called when an online device was heard. Returns whether the device may be armed for a later tick than its first
 * probe. */
bool hw_probe_heard(struct hw_monitor *m, uint32_t i);

/*
 * Called when this node becomes authoritative for a device. Only the previous owner received the answers to its own
 * probes. So if the first probe is overdue, the device counts as silent for probe_after only, and gets a probe before
 * it is judged. Returns whether the device must be armed again.
 */
bool hw_probe_taken_over(struct hw_monitor *m, struct hw_now now, uint32_t i);

static inline bool hw_probe_is_answer(const struct hw_monitor *m, size_t topics_len, const struct hw_message *msg)
{
	return msg->topic_len == topics_len && memcmp(msg->topic, m->conf.probe_answers, topics_len) == 0;
}

/* Whether a message is on a topic for probes of this node or of another one: nodes/ID/pending. */
static inline bool hw_probe_is_asked(const struct hw_message *msg)
{
	static const char before[] = "nodes/", behind[] = "/pending";
	const size_t n = sizeof(before) - 1, tail = sizeof(behind) - 1;
	return msg->topic_len > n + tail && memcmp(msg->topic + msg->topic_len - tail, behind, tail) == 0 &&
	       memcmp(msg->topic, before, n) == 0 && !memchr(msg->topic + n, '/', msg->topic_len - n - tail);
}

/* Returns the device that sent an answer. HW_NIL: the answer matches no probe of the device's present silence, and
 * none of a silence that ended in the last timeout. */
uint32_t hw_probe_answered_by(const struct hw_monitor *m, struct hw_now now, const struct hw_message *msg);

#endif
