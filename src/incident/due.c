/* SPDX-License-Identifier: MIT */
#include "incident/due.h"

#include <errno.h>
#include <stdlib.h>

void hw_dues_fini(struct hw_dues *q)
{
	free(q->heap);
	*q = (struct hw_dues){0};
}

int hw_dues_reserve(struct hw_dues *q, size_t n)
{
	if (n <= q->cap)
		return 0;
	size_t cap = n < 64 ? 64 : n + n / 2;
	struct hw_due **heap = realloc(q->heap, cap * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	q->heap = heap;
	q->cap = cap;
	return 0;
}

static void put(struct hw_dues *q, size_t at, struct hw_due *d)
{
	q->heap[at] = d;
	d->at_pos = (uint32_t)at + 1;
}

static void rise(struct hw_dues *q, size_t at, struct hw_due *d)
{
	while (at > 0 && q->heap[(at - 1) / 2]->at > d->at) {
		put(q, at, q->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(q, at, d);
}

static void sink(struct hw_dues *q, size_t at, struct hw_due *d)
{
	for (;;) {
		size_t child = 2 * at + 1;
		if (child + 1 < q->n && q->heap[child + 1]->at < q->heap[child]->at)
			child++;
		if (child >= q->n || q->heap[child]->at >= d->at)
			break;
		put(q, at, q->heap[child]);
		at = child;
	}
	put(q, at, d);
}

static void take_out(struct hw_dues *q, struct hw_due *d)
{
	size_t at = d->at_pos - 1;
	struct hw_due *last = q->heap[--q->n];
	d->at_pos = 0;
	if (last == d)
		return;
	if (at > 0 && q->heap[(at - 1) / 2]->at > last->at)
		rise(q, at, last);
	else
		sink(q, at, last);
}

void hw_dues_set(struct hw_dues *q, struct hw_due *d, int64_t at)
{
	if (d->at_pos && d->at == at)
		return;
	if (d->at_pos)
		take_out(q, d);
	d->at = at;
	if (at != HW_DUE_NEVER)
		rise(q, q->n++, d);
}

struct hw_due *hw_dues_first(const struct hw_dues *q)
{
	return q->n ? q->heap[0] : NULL;
}
