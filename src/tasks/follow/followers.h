/* SPDX-License-Identifier: MIT */
/*
 * The table of followers. It finds a follower by the name of its client. It also finds, by their filters, the followers
 * that want the transitions of a device.
 *
 * The index contains a follower under the narrowest member of its filter: under each of its ids, or else under its
 * prefix, or, if it has neither, under an empty key that each transition is compared with. If the filter has a group,
 * the key also contains the group. So a transition is compared only with followers that may want it. Each look-up is
 * done twice: with the device's group, and for any group. A transition needs one look-up by id, one by the empty key,
 * and one for each length of the prefixes in the table.
 */
#ifndef HW_TASKS_FOLLOWERS_H
#define HW_TASKS_FOLLOWERS_H

#include "heartwheel/topic.h"
#include "tasks/follow/filter.h"

/* An entry of a hash table that chains its entries. */
struct hw_chain {
	struct hw_chain *next;
	uint64_t hash;
};

struct hw_chains {
	struct hw_chain **heads; /* array of n_heads: a power of two, or 0 */
	size_t n_heads, n;
};

/* Embed it as the first member. */
struct hw_follower {
	struct hw_chain by_client;
	struct hw_follower *next;
	struct hw_follower_key *keys; /* its entries in the index */
	size_t n_keys;
	char *filter;       /* JSON {"ids","group","prefix"}; NULL: not loaded yet */
	const char *client; /* borrowed from the owner */
};

struct hw_followers {
	struct hw_chains clients, keys;
	struct hw_follower *first;      /* list of all followers */
	size_t prefixes[HW_ID_MAX + 1]; /* number of prefixes in the index, by length */
	uint64_t secret; /* the key of all hashes, so that no client can choose names with equal hashes */
};

/* Returns 0 or -errno. */
int hw_followers_init(struct hw_followers *t);
/* Called when all followers are removed from the table. Their memory belongs to the caller. */
void hw_followers_fini(struct hw_followers *t);

struct hw_follower *hw_followers_find(const struct hw_followers *t, struct hw_text client);
/* Adds a follower whose client must not be in the table. Returns 0 or -ENOMEM. */
int hw_followers_add(struct hw_followers *t, struct hw_follower *f);
/* Removes the follower `*at`, and frees its filter and its keys. `at` points to a link of the list that begins with
 * `first`. */
void hw_followers_remove(struct hw_followers *t, struct hw_follower **at);
/* Gives a follower a copy of a filter, which must be a valid object. Returns 0, or -ENOMEM, and the follower then keeps
 * its old filter. */
int hw_followers_set_filter(struct hw_followers *t, struct hw_follower *f, const char *filter);

/* Calls `fn` once for each follower whose filter matches the transition. `fn` must not change the table. */
typedef void hw_follower_fn(void *arg, struct hw_follower *f);
void hw_followers_match(const struct hw_followers *t, const struct hw_device_transition *d, hw_follower_fn *fn,
                        void *arg);

#endif
