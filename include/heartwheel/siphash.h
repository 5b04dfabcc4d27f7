/* SPDX-License-Identifier: MIT */
/*
 * SipHash-c-d, a keyed hash for short inputs (Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT
 * 2012). It does c rounds for each word and d at the end. The paper proposes 2-4; 1-3 is enough if the hash only
 * spreads the entries of a hash table. The functions are inline, so that the compiler unrolls rounds with constant c
 * and d. Reads no byte outside of the input.
 */
#ifndef HEARTWHEEL_SIPHASH_H
#define HEARTWHEEL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hw_sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t hw_sip_rotl(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

/* Reads eight bytes, the lowest first, on any machine. Compilers turn this into one load. */
static inline uint64_t hw_sip_word(const uint8_t *p)
{
	return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
	       (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

/* Returns the bytes after the last whole word of an input. If the input has more than 8 bytes, reads its last eight
 * bytes and shifts them, because copying single bytes would cost more than a round. */
static inline uint64_t hw_sip_rest(const uint8_t *bytes, size_t len)
{
	size_t left = len % 8;
	if (left == 0) /* `bytes` may be NULL if the input is empty */
		return 0;
	if (len > 8)
		return hw_sip_word(bytes + len - 8) >> (64 - 8 * left);
	uint64_t word = 0;
	for (size_t i = 0; i < left; i++)
		word |= (uint64_t)bytes[i] << 8 * i;
	return word;
}

static inline void hw_sip_rounds(struct hw_sip *s, int n)
{
	for (int i = 0; i < n; i++) {
		s->v0 += s->v1;
		s->v1 = hw_sip_rotl(s->v1, 13) ^ s->v0;
		s->v0 = hw_sip_rotl(s->v0, 32);
		s->v2 += s->v3;
		s->v3 = hw_sip_rotl(s->v3, 16) ^ s->v2;
		s->v0 += s->v3;
		s->v3 = hw_sip_rotl(s->v3, 21) ^ s->v0;
		s->v2 += s->v1;
		s->v1 = hw_sip_rotl(s->v1, 17) ^ s->v2;
		s->v2 = hw_sip_rotl(s->v2, 32);
	}
}

static inline uint64_t hw_siphash(int c, int d, const uint8_t key[16], const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t k0 = hw_sip_word(key), k1 = hw_sip_word(key + 8);
	struct hw_sip s = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
	                   k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
	for (size_t words = len / 8; words > 0; words--, p += 8) {
		uint64_t m = hw_sip_word(p);
		s.v3 ^= m;
		hw_sip_rounds(&s, c);
		s.v0 ^= m;
	}
	uint64_t m = (uint64_t)len << 56 | hw_sip_rest(bytes, len);
	s.v3 ^= m;
	hw_sip_rounds(&s, c);
	s.v0 ^= m;
	s.v2 ^= 0xff;
	hw_sip_rounds(&s, d);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif
