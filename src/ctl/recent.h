/* SPDX-License-Identifier: MIT */
/*
 * The hashes of transitions that heartwheelctl has shown: at least the last HW_RECENT, at most twice as many. Cost:
 * constant. Each of its two tables has a quarter of a megabyte and is allocated when it is needed.
 */
#ifndef HW_CTL_RECENT_H
#define HW_CTL_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#define HW_RECENT 16384 /* more than the daemon remembers of transitions (HW_HISTORY) */

/* Zeroed at first. */
struct hw_recent {
	uint64_t *young, *old; /* owned: open addressing, 0 is empty; `old` was the young one until that was full */
	unsigned n;            /* in the young one */
};

/* Keeps the hash. Returns whether it was kept before. Without memory the hash is not kept. */
bool hw_recent_add(struct hw_recent *t, uint64_t hash);
void hw_recent_fini(struct hw_recent *t);

#endif
