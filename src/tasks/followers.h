/* SPDX-License-Identifier: MIT */
/*
 * The table of followers: finds a follower by the name of its client, and the followers of a device by their filters.
 *
 * A follower stands in the index under the narrowest member of its filter: each of its ids, or else its prefix, or else
 * its group, or else under no name at all. So a device's transition meets the followers that may want it, and no other.
 * Cost of a transition: one look-up by id, one by group, and one for each length that a prefix in the table has.
 */
#ifndef HW_TASKS_FOLLOWERS_H
#define HW_TASKS_FOLLOWERS_H

#include "heartwheel/topic.h"
#include "tasks/filter.h"

/* An entry of a hash table that chains its entries. */
struct hw_chain {
	struct hw_chain *next;
	uint64_t hash;
};

struct hw_chains {
	struct hw_chain **heads; /* a power of two, or none */
	size_t n_heads, n;
};

/* Embed it as the first member. */
struct hw_follower {
	struct hw_chain by_client;
	struct hw_follower *next;
	struct hw_follower_key *keys; /* in the index */
	size_t n_keys;
	char *filter;       /* JSON {"ids","group","prefix"}; NULL: not known yet */
	const char *client; /* the owner's */
};

struct hw_followers {
	struct hw_chains clients, keys;
	struct hw_follower *first;      /* all of them */
	size_t prefixes[HW_ID_MAX + 1]; /* how many prefixes of each length are in the index */
	uint64_t secret;                /* the hash begins with it: no client knows which names collide */
};

/* 0 or -errno. */
int hw_followers_init(struct hw_followers *t);
/* The followers themselves are the caller's: each was removed before. */
void hw_followers_fini(struct hw_followers *t);

struct hw_follower *hw_followers_find(const struct hw_followers *t, struct hw_text client);
/* Takes a follower whose client is not in the table yet. 0 or -ENOMEM. */
int hw_followers_add(struct hw_followers *t, struct hw_follower *f);
/* Removes `*at`, a link of the list that begins with `first`, and frees its filter and its keys. */
void hw_followers_remove(struct hw_followers *t, struct hw_follower **at);
/* Gives a follower its filter, a valid object, which is copied. 0, or -ENOMEM and it has the filter that it had. */
int hw_followers_set_filter(struct hw_followers *t, struct hw_follower *f, const char *filter);

/* Calls `fn` once for each follower whose filter lets the transition pass. `fn` must not change the table. */
typedef void hw_follower_fn(void *arg, struct hw_follower *f);
void hw_followers_match(const struct hw_followers *t, const struct hw_device_transition *d, hw_follower_fn *fn,
                        void *arg);

#endif
