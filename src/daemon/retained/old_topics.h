/* SPDX-License-Identifier: MIT */
/*
 * Removes retained statuses that are out of date, because their devices have moved to other topics. Without a store,
 * the next run would adopt them: a device would be in its old group, and a forgotten device would be known again.
 *
 * An old status is removed when the broker has acknowledged the device's present status, so a crash between the two
 * loses no state. At most OLD_TOPICS_MAX topics wait. Further topics keep their old statuses, and this is logged.
 */
#ifndef HW_DAEMON_OLD_TOPICS_H
#define HW_DAEMON_OLD_TOPICS_H

#include "daemon/config/settings.h"
#include "daemon/context.h"
#include "retained_sink.h"

#define HW_OLD_TOPIC_PUBLISH_ID (UINT64_C(1) << 61)
#define HW_OLD_TOPICS_WINDOW    64

struct hw_old_topic {
	char *topic; /* owned; after its NUL the device's id, with a NUL; NULL: the slot is free */
	bool swept;  /* the present status follows in a sweep of the sink */
};

struct hw_old_topics {
	struct hw_old_topic *waiting; /* owned; a ring */
	size_t head, n, cap;
	struct hw_old_topic flight[HW_OLD_TOPICS_WINDOW]; /* by publish id */
	uint64_t next_publish_id;
};

void hw_old_topics_fini(struct hw_old_topics *o);

/* Called when the device has left this group, and its present status is pending. Does nothing if the topic is the
 * same. */
void hw_old_topics_moved(struct hw_app *a, struct hw_now now, struct hw_ref device, uint16_t group);
/* Called when a reload to these settings begins. Does nothing with a store. */
void hw_old_topics_reload(struct hw_app *a, const struct hw_settings *to);

/* Removes statuses as far as the publisher has room, at most *budget, and subtracts their number from *budget. */
void hw_old_topics_pump(struct hw_app *a, unsigned *budget);
void hw_old_topics_down(struct hw_old_topics *o);
/* Called when the broker has answered. Returns the topic, which the caller must free; NULL: the answer is about another
 * message. */
char *hw_old_topics_answered(struct hw_old_topics *o, uint64_t publish_id);

#endif
