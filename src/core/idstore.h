/* SPDX-License-Identifier: MIT */
/*
 * Where the registry keeps ids: a length byte and the bytes, each stored once.
 *
 * An allocation of its own for each id would cost up to 24 bytes beside it. Here ids of about one length (in steps of
 * 8 bytes) share chunks of 16 KiB, so that an id costs 1 to 8 bytes beside it. A chunk goes back to the allocator when
 * its last id is dropped. What it may cost: chunks that are nearly empty, if many ids are dropped here and there.
 */
#ifndef HEARTWHEEL_CORE_IDSTORE_H
#define HEARTWHEEL_CORE_IDSTORE_H

#include <stddef.h>
#include <stdint.h>

#define HW_IDSTORE_CLASSES 32

struct hw_idchunk;

struct hw_idstore {
	struct hw_idchunk *partial[HW_IDSTORE_CLASSES]; /* chunks with room, by size of their cells; the rest: none */
};

void hw_idstore_init(struct hw_idstore *s);

/* Copies an id of 1-255 bytes. Returns it, its length byte first, or NULL without memory. It does not move. */
uint8_t *hw_idstore_put(struct hw_idstore *s, const char *id, size_t len);

/* Frees an id that hw_idstore_put() returned. A store whose ids are all dropped holds no memory. */
void hw_idstore_drop(struct hw_idstore *s, uint8_t *id);

#endif
