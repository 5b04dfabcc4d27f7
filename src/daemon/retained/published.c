/* SPDX-License-Identifier: MIT */
/*
 * See published.h. A standalone monitor has one P, with index 0. Memory: two bits a device. Cost: constant for each
 * transition and each acknowledgement. P is written at most ten times a second, and only while it changes.
 */
#include "published.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "generations.h"
#include "retained.h"
#include "retained_priv.h"

#define EVERY_MS     100
#define ASK_AGAIN_NS HW_NS_PER_S
#define CHECKS       4096 /* records checked per turn */

struct hw_app_published {
	struct hw_generations of[HW_PARTITIONS];
	uint8_t *counted; /* owned; by the index of the device, two bits: 0 or COUNTED, plus its generation */
	uint32_t n_counted;
	bool stuck; /* memory ran out, so P does not rise any more */
	/* The partitions of this node. When this node has lost a partition, it gives up the statuses. That must not
	 * raise P: the broker does not have these statuses, and this node may win the partition again. */
	struct hw_partitions owned;
	struct hw_partitions unread; /* P is not read yet */
	unsigned asking;             /* questions for P that Redis has not answered */
	struct hw_mono asked;
	struct hw_partitions found; /* P is read, and the devices are not loaded yet */
	struct hw_partitions first; /* partitions in which a sweep searches for devices with a seq of at least P */
	uint32_t first_at;
	struct hw_partitions due; /* P may rise */
	int64_t turned_ms;
};

enum { COUNTED = 2 };

static struct hw_app_published *of(const struct hw_app *a)
{
	return a->retained->published;
}

int hw_app_published_new(struct hw_app *a)
{
	struct hw_app_published *b = a->retained->published = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	for (unsigned k = 0; k < HW_PARTITIONS; k++)
		hw_generations_init(&b->of[k]);
	if (a->start->cluster_mode == HW_CLUSTER_OFF) {
		hw_partitions_add(&b->owned, 0);
		hw_partitions_add(&b->unread, 0);
	}
	return 0;
}

void hw_app_published_free(struct hw_app *a)
{
	if (of(a))
		free(of(a)->counted);
	free(of(a));
}

/* --- devices ----------------------------------------------------------------------------------------------------- */

static unsigned part_of(const struct hw_app *a, const struct hw_device *d)
{
	return a->cluster ? hw_device_partition(d) : 0;
}

static uint32_t index_of(const struct hw_app *a, const struct hw_device *d)
{
	return (uint32_t)(d - hw_registry_base(hw_monitor_registry(a->monitor)));
}

static unsigned mark_of(const struct hw_app_published *b, uint32_t index)
{
	return index / 4 < b->n_counted ? (unsigned)b->counted[index / 4] >> 2 * (index % 4) & 3U : 0;
}

static void set_mark(struct hw_app_published *b, uint32_t index, unsigned mark)
{
	uint8_t *at = &b->counted[index / 4];
	*at = (uint8_t)((*at & ~(3U << 2 * (index % 4))) | mark << 2 * (index % 4));
}

static bool has_room(struct hw_app_published *b, uint32_t index)
{
	uint32_t n = b->n_counted ? b->n_counted : 256;
	if (index / 4 < b->n_counted)
		return true;
	while (n <= index / 4)
		n *= 2;
	uint8_t *grown = realloc(b->counted, n);
	if (!grown)
		return false;
	memset(grown + b->n_counted, 0, n - b->n_counted);
	b->counted = grown;
	b->n_counted = n;
	return true;
}

/* Whether P of a partition may not be changed now. */
static bool is_blocked(const struct hw_app_published *b, unsigned k)
{
	return b->stuck || !hw_partitions_has(&b->owned, k) || hw_partitions_has(&b->unread, k) ||
	       hw_partitions_has(&b->found, k) || hw_partitions_has(&b->first, k);
}

