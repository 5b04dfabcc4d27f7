/* SPDX-License-Identifier: MIT */
/*
 * The first few of many devices, in an order: what a page of a sorted list needs. Devices are offered one by one; those
 * that come before the worst that is kept take its place (a heap with the worst on top). What is kept is a copy:
 * devices may go between two turns of the loop.
 *
 * Cost: a comparison for each device that is offered, and the logarithm of the page's size for one that is kept.
 */
#ifndef HW_CONTROL_RANK_H
#define HW_CONTROL_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/registry.h"
#include "heartwheel/topic.h"

enum hw_order {
	HW_ORDER_KNOWN,  /* in which they became known: needs no ranking */
	HW_ORDER_ID,     /* by their bytes */
	HW_ORDER_NEWEST, /* the last change of state first; where it is the same, by record */
	HW_ORDER_OLDEST
};

struct hw_ranked {
	int64_t since_ms;
	struct hw_ref device;
	uint8_t id_len;
	char id[HW_ID_MAX];
};

struct hw_rank {
	enum hw_order order;
	bool back; /* from the order's end */
	size_t cap, n;
	size_t offered;          /* also of what was not kept */
	struct hw_ranked *items; /* owned */
	struct hw_ranked **heap; /* owned; into items */
	bool has_floor;
	struct hw_ranked floor; /* only what comes behind it is kept */
};

/* Room for the first `cap` of the order, or of its reverse. 0 or -ENOMEM. */
int hw_rank_init(struct hw_rank *r, enum hw_order order, bool back, size_t cap);
void hw_rank_fini(struct hw_rank *r);

void hw_rank_offer(struct hw_rank *r, const struct hw_device *d, struct hw_ref ref);
/* The kept, first to last: puts heap[0 .. n) in that order. Nothing may be offered after it. */
void hw_rank_sort(struct hw_rank *r);

/* The place of an item in its order as a text, and from it the floor: -EINVAL if it is none. */
#define HW_RANK_PLACE_MAX (HW_ID_MAX + 1)
void hw_rank_place(const struct hw_rank *r, const struct hw_ranked *item, char buf[HW_RANK_PLACE_MAX]);
int hw_rank_floor(struct hw_rank *r, const char *place, size_t len);

#endif
