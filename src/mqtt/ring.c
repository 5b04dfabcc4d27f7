/* SPDX-License-Identifier: MIT */
/*
 * The ring between a thread and the loop.
 *
 * Positions only grow; a position modulo the size is an offset. A record is an 8-byte header and its bytes, rounded up
 * to a multiple of 8. A record never wraps: if it would, a header with SKIP sends the consumer to the start.
 *
 * Invariant: head <= read <= tail <= next <= head + size. The bytes [head, read) are taken but not released, [read,
 * tail) are visible, and [tail, next) are committed but not published.
 *
 * A side that is about to sleep first sets its flag, then checks the position again. The other side first moves its
 * position, then checks the flag (Dekker's handshake). All four accesses are sequentially consistent, so at least one
 * side sees the other side's write. Fences would be cheaper, but thread sanitizers do not support them.
 *
 * Cost: committing a record needs no atomic operation. A batch needs one store, and one write() if the consumer slept.
 */
#include "mqtt/ring.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "mqtt/wake_fd.h"

#define CACHE_LINE 64
#define RING_MIN   4096
#define SKIP       UINT32_MAX

struct header {
	uint32_t size; /* of the record's bytes, or SKIP */
	uint32_t unused;
};

struct hw_ring {
	unsigned char *mem;
	size_t size;
	int fd, room_fd;

	alignas(CACHE_LINE) atomic_size_t tail; /* the producer's side */
	atomic_bool wants_room;
	size_t next, head_seen;
	size_t skip, reserved; /* result of the last hw_ring_reserve() */

	alignas(CACHE_LINE) atomic_size_t head; /* the consumer's side */
	atomic_bool rests;
	size_t read, tail_seen;
};

static size_t with_header(size_t size)
{
	return sizeof(struct header) + ((size + 7) & ~(size_t)7);
}

struct hw_ring *hw_ring_new(size_t bytes)
{
	size_t size = RING_MIN;
	while (size < bytes && size <= SIZE_MAX / 4)
		size *= 2;
	struct hw_ring *r = aligned_alloc(CACHE_LINE, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct hw_ring){.size = size};
	atomic_init(&r->rests, true); /* a consumer that has never rested must be woken, too */
	r->mem = aligned_alloc(CACHE_LINE, size);
	r->fd = hw_wake_fd_new();
	r->room_fd = hw_wake_fd_new();
	if (!r->mem || r->fd < 0 || r->room_fd < 0) {
		hw_ring_free(r);
		return NULL;
	}
	return r;
}

void hw_ring_free(struct hw_ring *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	if (r->room_fd >= 0)
		close(r->room_fd);
	free(r->mem);
	free(r);
}

/* --- producer */

void *hw_ring_reserve(struct hw_ring *r, size_t size)
{
	assert(size <= r->size / 4);
	size_t need = with_header(size), offset = r->next & (r->size - 1), to_end = r->size - offset;
	size_t skip = need <= to_end ? 0 : to_end;
	if (skip + need > r->size - (r->next - r->head_seen)) {
		r->head_seen = atomic_load(&r->head);
		if (skip + need > r->size - (r->next - r->head_seen))
			return NULL;
	}
	r->skip = skip;
	r->reserved = size;
	return r->mem + (skip ? 0 : offset) + sizeof(struct header);
}

void hw_ring_commit(struct hw_ring *r, size_t size)
{
	assert(size <= r->reserved);
	struct header *h = (struct header *)(void *)(r->mem + (r->next & (r->size - 1)));
	if (r->skip) {
		h->size = SKIP;
		h = (struct header *)(void *)r->mem;
	}
	h->size = (uint32_t)size;
	r->next += r->skip + with_header(size);
	r->skip = r->reserved = 0;
}

void hw_ring_publish(struct hw_ring *r)
{
	if (r->next == atomic_load_explicit(&r->tail, memory_order_relaxed))
		return;
	atomic_store(&r->tail, r->next);
	if (atomic_load(&r->rests) && atomic_exchange(&r->rests, false))
		hw_wake_fd_signal(r->fd);
}

void hw_ring_wait_room(struct hw_ring *r)
{
	hw_ring_publish(r); /* the consumer can only release records that it can see */
	hw_wake_fd_clear(r->room_fd);
	atomic_store(&r->wants_room, true);
}

int hw_ring_room_fd(const struct hw_ring *r)
{
	return r->room_fd;
}

/* --- consumer */

const void *hw_ring_take(struct hw_ring *r, size_t *size)
{
	if (r->read == r->tail_seen) {
		r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (r->read == r->tail_seen)
			return NULL;
	}
	size_t offset = r->read & (r->size - 1);
	const struct header *h = (const struct header *)(const void *)(r->mem + offset);
	if (h->size == SKIP) {
		r->read += r->size - offset;
		h = (const struct header *)(const void *)r->mem;
	}
	*size = h->size;
	r->read += with_header(h->size);
	return h + 1;
}

/*
 * Frees the taken records. Wakes the producer only when three quarters of the ring are free: then any record fits,
 * wherever the ring wraps, and one wake-up makes room for many records.
 */
void hw_ring_release(struct hw_ring *r)
{
	if (r->read == atomic_load_explicit(&r->head, memory_order_relaxed))
		return;
	atomic_store(&r->head, r->read);
	if (!atomic_load(&r->wants_room) || hw_ring_used(r) > r->size / 4)
		return;
	if (atomic_exchange(&r->wants_room, false))
		hw_wake_fd_signal(r->room_fd);
}

int hw_ring_fd(const struct hw_ring *r)
{
	return r->fd;
}

bool hw_ring_rest(struct hw_ring *r)
{
	hw_wake_fd_clear(r->fd); /* before the flag is set, so that no later wake-up is lost */
	atomic_store(&r->rests, true);
	if (r->read == atomic_load(&r->tail))
		return true;
	atomic_store(&r->rests, false);
	return false;
}

/* --- either */

size_t hw_ring_used(const struct hw_ring *r)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	return tail - head <= r->size ? tail - head : 0; /* another thread may read the two at different times */
}
