/* SPDX-License-Identifier: MIT */
/*
 * Finds the preferred owner of a partition by rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to
 * increase hit rates", IEEE/ACM ToN 6(1), 1998). When a node leaves, only its own partitions move.
 */
#ifndef HW_NODES_PLACE_H
#define HW_NODES_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "heartwheel/partition.h"

/* Returns the weight of node `node` for partition `p`: XXH64 of "P NODE", with seed 0. The preferred owner of p is
 * the node with the greatest weight. */
uint64_t hw_partition_weight(unsigned p, const char *node);

/* XXH64 (Collet, "xxHash fast digest algorithm", version 0.1.1, section 3) with seed 0. */
uint64_t hw_xxh64(const void *data, size_t len);

#endif
