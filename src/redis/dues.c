/* SPDX-License-Identifier: MIT */
/* Devices whose store is owed a refresh or a rewrite: two queues, and the marks by which a device is on each at most
 * once. */
#include <stdlib.h>
#include <string.h>

#include "redis/inner.h"

bool hw_dues_have_marks(struct hw_redis *r, uint32_t index)
{
	struct hw_sink *s = &r->sink;
	if (index < s->n_marks)
		return true;
	uint32_t n = s->n_marks ? s->n_marks : 1024;
	while (n <= index)
		n = n > UINT32_MAX / 2 ? UINT32_MAX : n * 2;
	uint8_t *marks = realloc(s->marks, n);
	if (!marks)
		return false;
	memset(marks + s->n_marks, 0, n - s->n_marks);
	s->marks = marks;
	s->n_marks = n;
	return true;
}

void hw_dues_in_full(struct hw_redis *r)
{
	for (uint32_t i = 0; i < r->sink.n_marks; i++)
		r->sink.marks[i] &= (uint8_t)~HW_MARK_FULL;
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

/* Without memory the device is left to the next sweep, which looks at everybody. */
bool hw_dues_add(struct hw_redis *r, struct hw_dues *q, uint32_t index)
{
	struct hw_sink *s = &r->sink;
	if (!hw_dues_have_marks(r, index) || (!(s->marks[index] & q->bit) && q->len == q->cap && !grow(q))) {
		hw_plan_sweep(r);
		return false;
	}
	if (s->marks[index] & q->bit)
		return true;
	s->marks[index] |= q->bit;
	q->at[(q->head + q->len++) & (q->cap - 1)] = index;
	return true;
}

/* What was left to a rewrite that is not sent is no edge of a later one. */
static void pass_over(struct hw_redis *r, uint32_t index, bool rewrite)
{
	if (rewrite)
		r->sink.marks[index] &= (uint8_t)~HW_MARK_UNTOLD;
}

/*
 * The next device on a queue that is there, whose state the store is to know, and that no other node has taken over
 * since; NULL if there is none. A rewrite waits for the answer to its device's edges: should they fail and it not, they
 * would find their seq written without them.
 */
const struct hw_device *hw_dues_take(struct hw_redis *r, struct hw_dues *q, bool rewrite, struct hw_ref *ref)
{
	const struct hw_registry *devices = hw_monitor_registry(r->m);
	for (uint32_t left = q->len; left > 0; left--) {
		uint32_t index = q->at[q->head];
		q->head = (q->head + 1) & (q->cap - 1);
		q->len--;
		r->sink.marks[index] &= (uint8_t)~q->bit;
		if (rewrite && (r->sink.marks[index] & HW_MARK_IN_FLIGHT)) {
			hw_dues_add(r, q, index);
			continue;
		}
		const struct hw_device *d = index < hw_registry_bound(devices) ? hw_registry_at(devices, index) : NULL;
		if (!d || hw_device_state(d) == HW_STATE_PROVISIONAL ||
		    (hw_device_state(d) == HW_STATE_FORGOTTEN && !rewrite)) {
			pass_over(r, index, rewrite);
			continue;
		}
		*ref = hw_registry_ref(devices, index);
		if (hw_monitor_owns(r->m, d))
			return d;
		pass_over(r, index, rewrite);
		hw_tokens_drop(r, *ref, d->seq);
	}
	return NULL;
}
