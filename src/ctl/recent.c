/* SPDX-License-Identifier: MIT */
#include "ctl/recent.h"

#include <stdlib.h>

#define SLOTS (2 * HW_RECENT) /* a power of two */

/* The slot of the hash, or a free slot for it. */
static uint64_t *find(uint64_t *table, uint64_t hash)
{
	uint64_t at = hash >> 32;
	while (table[at % SLOTS] && table[at % SLOTS] != hash)
		at++;
	return &table[at % SLOTS];
}

static bool has(uint64_t *table, uint64_t hash)
{
	return table && *find(table, hash) == hash;
}

bool hw_recent_add(struct hw_recent *t, uint64_t hash)
{
	hash |= 1;
	if (has(t->young, hash))
		return true;
	bool was = has(t->old, hash);
	if (t->n == HW_RECENT) {
		free(t->old);
		t->old = t->young;
		t->young = NULL;
		t->n = 0;
	}
	if (!t->young && !(t->young = calloc(SLOTS, sizeof(*t->young))))
		return was;
	*find(t->young, hash) = hash;
	t->n++;
	return was;
}

void hw_recent_fini(struct hw_recent *t)
{
	free(t->young);
	free(t->old);
	*t = (struct hw_recent){0};
}
