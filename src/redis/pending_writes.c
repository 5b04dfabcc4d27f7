/* SPDX-License-Identifier: MIT */
/*
 * The ring of transitions. Cost: constant for each entry. The ring consists of chunks. A single array that doubles
 * would copy some 14 MB in a turn of the loop when many devices stop or return at once.
 */
#include "redis/pending_writes.h"

#include <errno.h>
#include <stdlib.h>

#define PLACES ((uint64_t)HW_PENDING_WRITES_CHUNKS * HW_PENDING_WRITES_CHUNK)

static struct hw_pending_write **chunk_of(struct hw_pending_writes *q, uint64_t place)
{
	return &q->chunk[place / HW_PENDING_WRITES_CHUNK % HW_PENDING_WRITES_CHUNKS];
}

void hw_pending_writes_fini(struct hw_pending_writes *q)
{
	for (uint64_t i = q->head; i != q->tail; i++)
		free(hw_pending_writes_at(q, i)->id);
	for (unsigned k = 0; k < HW_PENDING_WRITES_CHUNKS; k++)
		free(q->chunk[k]);
	*q = (struct hw_pending_writes){.head = 0};
}

static int make_room(struct hw_pending_writes *q, uint64_t place)
{
	struct hw_pending_write **chunk = chunk_of(q, place);
	if (q->tail - q->head == PLACES)
		return -ENOBUFS;
	if (!*chunk)
		*chunk = malloc(HW_PENDING_WRITES_CHUNK * sizeof(**chunk));
	return *chunk ? 0 : -ENOMEM;
}

/* Frees a chunk that the head has left. In a full ring, the tail already uses the same chunk, so it is kept. */
static void give_back(struct hw_pending_writes *q, uint64_t place)
{
	struct hw_pending_write **chunk = chunk_of(q, place);
	if (q->tail - q->head > PLACES - HW_PENDING_WRITES_CHUNK)
		return;
	free(*chunk);
	*chunk = NULL;
}

static bool is_end(const struct hw_pending_write *e)
{
	return !e->acknowledges && !e->again && e->t.state != HW_STATE_ONLINE;
}

int hw_pending_writes_push(struct hw_pending_writes *q, const struct hw_pending_write *e)
{
	int rc = q->tail - q->head - q->again >= HW_PENDING_WRITES_MAX ? -ENOBUFS : make_room(q, q->tail);
	if (rc != 0)
		return rc;
	*hw_pending_writes_at(q, q->tail) = *e;
	q->tail++;
	q->ends += is_end(e);
	if (!e->acknowledges)
		q->transitions++;
	return 0;
}

int hw_pending_writes_put_before(struct hw_pending_writes *q, const struct hw_pending_write *e)
{
	int rc = make_room(q, q->head - 1);
	if (rc != 0)
		return rc;
	q->sent = --q->head;
	*hw_pending_writes_at(q, q->head) = *e;
	hw_pending_writes_at(q, q->head)->again = true;
	q->again++;
	q->transitions++;
	return 0;
}

struct hw_pending_write *hw_pending_writes_at(const struct hw_pending_writes *q, uint64_t place)
{
	return &q->chunk[place / HW_PENDING_WRITES_CHUNK % HW_PENDING_WRITES_CHUNKS][place % HW_PENDING_WRITES_CHUNK];
}

void hw_pending_writes_confirm(struct hw_pending_writes *q, uint64_t place)
{
	while (q->head != place) {
		struct hw_pending_write *e = hw_pending_writes_at(q, q->head);
		if (!e->acknowledges)
			q->transitions--;
		if (e->again)
			q->again--;
		q->ends -= is_end(e);
		free(e->id);
		if (++q->head % HW_PENDING_WRITES_CHUNK == 0)
			give_back(q, q->head - 1);
	}
}
