/* SPDX-License-Identifier: MIT */
/*
 * The readable content of a message while it is gathered: the changed devices, their groups and states, and a summary
 * sentence. A device that changes twice counts once for each state. Internal to src/notify.
 *
 * Cost: a transition sets two bits, and adds a line of text until the list is full.
 */
#ifndef HW_NOTIFY_DIGEST_H
#define HW_NOTIFY_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "notify/notification.h"
#include "notify/words.h"

#define HW_DIGEST_NAME    640  /* bytes of an id as shown */
#define HW_DIGEST_SUMMARY 1536 /* bytes of the longest summary */

struct hw_digest {
	const struct hw_monitor *m; /* borrowed */
	struct hw_lines list;
	/* One bit for each device, by its index: it has changed to this state. The last array: it has changed at all.
	 */
	uint8_t *seen[HW_STATES + 1];
	size_t seen_bytes;
	uint64_t devices, changes;   /* number of changed devices, and of changes */
	uint64_t count[HW_STATES];   /* devices that changed to this state */
	uint16_t group;              /* of the first device */
	bool groups;                 /* the devices are in several groups */
	char device[HW_DIGEST_NAME]; /* the first device */
	enum hw_state state;         /* of the last transition */
	enum hw_reason reason;
	int64_t silent_ms;      /* the longest silence of the offline devices */
	int64_t from_ms, to_ms; /* wall clock of the first and the last transition */
	unsigned blind;         /* blindness begins and ends */
	bool blind_begun;       /* of the last of these */
	enum hw_cause blind_cause;
	int64_t blind_ms;
};

/* Returns 0 or -ENOMEM. */
int hw_digest_init(struct hw_digest *d, const struct hw_monitor *m);
void hw_digest_fini(struct hw_digest *d);
void hw_digest_transition(struct hw_digest *d, struct hw_now now, const struct hw_device *device,
                          const struct hw_transition *t);
void hw_digest_blind(struct hw_digest *d, struct hw_now now, const struct hw_out *out);
/* Writes the fields and starts empty again. Returns 0 or -ENOMEM. hw_fields_fini() must be called in both cases. */
int hw_digest_seal(struct hw_digest *d, const char *node, int64_t from_ms, struct hw_fields *out);
/* Writes the fields of a test message. Returns as above. */
int hw_digest_test(const struct hw_digest *d, const char *node, int64_t now_ms, struct hw_fields *out);

#endif
