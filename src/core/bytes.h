/* SPDX-License-Identifier: MIT */
/* Compares and searches short byte strings (ids, levels of topics) in place. Reads 8 to 16 bytes as two words, which
 * may overlap, without a call. Reads no byte outside the input. */
#ifndef HEARTWHEEL_CORE_BYTES_H
#define HEARTWHEEL_CORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hw_bytes_word(const void *p)
{
	uint64_t word;
	memcpy(&word, p, sizeof(word));
	return word;
}

static inline bool hw_bytes_equal(const void *a, const void *b, size_t len)
{
	const uint8_t *p = a, *q = b;
	if (len < 8 || len > 16)
		return memcmp(a, b, len) == 0;
	uint64_t first = hw_bytes_word(p) ^ hw_bytes_word(q);
	uint64_t last = hw_bytes_word(p + len - 8) ^ hw_bytes_word(q + len - 8);
	return (first | last) == 0;
}

/* Returns a number that is not zero if a byte of the word is `c` (Mycroft's test; Knuth, TAOCP 7.1.3). */
static inline uint64_t hw_bytes_has(uint64_t word, uint8_t c)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t x = word ^ ones * c;
	return (x - ones) & ~x & ones << 7;
}

static inline bool hw_bytes_contain(const void *p, uint8_t c, size_t len)
{
	const uint8_t *q = p;
	if (len < 8 || len > 16)
		return memchr(p, c, len) != NULL;
	return (hw_bytes_has(hw_bytes_word(q), c) | hw_bytes_has(hw_bytes_word(q + len - 8), c)) != 0;
}

#endif