static void count(struct hw_app *a, const struct hw_device *d, bool older)
{
	struct hw_app_published *b = of(a);
	uint32_t index = index_of(a, d);
	unsigned k = part_of(a, d), mark = mark_of(b, index);
	struct hw_generations *g = &b->of[k];
	if (!a->redis || hw_device_state(d) == HW_STATE_FORGOTTEN || !hw_device_noted(d, HW_PENDING_STATUS))
		return;
	if (!has_room(b, index))
		b->stuck = true;
	else if (mark)
		hw_generations_again(g, mark & 1, d->seq);
	else
		set_mark(b, index, COUNTED | hw_generations_add(g, d->seq, older));
	if (!hw_partitions_has(&b->unread, k) && hw_generations_lower(g, d->seq))
		hw_redis_write_published(a->redis, k, g->p);
}

void hw_app_published_pending(struct hw_app *a, const struct hw_device *d)
{
	count(a, d, false);
}

void hw_app_published_left(struct hw_app *a, const struct hw_device *d)
{
	count(a, d, true);
}

void hw_app_published_settled(struct hw_app *a, const struct hw_device *d)
{
	struct hw_app_published *b = of(a);
	uint32_t index = index_of(a, d);
	unsigned mark = mark_of(b, index), k;
	if (!mark)
		return;
	k = part_of(a, d);
	set_mark(b, index, 0);
	hw_generations_settle(&b->of[k], mark & 1);
	hw_partitions_add(&b->due, k);
}

void hw_app_published_refused(struct hw_app *a, const struct hw_device *d)
{
	struct hw_app_published *b = of(a);
	uint32_t index = index_of(a, d);
	unsigned mark = mark_of(b, index), k;
	if (!mark)
		return;
	k = part_of(a, d);
	set_mark(b, index, COUNTED | hw_generations_refused(&b->of[k], mark & 1));
	hw_partitions_add(&b->due, k);
}

/* --- partitions -------------------------------------------------------------------------------------------------- */

static void ask(struct hw_app *a, struct hw_now now)
{
	struct hw_app_published *b = of(a);
	b->asked = now.mono;
	b->asking += hw_redis_read_published(a->redis) == 0;
}

/* Devices may still be counted from an earlier ownership of these partitions. They are settled like other devices. */
void hw_app_published_won(struct hw_app *a, struct hw_now now, const struct hw_partitions *set,
                          const struct hw_partitions *unclean)
{
	struct hw_app_published *b = of(a);
	hw_app_published_lost(a, set);
	for (unsigned k = 0; k < HW_PARTITIONS; k++) {
		if (!hw_partitions_has(set, k))
			continue;
		hw_partitions_add(&b->owned, k);
		hw_generations_found(&b->of[k], HW_PUBLISHED_UNKNOWN);
		if (hw_partitions_has(unclean, k))
			hw_partitions_add(&b->unread, k);
		else if (b->of[k].p != HW_PUBLISHED_UNKNOWN)
			hw_redis_write_published(a->redis, k, b->of[k].p);
	}
	if (hw_partitions_any(unclean))
		ask(a, now);
}

void hw_app_published_lost(struct hw_app *a, const struct hw_partitions *set)
{
	struct hw_app_published *b = of(a);
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++) {
		b->owned.bits[k] &= ~set->bits[k];
		b->unread.bits[k] &= ~set->bits[k];
		b->found.bits[k] &= ~set->bits[k];
		b->first.bits[k] &= ~set->bits[k];
		b->due.bits[k] &= ~set->bits[k];
	}
}

bool hw_app_published_is_unread(const struct hw_app *a)
{
	return hw_partitions_any(&of(a)->unread);
}

void hw_app_published_unlinked(struct hw_app *a)
{
	of(a)->asking = 0;
}

/* Uses the answer only if no later request is unanswered, because a partition may have been won between two
 * requests. */
