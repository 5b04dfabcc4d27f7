/* SPDX-License-Identifier: MIT */
/*
 * Ids are in cells, cells are in chunks, and chunks are in huge pages: see idstore.h.
 *
 * A chunk is aligned to its size, so clearing the low bits of a cell's address gives the address of its chunk.
 * Invariant: a chunk is on the list of its class, and a page on the store's list, if and only if it has room. Cost: put
 * and drop are O(1).
 */
#include "core/idstore.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/pages.h"

#define CHUNK_ALIGN ((size_t)16384)
/* 16 bytes less than the alignment: the allocator puts a word of its own before each chunk, so chunks have no gaps. */
#define CHUNK_SIZE  (CHUNK_ALIGN - 16)
#define CELL_STEP   ((size_t)8)
#define SMALL       (((size_t)16 << 20) / CHUNK_ALIGN) /* from this number of chunks on, huge pages are worth their cost */
#define PAGE_CHUNKS ((uint32_t)(HW_PAGES_HUGE / CHUNK_ALIGN))

/* Unused memory: a cell of a chunk, or a chunk of a page. */
struct unused {
	struct unused *next;
};

struct hw_idpage {
	struct hw_idlink link;
	uint8_t *memory;
	struct unused *free; /* chunks that were in use before */
	uint32_t fresh;      /* chunks never in use, at the end of the page */
	uint32_t live;
};

/* Aligned to a cache line, so that a cell of 8, 16, 32 or 64 bytes never crosses a line. */
struct hw_idchunk {
	_Alignas(64) struct hw_idlink link;
	struct hw_idpage *page; /* NULL: the chunk is from malloc */
	struct unused *free;    /* cells that were in use before */
	uint32_t fresh;         /* cells at the end of the chunk that were never used and whose memory is untouched */
	uint32_t live;
};

static size_t class_of(size_t len)
{
	return len / CELL_STEP; /* An id takes len + 1 bytes, rounded up to whole steps. Class 0 is one step. */
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

static void put_on(struct hw_idlink **list, struct hw_idlink *l)
{
	*l = (struct hw_idlink){.next = *list};
	if (*list != NULL)
		(*list)->prev = l;
	*list = l;
}

static void take_off(struct hw_idlink **list, struct hw_idlink *l)
{
	if (l->next != NULL)
		l->next->prev = l->prev;
	if (l->prev != NULL)
		l->prev->next = l->next;
	else
		*list = l->next;
}

/* --- pages -------------------------------------------------------------------------------------------------------- */

static struct hw_idpage *page_with_room(struct hw_idstore *s)
{
	if (s->pages != NULL)
		return (struct hw_idpage *)(void *)s->pages;
	struct hw_idpage *page = malloc(sizeof(*page));
	uint8_t *memory = page != NULL ? hw_pages_huge() : NULL;
	if (memory == NULL) {
		free(page);
		return NULL;
	}
	*page = (struct hw_idpage){.memory = memory, .fresh = PAGE_CHUNKS};
	put_on(&s->pages, &page->link);
	return page;
}

static bool page_is_full(const struct hw_idpage *page)
{
	return page->free == NULL && page->fresh == 0;
}

static void *page_take(struct hw_idstore *s, struct hw_idpage *page)
{
	void *memory;
	if (page->free != NULL) {
		memory = page->free;
		page->free = page->free->next;
	} else {
		memory = page->memory + (PAGE_CHUNKS - page->fresh--) * CHUNK_ALIGN;
	}
	page->live++;
	if (page_is_full(page))
		take_off(&s->pages, &page->link);
	return memory;
}

static void page_give(struct hw_idstore *s, struct hw_idpage *page, void *memory)
{
	if (page_is_full(page))
		put_on(&s->pages, &page->link);
	struct unused *chunk = memory;
	chunk->next = page->free;
	page->free = chunk;
	if (--page->live > 0)
		return;
	take_off(&s->pages, &page->link);
	hw_pages_free(page->memory, HW_PAGES_HUGE);
	free(page);
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

static struct hw_idchunk *chunk_new(struct hw_idstore *s, size_t class)
{
	struct hw_idpage *page = NULL;
	void *memory;
	if (s->small < SMALL) {
		if (posix_memalign(&memory, CHUNK_ALIGN, CHUNK_SIZE) != 0)
			return NULL;
		s->small++;
	} else {
		page = page_with_room(s);
		if (page == NULL)
			return NULL;
		memory = page_take(s, page);
	}
	struct hw_idchunk *chunk = memory;
	*chunk = (struct hw_idchunk){.page = page, .fresh = capacity(class)};
	put_on(&s->partial[class], &chunk->link);
	return chunk;
}

static void chunk_free(struct hw_idstore *s, struct hw_idchunk *chunk)
{
	if (chunk->page != NULL) {
		page_give(s, chunk->page, chunk);
		return;
	}
	s->small--;
	free(chunk);
}

static bool chunk_is_full(const struct hw_idchunk *chunk)
{
	return chunk->free == NULL && chunk->fresh == 0;
}

void hw_idstore_init(struct hw_idstore *s)
{
	*s = (struct hw_idstore){.pages = NULL};
}

uint8_t *hw_idstore_put(struct hw_idstore *s, const char *id, size_t len)
{
	size_t class = class_of(len);
	struct hw_idchunk *chunk = (struct hw_idchunk *)(void *)s->partial[class];
	if (chunk == NULL)
		chunk = chunk_new(s, class);
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
	if (chunk_is_full(chunk))
		take_off(&s->partial[class], &chunk->link);
	cell[0] = (uint8_t)len;
	memcpy(cell + 1, id, len);
	return cell;
}

void hw_idstore_drop(struct hw_idstore *s, uint8_t *id)
{
	size_t class = class_of(id[0]);
	struct hw_idchunk *chunk = chunk_of(id);
	if (chunk_is_full(chunk))
		put_on(&s->partial[class], &chunk->link);
	struct unused *cell = (struct unused *)(void *)id;
	cell->next = chunk->free;
	chunk->free = cell;
	if (--chunk->live > 0)
		return;
	take_off(&s->partial[class], &chunk->link);
	chunk_free(s, chunk);
}
