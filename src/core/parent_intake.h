/* SPDX-License-Identifier: MIT */
/* Reads the parents of a device from its heartbeats. Private to the core. */
#ifndef HW_PARENT_INTAKE_H
#define HW_PARENT_INTAKE_H

#include "heartwheel/siphash.h"
#include "monitor_priv.h"

/* The text from which the ids of a device's parents are composed: the topic of its heartbeat or, for an element of a
 * batch, the device's id. */
struct hw_parent_source {
	const struct hw_topic *by; /* NULL: an element of a batch */
	struct hw_value text;      /* the topic, or the id */
};

/* Returns the hash of the captures of a message. It has no secret key: a device that sends two texts with the same
 * hash only keeps its own old parents. */
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

/* Sets the parents of the device `i` to those that its heartbeat names. `was_online`: the device was online before
 * the heartbeat. */
void hw_parent_change(struct hw_monitor *m, uint32_t i, const struct hw_parent_source *s, uint32_t hash,
                      bool was_online);

/* Called for a heartbeat of the device `i` on a filter of its own group. Sets its parents if they may have changed. */
static inline void hw_parent_heartbeat(struct hw_monitor *m, uint32_t i, const struct hw_parent_source *s,
                                       bool was_online)
{
	const struct hw_group *g = m->groups.all[hw_monitor_at(m, i)->group];
	if (g->n_parents + g->n_captured == 0)
		return;
	struct hw_value v = s->by ? hw_topic_span(s->by, s->text.text, s->text.len) : s->text;
	uint32_t hash = hw_parent_hash(g->topics_hash, v);
	const struct hw_parent_cell *c = hw_parents_cell(&m->parents, i);
	if (!c || c->hash != hash)
		hw_parent_change(m, i, s, hash, was_online);
}

/* Sets the parents that the store has for a device, unless the device was heard in this run. `ids` are separated by
 * newlines. */
void hw_parent_load(struct hw_monitor *m, uint32_t i, const char *ids);
/* Whether the device's parents are up to date: they are from a heartbeat of this run, from the inventory, or from a
 * store, which has each change. Without a store, the device may have other parents by now than in the last run. */
bool hw_parent_is_current(const struct hw_monitor *m, uint32_t i);
/* As hw_parent_load(), for what a topic had for labels. */
void hw_captures_load(struct hw_monitor *m, uint32_t i, const char *text);
/* Called when the inventory may name other parents of the device. */
void hw_parent_list(struct hw_monitor *m, uint32_t i);
/* Called after a reload, and when the device has moved to another group: removes the device's parents if neither the
 * device's group nor the inventory gives it any. */
void hw_parent_relink(struct hw_monitor *m, uint32_t i);
/* Called when the groups have changed. */
void hw_parent_configure(struct hw_monitor *m);
/* hw_parent_added(): a record is new. hw_parent_removed(): a record is about to be removed. */
void hw_parent_added(struct hw_monitor *m, uint32_t i);
void hw_parent_removed(struct hw_monitor *m, uint32_t i);

#endif
