/* SPDX-License-Identifier: MIT */
/*
 * A binary heap of due times. An entry is embedded in the caller's struct and contains its position in the heap, so
 * that it can be moved or removed. hw_dues_reserve() allocates memory; no other function can fail.
 *
 * Cost: O(log n) for each change, and 8 bytes for each entry in addition to the entry itself.
 */
#ifndef HW_INCIDENT_DUE_H
#define HW_INCIDENT_DUE_H

#include <stddef.h>
#include <stdint.h>

#define HW_DUE_NEVER INT64_MAX

struct hw_due {
	int64_t at;      /* ms, in the time of the incidents */
	uint32_t at_pos; /* its position in the heap plus one; 0: not in the heap */
};

struct hw_dues {
	struct hw_due **heap;
	size_t n, cap;
};

void hw_dues_fini(struct hw_dues *q);
/* Makes room for `n` entries. Returns 0 or -ENOMEM. */
int hw_dues_reserve(struct hw_dues *q, size_t n);
/* Sets the time of an entry; HW_DUE_NEVER removes it. Room for it must be reserved. */
void hw_dues_set(struct hw_dues *q, struct hw_due *d, int64_t at);
/* The entry that is due first; NULL: none. */
struct hw_due *hw_dues_first(const struct hw_dues *q);

#endif
