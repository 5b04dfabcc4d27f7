/* SPDX-License-Identifier: MIT */
/*
 * Tokens: who may speak for a partition, as (epoch, NODE_ID), compared in this order; and the record that Redis keeps
 * of the greatest one (design 10, 10.2). Safety rests on this comparison alone, never on a clock: whoever writes or
 * publishes says its token, and a lesser one is refused. Inline, pure.
 */
#ifndef HW_NODES_TOKEN_H
#define HW_NODES_TOKEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/partition.h"

#define HW_NODE_ID_MAX 64 /* bytes of a NODE_ID, without its NUL */

/*
 * A claim's epoch is the seconds of Redis' clock, or one more than the greatest epoch known. So an epoch that is
 * further ahead of that clock was made up, and counts as none: if it counted, the next epoch might be one that does not
 * exist. The clock of a node plays no part: a node whose clock is wrong claims and loses as every other node does.
 */
#define HW_EPOCH_AHEAD_S 86400

struct hw_token {
	uint64_t epoch;                /* 0: none */
	char node[HW_NODE_ID_MAX + 1]; /* "" where epoch is 0 */
};

/*
 * What Redis has of a partition. A released one keeps its last owner's name: a token of the same epoch, but of another
 * node, must not pass for the one that was released. `clean`: its owner owed nothing when it let go.
 */
struct hw_record {
	struct hw_token token;
	bool released, clean;
};

static inline struct hw_token hw_token_make(uint64_t epoch, const char *node)
{
	struct hw_token t = {.epoch = epoch};
	if (epoch > 0)
		snprintf(t.node, sizeof(t.node), "%s", node);
	return t;
}

/* Below 0, 0 or above 0: `a` is less than, the same as, or greater than `b`. */
static inline int hw_token_compare(const struct hw_token *a, const struct hw_token *b)
{
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	return strcmp(a->node, b->node);
}

static inline bool hw_token_is_less(const struct hw_token *a, const struct hw_token *b)
{
	return hw_token_compare(a, b) < 0;
}

/*
 * Redis' fence (10.2), as each script that writes applies it: false: `token` is older than the stored one, nothing is
 * written. True: it is not; a newer one is stored, and is not released then.
 */
static inline bool hw_record_admits(struct hw_record *r, const struct hw_token *token)
{
	int order = hw_token_compare(token, &r->token);
	if (order > 0)
		*r = (struct hw_record){.token = *token};
	return order >= 0;
}

#endif
