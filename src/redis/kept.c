/* SPDX-License-Identifier: MIT */
/* See kept.h. The ring is built like that of pending_writes.c, but if it is full, its oldest entry is dropped. */
#include "redis/kept.h"

#include <stdlib.h>

#include "heartwheel/time.h"

#define KEPT_FIRST 256

static struct hw_pending_write *at(const struct hw_kept *k, uint64_t place)
{
	return &k->at[place & (k->cap - 1)];
}

static void drop_oldest(struct hw_kept *k)
{
	free(at(k, k->head++)->id);
}

void hw_kept_fini(struct hw_kept *k)
{
	while (k->head != k->tail)
		drop_oldest(k);
	free(k->at);
	*k = (struct hw_kept){0};
}

/* If there is no memory the capacity stays as it is. */
static void resize(struct hw_kept *k, uint32_t cap)
{
	struct hw_pending_write *to = malloc(cap * sizeof(*to));
	if (!to)
		return;
	for (uint64_t i = k->head; i != k->tail; i++)
		to[i & (cap - 1)] = *at(k, i);
	free(k->at);
	k->at = to;
	k->cap = cap;
}

void hw_kept_add(struct hw_kept *k, const struct hw_pending_write *e, int64_t now_ns)
{
	if (k->tail - k->head == k->cap && k->cap < HW_KEPT_MAX)
		resize(k, k->cap ? k->cap * 2 : KEPT_FIRST);
	if (k->cap == 0) {
		free(e->id);
		return;
	}
	if (k->tail - k->head == k->cap)
		drop_oldest(k);
	struct hw_pending_write *kept = at(k, k->tail++);
	*kept = *e;
	kept->queued_ns = now_ns;
}

void hw_kept_expire(struct hw_kept *k, int64_t now_ns)
{
	while (k->head != k->tail && now_ns - at(k, k->head)->queued_ns > HW_KEPT_MS * HW_NS_PER_MS)
		drop_oldest(k);
	if (k->head == k->tail)
		hw_kept_fini(k);
	else if (k->cap > KEPT_FIRST && k->tail - k->head <= k->cap / 4)
		resize(k, k->cap / 2);
}

uint32_t hw_kept_put_back(struct hw_kept *k, struct hw_pending_writes *q, int64_t now_ns)
{
	uint32_t n = 0;
	while (k->head != k->tail) {
		struct hw_pending_write e = *at(k, k->tail - 1);
		e.queued_ns = now_ns;
		if (hw_pending_writes_put_before(q, &e) != 0)
			break;
		k->tail--;
		n++;
	}
	hw_kept_fini(k);
	return n;
}
