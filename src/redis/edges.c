/* SPDX-License-Identifier: MIT */
/*
 * The ring of edges. Cost: constant per entry. It was one array that doubled: at a mass death or return a turn of the
 * loop then copied some 14 MB into memory that was new.
 */
#include "redis/edges.h"

#include <errno.h>
#include <stdlib.h>

#define PLACES ((uint64_t)HW_EDGES_CHUNKS * HW_EDGES_CHUNK)

static struct hw_edge **chunk_of(struct hw_edges *q, uint64_t place)
{
	return &q->chunk[place / HW_EDGES_CHUNK % HW_EDGES_CHUNKS];
}

void hw_edges_fini(struct hw_edges *q)
{
	for (uint64_t i = q->head; i != q->tail; i++)
		free(hw_edges_at(q, i)->id);
	for (unsigned k = 0; k < HW_EDGES_CHUNKS; k++)
		free(q->chunk[k]);
	*q = (struct hw_edges){.head = 0};
}

static int make_room(struct hw_edges *q, uint64_t place)
{
	struct hw_edge **chunk = chunk_of(q, place);
	if (q->tail - q->head == PLACES)
		return -ENOBUFS;
	if (!*chunk)
		*chunk = malloc(HW_EDGES_CHUNK * sizeof(**chunk));
	return *chunk ? 0 : -ENOMEM;
}

/* The head has left a chunk. In a full ring the tail is in the same one. */
static void give_back(struct hw_edges *q, uint64_t place)
{
	struct hw_edge **chunk = chunk_of(q, place);
	if (q->tail - q->head > PLACES - HW_EDGES_CHUNK)
		return;
	free(*chunk);
	*chunk = NULL;
}

static bool is_end(const struct hw_edge *e)
{
	return !e->acknowledges && !e->again && e->t.state != HW_STATE_ONLINE;
}

int hw_edges_push(struct hw_edges *q, const struct hw_edge *e)
{
	int rc = q->tail - q->head - q->again >= HW_EDGES_MARK ? -ENOBUFS : make_room(q, q->tail);
	if (rc != 0)
		return rc;
	*hw_edges_at(q, q->tail) = *e;
	q->tail++;
	q->ends += is_end(e);
	if (!e->acknowledges)
		q->edges++;
	return 0;
}

int hw_edges_put_before(struct hw_edges *q, const struct hw_edge *e)
{
	int rc = make_room(q, q->head - 1);
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
	return &q->chunk[place / HW_EDGES_CHUNK % HW_EDGES_CHUNKS][place % HW_EDGES_CHUNK];
}

void hw_edges_confirm(struct hw_edges *q, uint64_t place)
{
	while (q->head != place) {
		struct hw_edge *e = hw_edges_at(q, q->head);
		if (!e->acknowledges)
			q->edges--;
		if (e->again)
			q->again--;
		q->ends -= is_end(e);
		free(e->id);
		if (++q->head % HW_EDGES_CHUNK == 0)
			give_back(q, q->head - 1);
	}
}
