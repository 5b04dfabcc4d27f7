/* SPDX-License-Identifier: MIT */
/*
 * A fencing token is (epoch, NODE_ID) of an owner; tokens are compared in this order. Redis has a record of each
 * partition's greatest token. Each write and each publish carries its token, and a token that is less than the greatest
 * one is refused. Safety depends only on this comparison, never on a clock. Inline, pure.
 */
#ifndef HW_NODES_FENCING_TOKEN_H
#define HW_NODES_FENCING_TOKEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/partition.h"

#define HW_NODE_ID_MAX 64 /* bytes of a NODE_ID, without its NUL */

/*
 * The epoch of a new claim is the time of Redis' clock in seconds, or one more than the greatest known epoch, whichever
 * is greater. An epoch that is this much or more ahead of that clock is wrong, and is ignored: otherwise later epochs
 * might exceed the greatest number. A node's own clock does not matter: a node with a wrong clock claims and loses like
 * any other.
 */
#define HW_EPOCH_AHEAD_S 86400

struct hw_fencing_token {
	uint64_t epoch;                /* 0: none */
	char node[HW_NODE_ID_MAX + 1]; /* "" where epoch is 0 */
};

/*
 * The record of a partition's owner in Redis. After a release the record still has the last owner's name: so another
 * node's token of the same epoch does not count as the released one. `clean`: nothing was pending at the release.
 */
struct hw_record {
	struct hw_fencing_token token;
	bool released, clean;
};

static inline struct hw_fencing_token hw_fencing_token_make(uint64_t epoch, const char *node)
{
	struct hw_fencing_token t = {.epoch = epoch};
	if (epoch > 0)
		snprintf(t.node, sizeof(t.node), "%s", node);
	return t;
}

/* Returns a value less than, equal to or greater than 0, as `a` is less than, equal to or greater than `b`. */
static inline int hw_fencing_token_compare(const struct hw_fencing_token *a, const struct hw_fencing_token *b)
{
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	return strcmp(a->node, b->node);
}

static inline bool hw_fencing_token_is_less(const struct hw_fencing_token *a, const struct hw_fencing_token *b)
{
	return hw_fencing_token_compare(a, b) < 0;
}

/*
 * Does what Redis' fence does in each script that writes. Returns false if `token` is less than the stored one; the
 * script then writes nothing. Otherwise returns true, and stores a greater token as not released.
 */
static inline bool hw_record_admits(struct hw_record *r, const struct hw_fencing_token *token)
{
	int order = hw_fencing_token_compare(token, &r->token);
	if (order > 0)
		*r = (struct hw_record){.token = *token};
	return order >= 0;
}

#endif
