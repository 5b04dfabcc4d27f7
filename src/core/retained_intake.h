/* SPDX-License-Identifier: MIT */
/*
 * Messages with the retain flag. A broker sets the flag if it delivers a message only because the message is retained.
 * A bridge that reconnects publishes all retained messages of its other broker with the flag. They include messages of
 * devices that stopped long ago. So such a message proves nothing about a device, with the exceptions below. Private to
 * the core.
 */
#ifndef HW_RETAINED_INTAKE_H
#define HW_RETAINED_INTAKE_H

#include "monitor_priv.h"

/* A message on its way through the batch. */
struct hw_intake {
	enum hw_match match;
	uint16_t group;
	const struct hw_topic *by; /* the template that matched */
	uint32_t filter;           /* index of the matching filter among the filters of all groups, as in
	                            * hw_hearing.brought[] */
	const char *id;            /* with the group's prefix */
	size_t id_len;
};

/* Whether states are learned from the retained messages on this topic. Only without a store does heartwheel ask for
 * retained messages, on status topics. */
bool hw_retained_is_adopted(const struct hw_monitor *m, const struct hw_message *msg);

/* Whether the broker delivers a message only because it is retained. */
static inline bool hw_retained_is_history(const struct hw_monitor *m, const struct hw_message *msg)
{
	return msg->retained && (!m->conf.as_published || hw_retained_is_adopted(m, msg));
}

/* Whether a message has the retain flag and its group does not accept such messages. */
static inline bool hw_retained_is_flagged(const struct hw_monitor *m, const struct hw_message *msg, uint16_t group)
{
	return msg->retained && !m->groups.all[group]->retained;
}

/* Learns a device's state from a retained status. Without a store, heartwheel learns the state of its previous run only
 * from the retained statuses that it published. A device that has moved to another group may have a status on the topic
 * of each group, and the broker may deliver them in any order. */
void hw_retained_adopt(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                       const struct hw_intake *in, struct hw_payload *p);
/* Counts as refused a flagged message (hw_retained_is_flagged()) that proves nothing about its device. */
void hw_retained_refuse(struct hw_monitor *m, uint16_t group);
/* Whether a flagged message (hw_retained_is_flagged()) counts for the device `i` (HW_NIL: not looked up yet). If not,
 * the message is counted as refused. */
bool hw_retained_counts(struct hw_monitor *m, struct hw_now now, const struct hw_message *msg,
                        const struct hw_intake *in, uint32_t i, const struct hw_payload *payload);

#endif
