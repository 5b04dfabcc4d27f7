/* SPDX-License-Identifier: MIT */
/* FNV-1a (Fowler, Noll, Vo: "The FNV Non-Cryptographic Hash Algorithm", IETF draft-eastlake-fnv), one byte at a time.
 * Only for short texts that no attacker chooses; for others see siphash.h. The hash is the same on every machine.
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

/* Continues the hash `h`, which starts as HW_FNV64_BEGIN. */
static inline uint64_t hw_fnv64(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	for (size_t k = 0; k < len; k++)
		h = (h ^ p[k]) * UINT64_C(0x100000001b3);
	return h;
}

#endif