void hw_app_published_found(struct hw_app *a, const uint64_t *p)
{
	struct hw_app_published *b = of(a);
	b->asking -= b->asking > 0;
	for (unsigned k = 0; k < HW_PARTITIONS && b->asking == 0 && p; k++) {
		struct hw_generations *g = &b->of[k];
		if (!hw_partitions_has(&b->unread, k))
			continue;
		hw_partitions_del(&b->unread, k);
		hw_generations_found(g, p[k]);
		if (p[k] != HW_PUBLISHED_UNKNOWN)
			hw_partitions_add(&b->found, k);
		if (g->p != HW_PUBLISHED_UNKNOWN) /* also if it is the same: Redis may be emptied later */
			hw_redis_write_published(a->redis, k, g->p);
	}
}

void hw_app_published_loaded(struct hw_app *a, const struct hw_partitions *set)
{
	struct hw_app_published *b = of(a);
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++) {
		b->first.bits[k] |= b->found.bits[k] & set->bits[k];
		b->found.bits[k] &= ~set->bits[k];
	}
	b->first_at = 0;
}

/* Makes a device's status pending if the broker may not have it. */
static void check_first(struct hw_app *a, struct hw_now now, uint32_t i)
{
	struct hw_app_published *b = of(a);
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	const struct hw_device *d = hw_registry_at(r, i);
	if (!d || hw_device_state(d) == HW_STATE_PROVISIONAL)
		return;
	unsigned k = part_of(a, d);
	if (!hw_partitions_has(&b->first, k) || d->seq < b->of[k].p || !hw_monitor_owns(a->monitor, d))
		return;
	hw_app_set_status_pending(a, now, hw_registry_ref(r, i));
	hw_app_published_left(a, d);
}

static bool search_first(struct hw_app *a, struct hw_now now)
{
	struct hw_app_published *b = of(a);
	uint32_t bound = hw_registry_bound(hw_monitor_registry(a->monitor));
	if (!hw_partitions_any(&b->first))
		return false;
	for (unsigned n = 0; n < CHECKS && b->first_at < bound; n++)
		check_first(a, now, b->first_at++);
	if (b->first_at < bound)
		return true;
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++) {
		b->due.bits[k] |= b->first.bits[k];
		b->first.bits[k] = 0;
	}
	return false;
}

/* --- once a turn ------------------------------------------------------------------------------------------------- */

static void write(struct hw_app *a, struct hw_now now)
{
	struct hw_app_published *b = of(a);
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	b->turned_ms = now_ms;
	for (unsigned k = 0; k < HW_PARTITIONS; k++) {
		struct hw_generations *g = &b->of[k];
		if (!hw_partitions_has(&b->due, k) || is_blocked(b, k))
			continue;
		if (hw_generations_turn(g, now.wall_ms > 0 ? (uint64_t)now.wall_ms : 0, now_ms))
			hw_redis_write_published(a->redis, k, g->p);
		if (!hw_generations_waits(g))
			hw_partitions_del(&b->due, k);
	}
}

/* Whether P of some partition may rise. */
static bool is_due(const struct hw_app_published *b)
{
	for (unsigned k = 0; k < HW_PARTITIONS / 64 && !b->stuck; k++)
		if (b->due.bits[k] & b->owned.bits[k] & ~b->unread.bits[k] & ~b->found.bits[k] & ~b->first.bits[k])
			return true;
	return false;
}

bool hw_app_published_turn(struct hw_app *a, struct hw_now now)
{
	struct hw_app_published *b = of(a);
	if (!a->redis)
		return false;
	if (a->cluster && hw_partitions_any(&b->unread) && b->asking == 0 && now.mono.ns - b->asked.ns > ASK_AGAIN_NS)
		ask(a, now);
	bool more = search_first(a, now);
	if (is_due(b) && now.mono.ns / HW_NS_PER_MS - b->turned_ms >= EVERY_MS)
		write(a, now);
	return more;
}

int64_t hw_app_published_wait_ms(const struct hw_app *a, struct hw_now now)
{
	int64_t left = of(a)->turned_ms + EVERY_MS - now.mono.ns / HW_NS_PER_MS;
	return !a->redis || !is_due(of(a)) ? -1 : left > 1 ? left : 1;
}

bool hw_app_published_idle(const struct hw_app *a)
{
	return !a->redis || (!is_due(of(a)) && hw_redis_published_idle(a->redis));
}
