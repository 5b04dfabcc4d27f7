/* SPDX-License-Identifier: MIT */
/*
 * FNV-1a (Fowler, Noll, Vo: "The FNV Non-Cryptographic Hash Algorithm", IETF draft-eastlake-fnv): a byte at a time, for
 * short texts that nobody chooses so that they collide; else see core/siphash.h. The same on every machine.
 */
#ifndef HEARTWHEEL_FNV_H
#define HEARTWHEEL_FNV_H

#include <stddef.h>
#include <stdint.h>

#define HW_FNV64_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint32_t hw_fnv32(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint32_t h = UINT32_C(0x811c9dc5);
	for (size_t k = 0; k < len; k++)
		h = (h ^ p[k]) * UINT32_C(0x01000193);
	return h;
}

/* Goes on from `h`, which is HW_FNV64_BEGIN at first. */
static inline uint64_t hw_fnv64(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	for (size_t k = 0; k < len; k++)
		h = (h ^ p[k]) * UINT64_C(0x100000001b3);
	return h;
}

#endif
