/* SPDX-License-Identifier: MIT */
/*
 * Ids in chunks of equal cells: see idstore.h.
 *
 * A chunk is aligned to its size, so that a cell finds its chunk's head by masking its own address. A chunk is on its
 * class's list if and only if it has room. Cost: put and drop are O(1).
 */
#include "core/idstore.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_ALIGN ((size_t)16384)
/* 16 bytes short of the alignment: with the allocator's own word before it, chunks lie back to back. */
#define CHUNK_SIZE (CHUNK_ALIGN - 16)
#define CELL_STEP  ((size_t)8)

/* A free cell. */
struct cell {
	struct cell *next;
};

struct hw_idchunk {
	struct hw_idchunk *next, *prev; /* on the class's list of those with room */
	struct cell *free;              /* cells that were used once */
	uint32_t fresh;                 /* cells never used: the last ones of the chunk; untouched memory until then */
	uint32_t live;
};

static size_t class_of(size_t len)
{
	return len / CELL_STEP; /* with the length byte: len + 1 bytes, rounded up to a step, less one step */
}

static size_t cell_size(size_t class)
{
	return (class + 1) * CELL_STEP;
}

static uint32_t capacity(size_t class)
{
	return (uint32_t)((CHUNK_SIZE - sizeof(struct hw_idchunk)) / cell_size(class));
}

static struct hw_idchunk *chunk_of(uint8_t *id)
{
	return (struct hw_idchunk *)(void *)(id - ((uintptr_t)id & (CHUNK_ALIGN - 1)));
}

static void list(struct hw_idstore *s, size_t class, struct hw_idchunk *chunk)
{
	chunk->next = s->partial[class]; /* `prev` is NULL: it is new, or was the first when it filled up */
	if (chunk->next != NULL)
		chunk->next->prev = chunk;
	s->partial[class] = chunk;
}

static void unlist(struct hw_idstore *s, size_t class, struct hw_idchunk *chunk)
{
	if (chunk->next != NULL)
		chunk->next->prev = chunk->prev;
	if (chunk->prev != NULL)
		chunk->prev->next = chunk->next;
	else
		s->partial[class] = chunk->next;
}

static struct hw_idchunk *chunk_with_room(struct hw_idstore *s, size_t class)
{
	if (s->partial[class] != NULL)
		return s->partial[class];
	void *memory;
	if (posix_memalign(&memory, CHUNK_ALIGN, CHUNK_SIZE) != 0)
		return NULL;
	struct hw_idchunk *chunk = memory;
	*chunk = (struct hw_idchunk){.fresh = capacity(class)};
	list(s, class, chunk);
	return chunk;
}

void hw_idstore_init(struct hw_idstore *s)
{
	*s = (struct hw_idstore){{NULL}};
}

uint8_t *hw_idstore_put(struct hw_idstore *s, const char *id, size_t len)
{
	size_t class = class_of(len);
	struct hw_idchunk *chunk = chunk_with_room(s, class);
	if (chunk == NULL)
		return NULL;
	uint8_t *cell;
	if (chunk->free != NULL) {
		cell = (uint8_t *)chunk->free;
		chunk->free = chunk->free->next;
	} else {
		cell = (uint8_t *)(chunk + 1) + (capacity(class) - chunk->fresh--) * cell_size(class);
	}
	chunk->live++;
	if (chunk->free == NULL && chunk->fresh == 0)
		unlist(s, class, chunk);
	cell[0] = (uint8_t)len;
	memcpy(cell + 1, id, len);
	return cell;
}

void hw_idstore_drop(struct hw_idstore *s, uint8_t *id)
{
	size_t class = class_of(id[0]);
	struct hw_idchunk *chunk = chunk_of(id);
	if (chunk->free == NULL && chunk->fresh == 0)
		list(s, class, chunk);
	struct cell *cell = (struct cell *)(void *)id;
	cell->next = chunk->free;
	chunk->free = cell;
	if (--chunk->live == 0) {
		unlist(s, class, chunk);
		free(chunk);
	}
}
