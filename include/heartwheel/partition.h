/* SPDX-License-Identifier: MIT */
/* Partitions: several nodes divide the fleet by them. A partition is a block of 64 of Redis Cluster's 16,384 hash
 * slots. So a store that is split by slots can be split by partitions. */
#ifndef HEARTWHEEL_PARTITION_H
#define HEARTWHEEL_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_PARTITIONS 256

/* Returns the partition of an id, 0 to 255: CRC16/XMODEM of the whole id, modulo 16384, divided by 64. Braces in the
 * id have no meaning. Two look-ups per byte. */
unsigned hw_partition_of(const char *id, size_t len);

/* A set of partitions. */
struct hw_partitions {
	uint64_t bits[HW_PARTITIONS / 64];
};

static inline void hw_partitions_add(struct hw_partitions *s, unsigned p)
{
	s->bits[p / 64] |= UINT64_C(1) << p % 64;
}

static inline void hw_partitions_del(struct hw_partitions *s, unsigned p)
{
	s->bits[p / 64] &= ~(UINT64_C(1) << p % 64);
}

static inline bool hw_partitions_has(const struct hw_partitions *s, unsigned p)
{
	return s->bits[p / 64] >> p % 64 & 1;
}

static inline unsigned hw_partitions_count(const struct hw_partitions *s)
{
	unsigned n = 0;
	for (unsigned i = 0; i < HW_PARTITIONS / 64; i++)
		n += (unsigned)__builtin_popcountll(s->bits[i]);
	return n;
}

static inline bool hw_partitions_any(const struct hw_partitions *s)
{
	return (s->bits[0] | s->bits[1] | s->bits[2] | s->bits[3]) != 0;
}

#endif
