/* SPDX-License-Identifier: MIT */
/*
 * Where the registry keeps ids: a length byte and the bytes, each stored once.
 *
 * An allocation of its own for each id would cost up to 24 bytes beside it. Here ids of about one length (in steps of
 * 8 bytes) share chunks of 16 KiB, so that an id costs 1 to 8 bytes beside it. What it may cost: chunks that are nearly
 * empty, if many ids are dropped here and there.
 *
 * The first 16 MiB of chunks are the allocator's, and go back to it when their last id is dropped. Further ones are cut
 * out of huge pages, since a look-up in random order misses the translation of a small page as well as the id itself;
 * such a page goes back to the machine with its last chunk.
 */
#ifndef HEARTWHEEL_CORE_IDSTORE_H
#define HEARTWHEEL_CORE_IDSTORE_H

#include <stddef.h>
#include <stdint.h>

#define HW_IDSTORE_CLASSES 32

/* On a list of those with room. */
struct hw_idlink {
	struct hw_idlink *next, *prev;
};

struct hw_idstore {
	struct hw_idlink *partial[HW_IDSTORE_CLASSES]; /* chunks, by size of their cells; the rest: none */
	struct hw_idlink *pages;                       /* huge pages */
	size_t small;                                  /* chunks that are the allocator's */
};

void hw_idstore_init(struct hw_idstore *s);

/* Copies an id of 1-255 bytes. Returns it, its length byte first, or NULL without memory. It does not move. */
uint8_t *hw_idstore_put(struct hw_idstore *s, const char *id, size_t len);

/* Frees an id that hw_idstore_put() returned. A store whose ids are all dropped holds no memory. */
void hw_idstore_drop(struct hw_idstore *s, uint8_t *id);

#endif
