/* SPDX-License-Identifier: MIT */
/* The ring of edges. Cost: constant per entry, but for the doublings. */
#include "redis/edges.h"

#include <errno.h>
#include <stdlib.h>

#define EDGES_FIRST 256
#define EDGES_KEEP  4096 /* as many are kept when it is empty */

void hw_edges_fini(struct hw_edges *q)
{
	for (uint64_t i = q->head; i != q->tail; i++)
		free(hw_edges_at(q, i)->id);
	free(q->at);
	*q = (struct hw_edges){0};
}

static int grow(struct hw_edges *q)
{
	uint32_t cap = q->cap ? q->cap * 2 : EDGES_FIRST;
	if (q->cap >= 2 * HW_EDGES_MARK)
		return -ENOBUFS;
	struct hw_edge *at = malloc(cap * sizeof(*at));
	if (!at)
		return -ENOMEM;
	for (uint64_t i = q->head; i != q->tail; i++)
		at[i & (cap - 1)] = *hw_edges_at(q, i);
	free(q->at);
	q->at = at;
	q->cap = cap;
	return 0;
}

static int make_room(struct hw_edges *q)
{
	return q->tail - q->head == q->cap ? grow(q) : 0;
}

int hw_edges_push(struct hw_edges *q, const struct hw_edge *e)
{
	int rc = q->tail - q->head - q->again >= HW_EDGES_MARK ? -ENOBUFS : make_room(q);
	if (rc != 0)
		return rc;
	*hw_edges_at(q, q->tail) = *e;
	q->tail++;
	if (!e->acknowledges)
		q->edges++;
	return 0;
}

int hw_edges_put_before(struct hw_edges *q, const struct hw_edge *e)
{
	int rc = make_room(q);
	if (rc != 0)
		return rc;
	q->sent = --q->head;
	*hw_edges_at(q, q->head) = *e;
	hw_edges_at(q, q->head)->again = true;
	q->again++;
	q->edges++;
	return 0;
}

struct hw_edge *hw_edges_at(const struct hw_edges *q, uint64_t place)
{
	return &q->at[place & (q->cap - 1)];
}

void hw_edges_confirm(struct hw_edges *q, uint64_t place)
{
	for (; q->head != place; q->head++) {
		struct hw_edge *e = hw_edges_at(q, q->head);
		if (!e->acknowledges)
			q->edges--;
		if (e->again)
			q->again--;
		free(e->id);
	}
	if (q->head == q->tail && q->cap > EDGES_KEEP) {
		free(q->at);
		q->at = NULL;
		q->cap = 0;
	}
}
