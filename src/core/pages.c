/* SPDX-License-Identifier: MIT */
/* Memory for the registry's arrays: see pages.h. */
#include "core/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE    ((size_t)64)
#define LARGE   ((size_t)256 << 10)
#define ADVISED (8 * HW_PAGES_HUGE)

static size_t round_up(size_t size, size_t unit)
{
	return (size + unit - 1) / unit * unit;
}

/* Maps aligned huge pages. Maps one page more than needed, then unmaps the parts outside of the alignment. */
static uint8_t *map(size_t size)
{
	void *memory = mmap(NULL, size + HW_PAGES_HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	size_t before = -(uintptr_t)memory & (HW_PAGES_HUGE - 1);
	uint8_t *p = (uint8_t *)memory + before;
	if (before > 0)
		munmap(memory, before);
	munmap(p + size, HW_PAGES_HUGE - before);
	if (size >= ADVISED)
		madvise(p, size, MADV_HUGEPAGE); /* fails without huge pages, which does no harm */
	return p;
}

void *hw_pages_huge(void)
{
	uint8_t *p = map(HW_PAGES_HUGE);
	if (p != NULL)
		madvise(p, HW_PAGES_HUGE, MADV_HUGEPAGE);
	return p;
}

/* Moves the pages without copying. Huge pages stay huge, because both addresses are aligned. Small pages, from before
 * the advice, stay small until the kernel merges them. */
static void *grow_large(void *p, size_t was, size_t is)
{
	if (was == is)
		return p;
	uint8_t *to = map(is);
	if (to == NULL)
		return NULL;
	if (mremap(p, was, was, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
		munmap(to, is);
		return NULL;
	}
	return to;
}

void *hw_pages_grow(void *p, size_t was, size_t is)
{
	if (was >= LARGE)
		return grow_large(p, round_up(was, HW_PAGES_HUGE), round_up(is, HW_PAGES_HUGE));
	uint8_t *to = is >= LARGE ? map(round_up(is, HW_PAGES_HUGE)) : aligned_alloc(LINE, round_up(is, LINE));
	if (to == NULL)
		return NULL;
	if (was > 0)
		memcpy(to, p, was);
	if (is < LARGE)
		memset(to + was, 0, is - was);
	free(p);
	return to;
}

void hw_pages_free(void *p, size_t size)
{
	if (size >= LARGE)
		munmap(p, round_up(size, HW_PAGES_HUGE));
	else
		free(p);
}
