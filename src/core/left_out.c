/* SPDX-License-Identifier: MIT */
/* See left_out.h. An open-addressed table with linear probing; at most three quarters are in use. */
#include "left_out.h"

#include <stdlib.h>

#define CAP_MIN     64
#define TRY_EVERY_S 30 /* in seconds: the memory may stay full, and each reading is load for Redis */

static uint32_t home(const struct hw_left_out *l, uint64_t hash)
{
	return (uint32_t)hash & (l->cap - 1);
}

/* Returns the slot of this hash, or the free slot where it belongs. */
static uint32_t seek(const struct hw_left_out *l, uint64_t hash)
{
	uint32_t at = home(l, hash);
	while (l->all[at].hash && l->all[at].hash != hash)
		at = (at + 1) & (l->cap - 1);
	return at;
}

static bool grow(struct hw_left_out *l)
{
	struct hw_left_out was = *l;
	if (4 * (l->n + 1) <= 3 * l->cap)
		return true;
	l->cap = was.cap ? 2 * was.cap : CAP_MIN;
	l->all = calloc(l->cap, sizeof(*l->all));
	if (!l->all) {
		*l = was;
		return false;
	}
	for (uint32_t k = 0; k < was.cap; k++)
		if (was.all[k].hash)
			l->all[seek(l, was.all[k].hash)] = was.all[k];
	free(was.all);
	return true;
}

static void forget(struct hw_left_out *l, uint32_t at)
{
	uint32_t mask = l->cap - 1;
	l->in[l->all[at].partition]--;
	l->n--;
	for (uint32_t k = (at + 1) & mask; l->all[k].hash; k = (k + 1) & mask) {
		if (((k - home(l, l->all[k].hash)) & mask) < ((k - at) & mask))
			continue; /* a search for this entry does not pass the free slot */
		l->all[at] = l->all[k];
		at = k;
	}
	l->all[at].hash = 0;
}

void hw_left_out_note(struct hw_monitor *m, int group, const char *id, size_t len, enum hw_state state)
{
	struct hw_left_out *l = &m->left_out;
	unsigned p = hw_partition_of(id, len);
	uint64_t hash = hw_registry_hash(m->registry, id, len) | 1;
	bool known = l->n > 0 && l->all[seek(l, hash)].hash;
	m->unjudged.any = true;
	if (!known && (l->n >= HW_LEFT_OUT_MAX || !grow(l))) {
		hw_partitions_add(&l->more, p);
		hw_partitions_add(&l->more_found, p);
		return;
	}
	struct hw_left_out_device *d = &l->all[seek(l, hash)];
	if (!known) {
		*d = (struct hw_left_out_device){.hash = hash, .partition = (uint8_t)p};
		l->n++;
		l->in[p]++;
	} else if (state == HW_STATE_PROVISIONAL) {
		state = (enum hw_state)d->state;
	}
	d->group = group < 0 ? m->groups.order[0] : (uint16_t)group;
	d->state = (uint8_t)state;
	d->found = true;
}

bool hw_left_out_is_stored(const struct hw_monitor *m, const char *id, size_t len)
{
	const struct hw_left_out *l = &m->left_out;
	if (l->n == 0)
		return false;
	const struct hw_left_out_device *d = &l->all[seek(l, hw_registry_hash(m->registry, id, len) | 1)];
	return d->hash && d->state != HW_STATE_PROVISIONAL;
}

void hw_left_out_remove(struct hw_monitor *m, const char *id, size_t len)
{
	struct hw_left_out *l = &m->left_out;
	if (l->n == 0)
		return;
	uint32_t at = seek(l, hw_registry_hash(m->registry, id, len) | 1);
	if (l->all[at].hash)
		forget(l, at);
}

void hw_left_out_count(struct hw_monitor *m)
{
	const struct hw_left_out *l = &m->left_out;
	for (size_t g = 0; g < m->groups.n; g++)
		m->form[g].left_out = 0;
	for (uint32_t k = 0; k < l->cap; k++) {
		const struct hw_left_out_device *d = &l->all[k];
		if (!d->hash || d->state != HW_STATE_ONLINE || !hw_monitor_owns_partition(m, d->partition))
			continue;
		m->form[d->group].left_out++;
		m->form[d->group].counted++;
	}
}

/* --- monitor.h ------------------------------------------------------------------------------------------------- */

struct hw_partitions hw_monitor_left_out_in(const struct hw_monitor *m)
{
	struct hw_partitions set = m->left_out.more;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (m->left_out.in[p])
			hw_partitions_add(&set, p);
	return set;
}

uint32_t hw_monitor_left_out(const struct hw_monitor *m)
{
	return m->left_out.n;
}

uint32_t hw_monitor_left_out_stored(const struct hw_monitor *m)
{
	const struct hw_left_out *l = &m->left_out;
	uint32_t n = 0;
	for (uint32_t k = 0; l->n > 0 && k < l->cap; k++)
		n += l->all[k].hash && l->all[k].state != HW_STATE_PROVISIONAL;
	return n;
}

uint32_t hw_monitor_left_out_of(const struct hw_monitor *m, size_t group)
{
	return m->form[group].left_out;
}

bool hw_monitor_left_out_fits(const struct hw_monitor *m, struct hw_now now)
{
	const struct hw_left_out *l = &m->left_out;
	return (l->n > 0 || hw_partitions_any(&l->more)) && hw_registry_count(m->registry) < m->conf.max_devices &&
	       now.mono.ns >= l->next.ns;
}

void hw_monitor_left_out_begin(struct hw_monitor *m, struct hw_now now)
{
	struct hw_left_out *l = &m->left_out;
	l->next = hw_mono_add(now.mono, TRY_EVERY_S * HW_NS_PER_S);
	l->more_found = (struct hw_partitions){{0}};
	l->reads = true;
	for (uint32_t k = 0; k < l->cap; k++)
		l->all[k].found = false;
}

void hw_monitor_left_out_end(struct hw_monitor *m)
{
	struct hw_left_out *l = &m->left_out;
	l->more = l->more_found;
	l->reads = false;
	for (uint32_t k = 0; k < l->cap; k++)
		while (l->all[k].hash && !l->all[k].found) /* forget() may move another entry to this slot */
			forget(l, k);
}
