/* SPDX-License-Identifier: MIT */
/* Gives each level of the topics a number, so that topics are compared by numbers. Internal to the finding of
 * discover; pure. */
#ifndef HW_CTL_DISCOVER_LEVELS_H
#define HW_CTL_DISCOVER_LEVELS_H

#include "ctl/discover_topics.h"

struct hw_level {
	const char *text; /* borrowed from a topic; `len` bytes */
	uint16_t len;
	bool digit;    /* has a digit, as most ids have */
	bool index;    /* a number of at most two digits */
	bool metric;   /* names a measurement, not a device */
	bool command;  /* names messages to devices, or answers to these */
	bool writable; /* can stand in a filter of monitor.conf */
};

struct hw_levels {
	struct hw_level *all; /* by number */
	size_t n;
	uint32_t *tokens; /* of all topics */
	uint32_t *first;  /* topic i has tokens[first[i]] and the following */
};

/* Returns 0 or -ENOMEM. The topics must outlive the levels. */
int hw_levels_init(struct hw_levels *l, const struct hw_topics *t, uint64_t seed);
void hw_levels_fini(struct hw_levels *l);

static inline const uint32_t *hw_levels_of(const struct hw_levels *l, size_t topic)
{
	return l->tokens + l->first[topic];
}

/* Returns a hash of the first `n` levels of a topic, without the levels in the bit set `wild`. */
static inline uint64_t hw_levels_key(const uint32_t *tokens, unsigned n, uint32_t wild)
{
	uint64_t h = UINT64_C(0x9e3779b97f4a7c15) * (n + 1);
	for (unsigned i = 0; i < n; i++) {
		h ^= (wild >> i & 1 ? UINT64_C(0xffffffff) : tokens[i]) + 1;
		h *= UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	return h;
}

/* A map from keys to numbers. Full at `limit` keys. */
struct hw_keymap {
	struct hw_keymap_slot {
		uint64_t key;
		uint32_t value; /* 0: the slot is empty */
	} * slots;
	size_t n, room, limit;
};

/* Returns the value of a key, or 0. */
uint32_t hw_keymap_get(const struct hw_keymap *m, uint64_t key);
/* Returns a pointer to the value of a key. The value of a new key is 0, and the caller must set it to another number
 * at once. NULL: there is no memory, or the table is at its limit. */
uint32_t *hw_keymap_put(struct hw_keymap *m, uint64_t key);
void hw_keymap_fini(struct hw_keymap *m);

#endif
