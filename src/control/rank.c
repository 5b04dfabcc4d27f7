/* SPDX-License-Identifier: MIT */
/* See rank.h. */
#include "control/rank.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_ids(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
	return c != 0 ? c : a_len == b_len ? 0 : a_len < b_len ? -1 : 1;
}

static int compare_times(enum hw_order order, int64_t a, int64_t b)
{
	if (a == b)
		return 0;
	return (a > b) == (order == HW_ORDER_NEWEST) ? -1 : 1;
}

static int compare_forth(enum hw_order order, const struct hw_ranked *a, const struct hw_ranked *b)
{
	if (order == HW_ORDER_ID)
		return compare_ids(a->id, a->id_len, b->id, b->id_len);
	int c = compare_times(order, a->since_ms, b->since_ms);
	if (c != 0)
		return c;
	return a->device.index == b->device.index ? 0 : a->device.index < b->device.index ? -1 : 1;
}

/* Negative: `a` comes first. */
static int compare(const struct hw_rank *r, const struct hw_ranked *a, const struct hw_ranked *b)
{
	int c = compare_forth(r->order, a, b);
	return r->back ? -c : c;
}

/* The same for a device that is not copied yet. */
static int compare_device_forth(enum hw_order order, const struct hw_device *d, uint32_t index,
                                const struct hw_ranked *b)
{
	if (order == HW_ORDER_ID) {
		struct hw_id id = hw_device_id(d);
		return compare_ids(id.text, id.len, b->id, b->id_len);
	}
	int c = compare_times(order, d->since_ms, b->since_ms);
	if (c != 0)
		return c;
	return index == b->device.index ? 0 : index < b->device.index ? -1 : 1;
}

static int compare_device(const struct hw_rank *r, const struct hw_device *d, uint32_t index, const struct hw_ranked *b)
{
	int c = compare_device_forth(r->order, d, index, b);
	return r->back ? -c : c;
}

int hw_rank_init(struct hw_rank *r, enum hw_order order, bool back, size_t cap)
{
	*r = (struct hw_rank){.order = order, .back = back, .cap = cap};
	r->items = calloc(cap, sizeof(*r->items));
	r->heap = calloc(cap, sizeof(*r->heap));
	if (r->items && r->heap)
		return 0;
	hw_rank_fini(r);
	return -ENOMEM;
}

void hw_rank_fini(struct hw_rank *r)
{
	free(r->items);
	free(r->heap);
	r->items = NULL;
	r->heap = NULL;
}

static void rise(struct hw_rank *r, size_t i)
{
	while (i > 0 && compare(r, r->heap[i], r->heap[(i - 1) / 2]) > 0) {
		struct hw_ranked *parent = r->heap[(i - 1) / 2];
		r->heap[(i - 1) / 2] = r->heap[i];
		r->heap[i] = parent;
		i = (i - 1) / 2;
	}
}

static void sink(struct hw_rank *r, size_t i)
{
	for (;;) {
		size_t worst = i;
		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < r->n; child++)
			if (compare(r, r->heap[child], r->heap[worst]) > 0)
				worst = child;
		if (worst == i)
			return;
		struct hw_ranked *item = r->heap[i];
		r->heap[i] = r->heap[worst];
		r->heap[worst] = item;
		i = worst;
	}
}

static void copy(struct hw_ranked *to, const struct hw_device *d, struct hw_ref ref)
{
	struct hw_id id = hw_device_id(d);
	to->since_ms = d->since_ms;
	to->device = ref;
	to->id_len = (uint8_t)id.len;
	memcpy(to->id, id.text, id.len);
}

void hw_rank_offer(struct hw_rank *r, const struct hw_device *d, struct hw_ref ref)
{
	r->offered++;
	if (r->has_floor && compare_device(r, d, ref.index, &r->floor) <= 0)
		return;
	if (r->n < r->cap) {
		r->heap[r->n] = &r->items[r->n];
		copy(r->heap[r->n], d, ref);
		rise(r, r->n++);
	} else if (compare_device(r, d, ref.index, r->heap[0]) < 0) {
		copy(r->heap[0], d, ref);
		sink(r, 0);
	}
}

void hw_rank_sort(struct hw_rank *r)
{
	size_t n = r->n;
	while (r->n > 1) {
		struct hw_ranked *worst = r->heap[0];
		r->heap[0] = r->heap[--r->n];
		r->heap[r->n] = worst;
		sink(r, 0);
	}
	r->n = n;
}

void hw_rank_place(const struct hw_rank *r, const struct hw_ranked *item, char buf[HW_RANK_PLACE_MAX])
{
	if (r->order == HW_ORDER_ID) {
		memcpy(buf, item->id, item->id_len);
		buf[item->id_len] = '\0';
	} else {
		snprintf(buf, HW_RANK_PLACE_MAX, "%" PRId64 ".%" PRIu32, item->since_ms, item->device.index);
	}
}

int hw_rank_floor(struct hw_rank *r, const char *place, size_t len)
{
	char back[HW_RANK_PLACE_MAX];
	if (len == 0 || len > HW_ID_MAX)
		return -EINVAL;
	if (r->order == HW_ORDER_ID) {
		r->floor.id_len = (uint8_t)len;
		memcpy(r->floor.id, place, len);
	} else {
		if (sscanf(place, "%" SCNd64 ".%" SCNu32, &r->floor.since_ms, &r->floor.device.index) != 2)
			return -EINVAL;
		hw_rank_place(r, &r->floor, back);
		if (strcmp(back, place) != 0)
			return -EINVAL;
	}
	r->has_floor = true;
	return 0;
}
