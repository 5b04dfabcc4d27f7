/* SPDX-License-Identifier: MIT */
/* See task_table.h. Names come from an HMAC and are random, so a multiplicative hash with a seed is enough. */
#include "tasks/schedule/task_table.h"

#include <stdlib.h>
#include <string.h>

#include "heartwheel/siphash.h"

#define FIRST_CAP 64

void hw_task_table_init(struct hw_task_table *t, uint64_t seed)
{
	*t = (struct hw_task_table){.free = HW_NIL, .seed = seed};
}

void hw_task_table_fini(struct hw_task_table *t)
{
	free(t->entries);
	free(t->buckets);
	hw_task_table_init(t, t->seed);
}

static uint32_t *bucket_of(const struct hw_task_table *t, const struct hw_task_id *task)
{
	uint64_t h = (hw_sip_word(task->bytes) ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15) ^ hw_sip_word(task->bytes + 8);
	h *= UINT64_C(0xbf58476d1ce4e5b9);
	return &t->buckets[(h >> 32) & (t->n_buckets - 1)];
}

uint32_t hw_task_table_find(const struct hw_task_table *t, const struct hw_task_id *task)
{
	if (t->n == 0)
		return HW_NIL;
	uint32_t i = *bucket_of(t, task);
	while (i != HW_NIL && memcmp(&t->entries[i].task, task, sizeof(*task)) != 0)
		i = t->entries[i].next;
	return i;
}

static bool grow_index(struct hw_task_table *t)
{
	uint32_t n = t->n_buckets ? t->n_buckets * 2 : FIRST_CAP;
	uint32_t *buckets = malloc(n * sizeof(*buckets));
	if (!buckets)
		return false;
	free(t->buckets);
	t->buckets = buckets;
	t->n_buckets = n;
	memset(buckets, 0xff, n * sizeof(*buckets));
	for (uint32_t i = 0; i < t->used; i++) {
		struct hw_task_entry *e = &t->entries[i];
		if (!(e->node.user & HW_ENTRY_KNOWN))
			continue;
		uint32_t *head = bucket_of(t, &e->task);
		e->next = *head;
		*head = i;
	}
	return true;
}

static bool grow_entries(struct hw_task_table *t)
{
	uint32_t cap = t->cap ? t->cap + t->cap / 8 : FIRST_CAP;
	if (cap >= HW_NIL - 1 || cap < t->cap)
		return false;
	struct hw_task_entry *entries = realloc(t->entries, cap * sizeof(*entries));
	if (!entries)
		return false;
	t->entries = entries;
	t->cap = cap;
	return true;
}

uint32_t hw_task_table_add(struct hw_task_table *t, const struct hw_task_id *task)
{
	if (t->n == t->n_buckets && !grow_index(t))
		return HW_NIL;
	if (t->free == HW_NIL && t->used == t->cap && !grow_entries(t))
		return HW_NIL;
	uint32_t i = t->free != HW_NIL ? t->free : t->used++;
	struct hw_task_entry *e = &t->entries[i];
	if (t->free != HW_NIL)
		t->free = e->next;
	uint32_t *head = bucket_of(t, task);
	*e = (struct hw_task_entry){.task = *task, .next = *head};
	hw_node_init(&e->node);
	e->node.user = HW_ENTRY_KNOWN;
	*head = i;
	t->n++;
	return i;
}

void hw_task_table_del(struct hw_task_table *t, uint32_t i)
{
	struct hw_task_entry *e = &t->entries[i];
	uint32_t *at = bucket_of(t, &e->task);
	while (*at != i)
		at = &t->entries[*at].next;
	*at = e->next;
	e->node.user = 0;
	e->next = t->free;
	t->free = i;
	if (--t->n == 0)
		hw_task_table_fini(t);
}

size_t hw_task_table_bytes(const struct hw_task_table *t)
{
	return t->cap * sizeof(*t->entries) + t->n_buckets * sizeof(*t->buckets);
}
