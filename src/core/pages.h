/* SPDX-License-Identifier: MIT */
/*
 * Memory for the registry's arrays: zeroed, aligned to a cache line, and, from 256 KiB on, growing without a copy.
 *
 * From 256 KiB on, memory is mapped, so that growing moves pages instead of copying bytes. From 16 MiB on, heartwheel
 * advises huge pages, so that look-ups in random order miss the TLB less often. Huge pages waste up to 2 MiB, which is
 * too much for smaller arrays.
 */
#ifndef HEARTWHEEL_CORE_PAGES_H
#define HEARTWHEEL_CORE_PAGES_H

#include <stddef.h>

/*
 * Grows memory from `was` to `is` bytes. The first `was` bytes are kept, the others are zero. `p` is memory of `was`
 * bytes that this function returned (NULL if `was` is 0), and is invalid afterwards. Memory never shrinks. Returns NULL
 * if memory cannot be allocated; `p` is then unchanged.
 */
void *hw_pages_grow(void *p, size_t was, size_t is);

/* Maps one huge page, or small pages in its place, aligned to its size. Returns NULL if memory cannot be mapped. */
#define HW_PAGES_HUGE ((size_t)2 << 20)
void *hw_pages_huge(void);

/* Frees memory of this size. NULL with size 0 is allowed. */
void hw_pages_free(void *p, size_t size);

#endif
