/* SPDX-License-Identifier: MIT */
/*
 * What was told before, by its hash: at least the last HW_RECENT, and at most twice as many. Cost: constant; two tables
 * of a quarter of a megabyte, which are there once they are needed.
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

/* Notes it, and says whether it was noted before. Without memory it is forgotten. */
bool hw_recent_add(struct hw_recent *t, uint64_t hash);
void hw_recent_fini(struct hw_recent *t);

#endif
