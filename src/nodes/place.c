/* SPDX-License-Identifier: MIT */
#include "nodes/place.h"

#include <stdio.h>

#include "heartwheel/print.h"

#define PRIME1 UINT64_C(0x9e3779b185ebca87)
#define PRIME2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME3 UINT64_C(0x165667b19e3779f9)
#define PRIME4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME5 UINT64_C(0x27d4eb2f165667c5)

/* The lowest byte first, on any machine. */
static uint64_t word(const uint8_t *p, int bytes)
{
	uint64_t w = 0;
	for (int i = 0; i < bytes; i++)
		w |= (uint64_t)p[i] << 8 * i;
	return w;
}

static uint64_t rotl(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static uint64_t mix(uint64_t acc, uint64_t lane)
{
	return rotl(acc + lane * PRIME2, 31) * PRIME1;
}

/* Adds whole stripes of 32 bytes. Each of four sums takes one word of each stripe. */
static uint64_t stripes(const uint8_t **p, const uint8_t *end)
{
	uint64_t acc[4] = {PRIME1 + PRIME2, PRIME2, 0, -PRIME1}, h = 0;
	static const int turn[4] = {1, 7, 12, 18};
	for (; end - *p >= 32; *p += 32)
		for (int i = 0; i < 4; i++)
			acc[i] = mix(acc[i], word(*p + 8 * i, 8));
	for (int i = 0; i < 4; i++)
		h += rotl(acc[i], turn[i]);
	for (int i = 0; i < 4; i++)
		h = (h ^ mix(0, acc[i])) * PRIME1 + PRIME4;
	return h;
}

uint64_t hw_xxh64(const void *data, size_t len)
{
	const uint8_t *p = data, *end = p + len;
	uint64_t h = (len >= 32 ? stripes(&p, end) : PRIME5) + len;
	for (; end - p >= 8; p += 8)
		h = rotl(h ^ mix(0, word(p, 8)), 27) * PRIME1 + PRIME4;
	for (; end - p >= 4; p += 4)
		h = rotl(h ^ word(p, 4) * PRIME1, 23) * PRIME2 + PRIME3;
	for (; p < end; p++)
		h = rotl(h ^ *p * PRIME5, 11) * PRIME1;
	h = (h ^ h >> 33) * PRIME2;
	h = (h ^ h >> 29) * PRIME3;
	return h ^ h >> 32;
}

uint64_t hw_partition_weight(unsigned p, const char *node)
{
	char text[96];
	return hw_xxh64(text, hw_print(text, sizeof(text), "%u %s", p, node));
}
