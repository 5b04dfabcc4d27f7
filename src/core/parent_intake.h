/* SPDX-License-Identifier: MIT */
/* From heartbeats to the index of parents. Private to the core. */
#ifndef HW_PARENT_INTAKE_H
#define HW_PARENT_INTAKE_H

#include "core/siphash.h"
#include "monitor_priv.h"

/* What the parents of a heartbeat follow from: the captures of its topic; in a batch, the id of its element. */
struct hw_parent_source {
	const struct hw_topic *by; /* NULL: an element of a batch */
	struct hw_value text;      /* the topic, or the id */
};

/* The hash of the captures of a message. Not keyed: a device that finds two texts with one hash keeps its own parents,
 * no other device's. */
static inline uint32_t hw_parent_hash(uint64_t seed, struct hw_value v)
{
	const uint8_t *p = (const uint8_t *)v.text;
	uint64_t h = seed ^ v.len;
	for (size_t left = v.len; left >= 8; left -= 8, p += 8)
		h = hw_sip_rotl((h ^ hw_sip_word(p)) * UINT64_C(0x9e3779b97f4a7c15), 29);
	h = (h ^ hw_sip_rest((const uint8_t *)v.text, v.len)) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t hash = (uint32_t)(h >> 32);
	return hash ? hash : 1;
}

/* Begins to load the cell of a device into the cache. */
static inline void hw_parent_prefetch(const struct hw_monitor *m, uint32_t i)
{
	const struct hw_parents *p = &m->parents;
	if (i / HW_PARENT_CELLS < p->n_block_of && p->block_of[i / HW_PARENT_CELLS])
		__builtin_prefetch(&p->block[p->block_of[i / HW_PARENT_CELLS] - 1][i % HW_PARENT_CELLS]);
}

/* The parents of the device `i` are those of this heartbeat. `was_online`: the device was, before the heartbeat. */
void hw_parent_change(struct hw_monitor *m, uint32_t i, const struct hw_parent_source *s, uint32_t hash,
                      bool was_online);

/* A heartbeat of the device `i` on a filter of its own group. */
static inline void hw_parent_heartbeat(struct hw_monitor *m, uint32_t i, const struct hw_parent_source *s,
                                       bool was_online)
{
	const struct hw_group *g = m->groups.all[hw_monitor_at(m, i)->group];
	if (g->n_parents == 0)
		return;
	struct hw_value v = s->by ? hw_topic_span(s->by, s->text.text, s->text.len) : s->text;
	uint32_t hash = hw_parent_hash(g->parents_hash, v);
	const struct hw_parent_cell *c = hw_parents_cell(&m->parents, i);
	if (!c || c->hash != hash)
		hw_parent_change(m, i, s, hash, was_online);
}

/* The store's parents of a device that has not been heard: ids with newlines between. */
void hw_parent_load(struct hw_monitor *m, uint32_t i, const char *ids);
/* After a reload: a device whose group has no parents any more has none. */
void hw_parent_relink(struct hw_monitor *m, uint32_t i);
/* The groups have changed. */
void hw_parent_configure(struct hw_monitor *m);
/* A record is new, or is about to be removed. */
void hw_parent_added(struct hw_monitor *m, uint32_t i);
void hw_parent_removed(struct hw_monitor *m, uint32_t i);

#endif
