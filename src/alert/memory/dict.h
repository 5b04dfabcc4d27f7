/* SPDX-License-Identifier: MIT */
/*
 * A hash table from texts to values. The items stand in an array without holes, so that a scan continues at an index:
 * a removed item is replaced by the last one. A scan from the last item to the first visits each item that stays.
 */
#ifndef HW_ALERT_DICT_H
#define HW_ALERT_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_dict_item {
	char *name;  /* owned */
	void *value; /* owned by the caller */
	uint32_t hash, next;
};

/* Zeroed storage is an empty table. */
struct hw_dict {
	struct hw_dict_item *items;
	uint32_t *slots; /* the first item of each list: its index + 1; 0: none */
	size_t n, cap;   /* cap: the length of `items` and of `slots`, a power of two */
};

/* Sets the secret key of the hash, because the devices choose their ids. Call it before the first table is filled. */
void hw_dict_seed(uint64_t seed);

struct hw_dict_item *hw_dict_find(const struct hw_dict *d, const char *name);
/* Returns the item of that name, and adds it with value NULL if there is none; NULL if there is no memory. The pointer
 * is valid until the next call for this table. */
struct hw_dict_item *hw_dict_put(struct hw_dict *d, const char *name);
/* Removes the item and returns its value; NULL: there was none. */
void *hw_dict_remove(struct hw_dict *d, const char *name);
/* Frees all items, and each value by `free_value`. */
void hw_dict_fini(struct hw_dict *d, void (*free_value)(void *value));

#endif
