/* SPDX-License-Identifier: MIT */
/*
 * A bounded ring of variable-length records from one producer thread to one consumer thread. It has no lock: the
 * producer owns `tail` and the consumer owns `head`, each on its own cache line. Records become visible in batches,
 * each with one release store and at most one write to an eventfd. No record is ever dropped: without room,
 * hw_ring_reserve() returns NULL, and the producer waits on an eventfd until there is room.
 */
#ifndef HW_RING_H
#define HW_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_ring;

/* Creates a ring. `bytes` is rounded up to a power of two. Returns NULL if there is no memory or no descriptor. */
struct hw_ring *hw_ring_new(size_t bytes);
void hw_ring_free(struct hw_ring *r);

/* Producer. Returns `size` contiguous bytes (8-aligned), or NULL if there is no room now. A record must not be
 * larger than a quarter of the ring. */
void *hw_ring_reserve(struct hw_ring *r, size_t size);
/* Producer. Keeps the first `size` bytes of the last reservation. Not visible before hw_ring_publish(). */
void hw_ring_commit(struct hw_ring *r, size_t size);
/* Producer. Makes all committed records visible and wakes the consumer if it waits. */
void hw_ring_publish(struct hw_ring *r);
/* Producer. Announces that the producer will wait for room: hw_ring_room_fd() becomes readable when there is room. The
 * producer must call hw_ring_reserve() once more before it waits. */
void hw_ring_wait_room(struct hw_ring *r);
int hw_ring_room_fd(const struct hw_ring *r);

/* Consumer. Returns the next record and its size, or NULL. The record is valid until hw_ring_release(), which frees all
 * records taken so far. */
const void *hw_ring_take(struct hw_ring *r, size_t *size);
void hw_ring_release(struct hw_ring *r);
/* Consumer. Returns a descriptor that is readable when records wait. Before it sleeps, the consumer calls
 * hw_ring_rest(), which returns false if records have come meanwhile. */
int hw_ring_fd(const struct hw_ring *r);
bool hw_ring_rest(struct hw_ring *r);

/* Either side. Bytes in use; only an estimate. */
size_t hw_ring_used(const struct hw_ring *r);

#endif
