/* SPDX-License-Identifier: MIT */
/*
 * A hash table of structs by name. An entry is the first member of the caller's struct, which owns the name. The hash
 * has a secret key, because the devices choose their ids.
 *
 * Cost: a look-up reads one slot and, on average, at most one other entry. A table never shrinks.
 */
#ifndef HW_INCIDENT_NAMES_H
#define HW_INCIDENT_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct hw_named {
	struct hw_named *next;
	const char *name;
	uint64_t hash;
};

struct hw_names {
	struct hw_named **slots;
	size_t n_slots, n; /* n_slots is 0 or a power of two */
	uint8_t key[16];
};

void hw_names_init(struct hw_names *t, uint64_t seed);
/* Frees the table. The entries belong to the caller. */
void hw_names_fini(struct hw_names *t);
struct hw_named *hw_names_find(const struct hw_names *t, const char *name);
/* Adds an entry whose `name` is set and not yet in the table. Returns 0 or -ENOMEM. */
int hw_names_add(struct hw_names *t, struct hw_named *entry);
void hw_names_remove(struct hw_names *t, struct hw_named *entry);

#endif
