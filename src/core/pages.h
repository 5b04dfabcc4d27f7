/* SPDX-License-Identifier: MIT */
/*
 * Memory for the registry's arrays: zeroed, aligned to a cache line, growing without being copied once it is large.
 *
 * From 256 KiB on it is mapped on its own, so that growing moves pages and copies nothing. From 16 MiB on the machine
 * is asked for huge pages: look-ups in random order then find their translations near. That costs at most 2 MiB that
 * are not used yet: too much of less.
 */
#ifndef HEARTWHEEL_CORE_PAGES_H
#define HEARTWHEEL_CORE_PAGES_H

#include <stddef.h>

/*
 * Memory of `is` bytes with what was in the first `was` of them, and zeroes behind. `p` is NULL if and only if `was` is
 * 0, otherwise what this function returned for `was`; it grows only, and is not valid afterwards. NULL without memory;
 * then `p` is as before.
 */
void *hw_pages_grow(void *p, size_t was, size_t is);

/* One huge page, or small ones in its place, aligned to its size. NULL without memory. */
#define HW_PAGES_HUGE ((size_t)2 << 20)
void *hw_pages_huge(void);

/* Gives memory of this size back; NULL with 0 is nothing. */
void hw_pages_free(void *p, size_t size);

#endif
