/* SPDX-License-Identifier: MIT */
/*
 * Finds the first devices of many in a certain order, for a page of a sorted list. The caller offers the devices one by
 * one. When the page is full and an offered device comes before the last device of the page, it replaces that device.
 * (The page is a heap with the last device at the top.) The page has copies, because a device may be removed between
 * two turns of the loop.
 *
 * Cost: one comparison for each offered device, and the logarithm of the page's size for each device that enters the
 * page.
 */
#ifndef HW_CONTROL_RANK_H
#define HW_CONTROL_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/registry.h"
#include "heartwheel/topic.h"

enum hw_order {
	HW_ORDER_KNOWN,  /* in the order in which they became known: no ranking */
	HW_ORDER_ID,     /* by bytes */
	HW_ORDER_NEWEST, /* the latest change of state first; ties by record */
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
	bool back; /* reverse order */
	size_t cap, n;
	size_t offered;          /* including those not kept */
	struct hw_ranked *items; /* owned */
	struct hw_ranked **heap; /* owned; into items */
	bool has_floor;
	struct hw_ranked floor; /* only devices after it are kept */
};

/* Keeps the first `cap` devices of the order, or of the reverse order. Returns 0 or -ENOMEM. */
int hw_rank_init(struct hw_rank *r, enum hw_order order, bool back, size_t cap);
void hw_rank_fini(struct hw_rank *r);

void hw_rank_offer(struct hw_rank *r, const struct hw_device *d, struct hw_ref ref);
/* Sorts the kept devices into heap[0 .. n). After this, no device may be offered. */
void hw_rank_sort(struct hw_rank *r);

/* hw_rank_place(): writes the position of an item as text. hw_rank_floor(): sets the begin of a page from such a text,
 * or returns -EINVAL. */
#define HW_RANK_PLACE_MAX (HW_ID_MAX + 1)
void hw_rank_place(const struct hw_rank *r, const struct hw_ranked *item, char buf[HW_RANK_PLACE_MAX]);
int hw_rank_floor(struct hw_rank *r, const char *place, size_t len);

#endif
