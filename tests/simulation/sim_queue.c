/* SPDX-License-Identifier: MIT */
/* See sim_queue.h. A binary heap. */
#include "sim_queue.h"

#include <stdio.h>
#include <stdlib.h>

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_queue_fini(struct sim_queue *q)
{
	free(q->heap);
}

void sim_queue_push(struct sim_queue *q, struct sim_event ev)
{
	if (q->n == q->cap) {
		q->cap = q->cap ? 2 * q->cap : 256;
		q->heap = realloc(q->heap, q->cap * sizeof(*q->heap));
		if (!q->heap) {
			fprintf(stderr, "simulate: out of memory\n");
			exit(2);
		}
	}
	ev.order = q->planned++;
	size_t i = q->n++;
	for (; i > 0 && before(&ev, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = ev;
}

bool sim_queue_pop(struct sim_queue *q, struct sim_event *ev)
{
	if (q->n == 0)
		return false;
	*ev = q->heap[0];
	struct sim_event last = q->heap[--q->n];
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= q->n)
			break;
		if (child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return true;
}
