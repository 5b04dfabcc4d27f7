/* SPDX-License-Identifier: MIT */
/* See dict.h. */
#include "alert/memory/dict.h"

#include <stdlib.h>
#include <string.h>

#include "heartwheel/siphash.h"

#define CAP_MIN 8

static uint8_t secret[16];

void hw_dict_seed(uint64_t seed)
{
	memcpy(secret, &seed, sizeof(seed));
}

static uint32_t hash_of(const char *name)
{
	return (uint32_t)hw_siphash(1, 3, secret, name, strlen(name));
}

static uint32_t *head_of(const struct hw_dict *d, uint32_t hash)
{
	return &d->slots[hash & (d->cap - 1)];
}

struct hw_dict_item *hw_dict_find(const struct hw_dict *d, const char *name)
{
	uint32_t hash = hash_of(name);
	for (uint32_t at = d->cap ? *head_of(d, hash) : 0; at; at = d->items[at - 1].next)
		if (d->items[at - 1].hash == hash && strcmp(d->items[at - 1].name, name) == 0)
			return &d->items[at - 1];
	return NULL;
}

static void add_to_list(struct hw_dict *d, size_t k)
{
	uint32_t *head = head_of(d, d->items[k].hash);
	d->items[k].next = *head;
	*head = (uint32_t)k + 1;
}

static bool grow(struct hw_dict *d)
{
	size_t cap = d->cap ? 2 * d->cap : CAP_MIN;
	struct hw_dict_item *items = cap <= UINT32_MAX / 2 ? reallocarray(d->items, cap, sizeof(*items)) : NULL;
	if (items)
		d->items = items;
	uint32_t *slots = items ? calloc(cap, sizeof(*slots)) : NULL;
	if (!slots)
		return false;
	free(d->slots);
	d->slots = slots;
	d->cap = cap;
	for (size_t k = 0; k < d->n; k++)
		add_to_list(d, k);
	return true;
}

struct hw_dict_item *hw_dict_put(struct hw_dict *d, const char *name)
{
	struct hw_dict_item *item = hw_dict_find(d, name);
	if (item)
		return item;
	char *copy = d->n < d->cap || grow(d) ? strdup(name) : NULL;
	if (!copy)
		return NULL;
	item = &d->items[d->n];
	*item = (struct hw_dict_item){.name = copy, .hash = hash_of(name)};
	add_to_list(d, d->n++);
	return item;
}

/* Changes the link that points to item `from`, so that it points to `to` (index + 1; 0: to no item). */
static void relink(struct hw_dict *d, size_t from, uint32_t to)
{
	uint32_t *at = head_of(d, d->items[from].hash);
	while (*at != from + 1)
		at = &d->items[*at - 1].next;
	*at = to;
}

void *hw_dict_remove(struct hw_dict *d, const char *name)
{
	struct hw_dict_item *item = hw_dict_find(d, name);
	if (!item)
		return NULL;
	size_t k = (size_t)(item - d->items), last = d->n - 1;
	void *value = item->value;
	relink(d, k, item->next);
	free(item->name);
	if (k != last) {
		relink(d, last, (uint32_t)k + 1);
		*item = d->items[last];
	}
	d->n--;
	return value;
}

void hw_dict_fini(struct hw_dict *d, void (*free_value)(void *value))
{
	for (size_t k = 0; k < d->n; k++) {
		free(d->items[k].name);
		free_value(d->items[k].value);
	}
	free(d->items);
	free(d->slots);
	*d = (struct hw_dict){0};
}
