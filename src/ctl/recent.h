/* SPDX-License-Identifier: MIT */
/*
 * The hashes of transitions that heartwheelctl has shown: at least the last HW_RECENT, and at most twice as many. An
 * addition takes constant time. Each of the tables `young` and `old` has a quarter of a megabyte, and is allocated at
 * its first use.
 */
#ifndef HW_CTL_RECENT_H
#define HW_CTL_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#define HW_RECENT 16384 /* more transitions than the daemon keeps (HW_HISTORY) */

/* Zeroed at first. */
struct hw_recent {
	uint64_t *young, *old; /* owned; open hash tables; 0: the slot is free. When `young` is full, it becomes
	                        * `old` */
	unsigned n;            /* number of hashes in `young` */
};

/* Adds the hash. Returns whether it was there before. If there is no memory, the hash is not added. */
bool hw_recent_add(struct hw_recent *t, uint64_t hash);
void hw_recent_fini(struct hw_recent *t);

#endif
