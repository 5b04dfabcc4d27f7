/* SPDX-License-Identifier: MIT */
/*
 * Probes: a device that is online and silent is asked before its deadline, if its group has probes. Private to the
 * core.
 *
 * None is asked that is not online, said goodbye, is known by its key alone or belongs to another node, nor while the
 * monitor is blind or loads or the group is deaf. Asking is no evidence, and the deadline stays where it is; only an
 * answer, which is a heartbeat, moves it.
 *
 * probe_rate: a device whose turn has not come waits for it in the wheel (HW_FLAG_PACED); one whose turn would come
 * after its deadline is not asked, and counted. A turn that is no longer needed is not given to another.
 *
 * Cost: a group without probes pays for a comparison each time an entry comes due. With probes the entry is looked at
 * once per probe_after instead of once per timeout. No memory: what there is to know stands in the record's bits.
 */
#ifndef HW_PROBE_H
#define HW_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "monitor_priv.h"
#include "verdict.h"

/* An entry of a group with probes came due. Whether it was for a probe; then it is armed again. */
bool hw_probe_due(struct hw_monitor *m, struct hw_now now, uint32_t i, const struct hw_evidence *e);

/* A device that is online is heard. Whether its entry may stand later than it should by now. */
bool hw_probe_heard(struct hw_monitor *m, uint32_t i);

/*
 * A device comes to be this node's to decide about. The owner alone heard what answered its probes: one that was due to
 * be asked by now counts as silent for probe_after, and is asked before it is judged. Whether it is to be armed anew.
 */
bool hw_probe_taken_over(struct hw_monitor *m, struct hw_now now, uint32_t i);

/* Whether a message is on the topic of answers. */
static inline bool hw_probe_is_answer(const struct hw_monitor *m, size_t topics_len, const struct hw_message *msg)
{
	return msg->topic_len == topics_len && memcmp(msg->topic, m->conf.probe_answers, topics_len) == 0;
}

/* Whether a message is on a topic that probes are sent to, ours or another node's: nodes/ID/pending. */
static inline bool hw_probe_is_asked(const struct hw_message *msg)
{
	static const char before[] = "nodes/", behind[] = "/pending";
	const size_t n = sizeof(before) - 1, tail = sizeof(behind) - 1;
	return msg->topic_len > n + tail && memcmp(msg->topic + msg->topic_len - tail, behind, tail) == 0 &&
	       memcmp(msg->topic, before, n) == 0 && !memchr(msg->topic + n, '/', msg->topic_len - n - tail);
}

/* The device that a message on the topic of answers is from, or HW_NIL: what it names is no probe of the silence that
 * lasts, or ended in the last timeout. */
uint32_t hw_probe_answered_by(const struct hw_monitor *m, struct hw_now now, const struct hw_message *msg);

#endif
