/* SPDX-License-Identifier: MIT */
#include "incident/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/siphash.h"

void hw_names_init(struct hw_names *t, uint64_t seed)
{
	*t = (struct hw_names){0};
	memcpy(t->key, &seed, sizeof(seed));
}

void hw_names_fini(struct hw_names *t)
{
	free(t->slots);
	t->slots = NULL;
	t->n_slots = t->n = 0;
}

static uint64_t hash_of(const struct hw_names *t, const char *name)
{
	return hw_siphash(1, 3, t->key, name, strlen(name));
}

struct hw_named *hw_names_find(const struct hw_names *t, const char *name)
{
	if (t->n_slots == 0)
		return NULL;
	uint64_t hash = hash_of(t, name);
	struct hw_named *e = t->slots[hash & (t->n_slots - 1)];
	while (e && (e->hash != hash || strcmp(e->name, name) != 0))
		e = e->next;
	return e;
}

static int grow(struct hw_names *t)
{
	size_t n_slots = t->n_slots ? 2 * t->n_slots : 64;
	struct hw_named **slots = calloc(n_slots, sizeof(struct hw_named *));
	if (!slots)
		return -ENOMEM;
	for (size_t k = 0; k < t->n_slots; k++)
		for (struct hw_named *e = t->slots[k], *next; e; e = next) {
			next = e->next;
			e->next = slots[e->hash & (n_slots - 1)];
			slots[e->hash & (n_slots - 1)] = e;
		}
	free(t->slots);
	t->slots = slots;
	t->n_slots = n_slots;
	return 0;
}

int hw_names_add(struct hw_names *t, struct hw_named *entry)
{
	if (t->n >= t->n_slots && grow(t) != 0)
		return -ENOMEM;
	entry->hash = hash_of(t, entry->name);
	struct hw_named **slot = &t->slots[entry->hash & (t->n_slots - 1)];
	entry->next = *slot;
	*slot = entry;
	t->n++;
	return 0;
}

void hw_names_remove(struct hw_names *t, struct hw_named *entry)
{
	struct hw_named **at = &t->slots[entry->hash & (t->n_slots - 1)];
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	t->n--;
}
