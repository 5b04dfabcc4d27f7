/* SPDX-License-Identifier: MIT */
/*
 * An index of MQTT topic filters by their levels, in a tree. It finds the filters that match a topic, that cover a
 * filter, or that overlap with it, without a comparison of all pairs.
 *
 * Cost: a literal level takes one look-up in a hash table. A `+` of the searched filter visits each filter with the
 * same levels before it.
 */
#ifndef HEARTWHEEL_FILTER_INDEX_H
#define HEARTWHEEL_FILTER_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_filter_index {
	struct hw_filter_node *nodes;
	struct hw_filter_entry *entries;
	uint32_t *slots; /* of the hash table of nodes */
	size_t n_nodes, n_entries, n_slots, nodes_cap, entries_cap;
	uint32_t deep; /* list of the filters that have too many levels for the tree */
};

/* Frees the memory of an index, whose struct is the caller's. An index of zeroes is empty. */
void hw_filter_index_fini(struct hw_filter_index *x);

/* Adds a filter; an equal one may already be there. The text is borrowed. Returns 0 or -ENOMEM; after -ENOMEM the
 * index has the same filters as before. */
int hw_filter_index_add(struct hw_filter_index *x, const char *filter, size_t value);

/* Called for each filter that is found, with its value. If it returns true, the search ends. Must not change the
 * index. A caller that passes NULL in place of this function gets true if any filter is found. */
typedef bool hw_filter_found(void *arg, size_t value);

/* Finds each filter that is equal to `filter`. Returns whether `found` has returned true. */
bool hw_filter_index_equal(const struct hw_filter_index *x, const char *filter, hw_filter_found *found, void *arg);

/* Finds each filter that matches every topic of `filter`, as hw_topic_covers() decides. */
bool hw_filter_index_covers(const struct hw_filter_index *x, const char *filter, hw_filter_found *found, void *arg);

/* Finds each filter that matches the topic. Also finds each filter that has too many levels for the tree. `topic`
 * has no NUL. */
bool hw_filter_index_topic(const struct hw_filter_index *x, const char *topic, size_t len, hw_filter_found *found,
                           void *arg);

/* Finds each filter that matches any topic of `filter`, as hw_topic_filters_overlap() decides. */
bool hw_filter_index_overlaps(const struct hw_filter_index *x, const char *filter, hw_filter_found *found, void *arg);

#endif
