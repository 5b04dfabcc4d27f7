/* SPDX-License-Identifier: MIT */
/*
 * A bounded ring of variable-length records from one producer thread to one consumer thread. It is lock-free: the
 * producer owns `tail`, the consumer owns `head`, each on its own cache line. Records become visible in batches: one
 * release store, and at most one write to an eventfd per batch. No record is ever dropped: without room,
 * hw_ring_reserve() returns NULL, and the producer waits on the room eventfd.
 */
#ifndef HW_RING_H
#define HW_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_ring;

/* `bytes` is rounded up to a power of two. NULL without memory or descriptors. */
struct hw_ring *hw_ring_new(size_t bytes);
void hw_ring_free(struct hw_ring *r);

/* Producer. Returns `size` contiguous bytes (8-aligned), or NULL if there is no room now. A record must not be
 * larger than a quarter of the ring. */
void *hw_ring_reserve(struct hw_ring *r, size_t size);
/* Producer. Keeps the first `size` bytes of the last reservation. Not visible before hw_ring_publish(). */
void hw_ring_commit(struct hw_ring *r, size_t size);
/* Producer. Makes all committed records visible and wakes the consumer if it waits. */
void hw_ring_publish(struct hw_ring *r);
/* Producer. Announces that it waits for room; hw_ring_room_fd() becomes readable once there is room. Call
 * hw_ring_reserve() again after it, before the wait. */
void hw_ring_wait_room(struct hw_ring *r);
int hw_ring_room_fd(const struct hw_ring *r);

/* Consumer. The next record and its size, or NULL. It stays valid until hw_ring_release(), which frees all records
 * taken so far. */
const void *hw_ring_take(struct hw_ring *r, size_t *size);
void hw_ring_release(struct hw_ring *r);
/* Consumer. Readable when records wait. Call hw_ring_rest() before sleeping on it: true if the consumer may sleep,
 * false if records have come meanwhile. */
int hw_ring_fd(const struct hw_ring *r);
bool hw_ring_rest(struct hw_ring *r);

/* Either side. Bytes in use; only an estimate. */
size_t hw_ring_used(const struct hw_ring *r);

#endif
