/* SPDX-License-Identifier: MIT */
/*
 * What a message says to people, while it grows: which devices, of which groups, are what now, and how it all reads in
 * a sentence. A device that has changed twice counts once for each state it has been in. Internal to src/notify.
 *
 * Cost: a transition is two bits, and a line of text until the list is full.
 */
#ifndef HW_NOTIFY_DIGEST_H
#define HW_NOTIFY_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/monitor.h"
#include "notify/telling.h"
#include "notify/words.h"

#define HW_DIGEST_NAME    640  /* an id as it is shown */
#define HW_DIGEST_SUMMARY 1536 /* the longest sentence */

struct hw_digest {
	const struct hw_monitor *m; /* borrowed */
	struct hw_lines list;
	/* A bit a device, by its index: whether it has changed, and into which states. */
	uint8_t *seen[HW_STATES + 1];
	size_t seen_bytes;
	uint64_t devices, changes;   /* how many have changed, and how often */
	uint64_t count[HW_STATES];   /* devices that have come to be so */
	uint16_t group;              /* of the first */
	bool groups;                 /* they are of several */
	char device[HW_DIGEST_NAME]; /* the first */
	enum hw_state state;         /* of the last */
	enum hw_reason reason;
	int64_t silent_ms;      /* the longest silence of those that are offline */
	int64_t from_ms, to_ms; /* wall clock, of the first and the last transition */
	unsigned blind;         /* periods that began or ended */
	bool blind_begun;       /* of the last of them */
	enum hw_cause blind_cause;
	int64_t blind_ms;
};

/* 0 or -ENOMEM. */
int hw_digest_init(struct hw_digest *d, const struct hw_monitor *m);
void hw_digest_fini(struct hw_digest *d);
void hw_digest_transition(struct hw_digest *d, struct hw_now now, const struct hw_device *device,
                          const struct hw_transition *t);
void hw_digest_blind(struct hw_digest *d, struct hw_now now, const struct hw_out *out);
/* Says it and begins anew. 0; or -ENOMEM, and hw_fields_fini() is to be called all the same. */
int hw_digest_seal(struct hw_digest *d, const char *node, int64_t from_ms, struct hw_fields *out);
/* Of a message that an operator has asked for, to see whether it arrives. Likewise. */
int hw_digest_test(const struct hw_digest *d, const char *node, int64_t now_ms, struct hw_fields *out);

#endif
