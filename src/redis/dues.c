/* SPDX-License-Identifier: MIT */
/* Two queues of devices: one for pending refreshes, one for pending snapshots. Bits in hw_sink.noted ensure that a
 * device is in each queue at most once. */
#include <stdlib.h>
#include <string.h>

#include "redis/inner.h"

bool hw_dues_have_room(struct hw_redis *r, uint32_t index)
{
	struct hw_sink *s = &r->sink;
	if (index < s->n_noted)
		return true;
	uint32_t n = s->n_noted ? s->n_noted : 1024;
	while (n <= index)
		n = n > UINT32_MAX / 2 ? UINT32_MAX : n * 2;
	uint8_t *noted = realloc(s->noted, n);
	if (!noted)
		return false;
	memset(noted + s->n_noted, 0, n - s->n_noted);
	s->noted = noted;
	s->n_noted = n;
	return true;
}

void hw_dues_in_full(struct hw_redis *r)
{
	for (uint32_t i = 0; i < r->sink.n_noted; i++)
		r->sink.noted[i] &= (uint8_t)~HW_NOTED_FULL;
}

static bool grow(struct hw_dues *q)
{
	uint32_t cap = q->cap ? q->cap * 2 : 256;
	uint32_t *at = malloc(cap * sizeof(*at));
	if (!at)
		return false;
	for (uint32_t i = 0; i < q->len; i++)
		at[i] = q->at[(q->head + i) & (q->cap - 1)];
	free(q->at);
	*q = (struct hw_dues){at, cap, 0, q->len, q->bit};
	return true;
}

/* Queues a device. If there is no memory, starts a sweep, which visits every device. */
bool hw_dues_add(struct hw_redis *r, struct hw_dues *q, uint32_t index)
{
	struct hw_sink *s = &r->sink;
	if (!hw_dues_have_room(r, index) || (!(s->noted[index] & q->bit) && q->len == q->cap && !grow(q))) {
		hw_plan_sweep(r);
		return false;
	}
	if (s->noted[index] & q->bit)
		return true;
	s->noted[index] |= q->bit;
	q->at[(q->head + q->len++) & (q->cap - 1)] = index;
	return true;
}

/* Called when a device that was taken from a queue is not written. If the queue is that of snapshots, clears
 * HW_NOTED_AS_TRANSITION (inner.h): otherwise a later snapshot would be written as the old transition. */
static void clear_as_transition(struct hw_redis *r, uint32_t index, bool snapshot)
{
	if (snapshot)
		r->sink.noted[index] &= (uint8_t)~HW_NOTED_AS_TRANSITION;
}

/*
 * Takes the next device from a queue. NULL: there is none. The device exists, may be written now, and still belongs to
 * this node. A snapshot waits until the device's transitions in flight are answered. If these transitions failed and
 * the snapshot succeeded, the store would have their seq without their entries.
 */
const struct hw_device *hw_dues_take(struct hw_redis *r, struct hw_dues *q, bool snapshot, struct hw_ref *ref)
{
	const struct hw_registry *devices = hw_monitor_registry(r->m);
	for (uint32_t left = q->len; left > 0; left--) {
		uint32_t index = q->at[q->head];
		q->head = (q->head + 1) & (q->cap - 1);
		q->len--;
		r->sink.noted[index] &= (uint8_t)~q->bit;
		if (snapshot && (r->sink.noted[index] & HW_NOTED_IN_FLIGHT)) {
			hw_dues_add(r, q, index);
			continue;
		}
		const struct hw_device *d = index < hw_registry_bound(devices) ? hw_registry_at(devices, index) : NULL;
		if (!d || hw_device_state(d) == HW_STATE_PROVISIONAL ||
		    (hw_device_state(d) == HW_STATE_FORGOTTEN && !snapshot)) {
			clear_as_transition(r, index, snapshot);
			continue;
		}
		*ref = hw_registry_ref(devices, index);
		if (hw_monitor_owns(r->m, d))
			return d;
		clear_as_transition(r, index, snapshot);
		hw_call_owner_drop(r, *ref, d->seq);
	}
	return NULL;
}
