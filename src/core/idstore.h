/* SPDX-License-Identifier: MIT */
/*
 * The memory of the registry's ids: a length byte and the bytes, each id stored once.
 *
 * A separate allocation costs up to 24 bytes more than the id. So ids of about one length (in steps of 8 bytes) share
 * chunks of 16 KiB, and an id costs only 1 to 8 bytes more than its length. The disadvantage: after many removals,
 * chunks may be nearly empty.
 *
 * The first 16 MiB of chunks are from malloc, and a chunk is freed with its last id. Further chunks are parts of huge
 * pages, because a look-up in random order would miss the TLB of small pages. A huge page is unmapped with its last
 * chunk.
 */
#ifndef HEARTWHEEL_CORE_IDSTORE_H
#define HEARTWHEEL_CORE_IDSTORE_H

#include <stddef.h>
#include <stdint.h>

#define HW_IDSTORE_CLASSES 32

/* An element of a list of chunks, or of pages, that have room. */
struct hw_idlink {
	struct hw_idlink *next, *prev;
};

struct hw_idstore {
	struct hw_idlink *partial[HW_IDSTORE_CLASSES]; /* per class (size of the cells): chunks that have room */
	struct hw_idlink *pages;                       /* huge pages that have room for a chunk */
	size_t small;                                  /* number of chunks that are from malloc */
};

void hw_idstore_init(struct hw_idstore *s);

/* Copies an id of 1-255 bytes. Returns the copy, its length byte first; NULL: no memory. The copy does not move. */
uint8_t *hw_idstore_put(struct hw_idstore *s, const char *id, size_t len);

/* Frees an id that hw_idstore_put() returned. A store without ids holds no memory. */
void hw_idstore_drop(struct hw_idstore *s, uint8_t *id);

#endif
