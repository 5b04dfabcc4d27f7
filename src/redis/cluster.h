/* SPDX-License-Identifier: MIT */
/*
 * The calls of a cluster's scripts (scripts/renew.lua, claim.lua, release.lua, remove.lua) and their answers. Calls are
 * built from the orders of src/nodes, and answers are read into its structs. This file sends nothing, owns no
 * connection and decides nothing. Redis answers the calls of a connection in their order. After a reconnect, the caller
 * must call hw_cluster_forget().
 *
 * - device:nodes NODE_ID -> "RUN COUNT {json}". RUN: 16 hexadecimal digits. JSON member "state": "ready" or another
 *   state
 * - device:owners PARTITION -> "EPOCH NODE_ID", then " -" if released, or " ~" if released with pending writes
 * - device:nodes_left NODE_ID -> the time at which the node left, in seconds of Redis' clock
 *
 * The scripts and this file ignore entries of any other form. They also ignore a record with an epoch that is more than
 * HW_EPOCH_AHEAD_S ahead of Redis' clock.
 */
#ifndef HW_REDIS_CLUSTER_H
#define HW_REDIS_CLUSTER_H

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdint.h>

#include "link/eval.h"
#include "link/trouble.h"
#include "nodes/claims.h"
#include "nodes/nodes.h"
#include "redis/keys.h"
#include "redis/script.h"

#define HW_CLUSTER_ENTRIES 64 /* members of one answer */
#define HW_DIGEST_LEN      40

struct hw_cluster {
	const struct hw_keys *keys;     /* borrowed */
	const char *node;               /* NODE_ID, borrowed */
	char digest[HW_DIGEST_LEN + 1]; /* digest of the owners in the last answer that contained them; "": none yet */
};

/* The data of an order. The pointers are borrowed for the call. Each member is read only for the kinds of order that
 * its comment names. */
struct hw_cluster_with {
	const char *json;                 /* JOIN, RENEW: a JSON object; its "state" is "ready" if the order says so */
	const uint64_t *claims;           /* RENEW: HW_PARTITIONS epochs, those of our fencing tokens; 0: another
	                                   * node owns the partition */
	const struct hw_record *expected; /* CLAIM: HW_PARTITIONS records */
	const struct hw_fencing_token *given; /* RELEASE: HW_PARTITIONS tokens */
};

/* An answer. `nodes` borrows from the reply and from the arrays below. */
struct hw_cluster_answer {
	struct hw_nodes_answer nodes;
	struct hw_member_entry members[HW_CLUSTER_ENTRIES];
	const char *json[HW_CLUSTER_ENTRIES]; /* of each member, borrowed from the reply */
	const char *left[HW_CLUSTER_ENTRIES];
	struct hw_record owners[HW_PARTITIONS];
	unsigned impossible;          /* owners' records that are ignored because of their epoch */
	char denied[HW_TROUBLE_TEXT]; /* the reason if nodes.denied is set */
	unsigned unusable;            /* ignored entries: malformed, or more than HW_CLUSTER_ENTRIES */
};

void hw_cluster_init(struct hw_cluster *c, const struct hw_keys *keys, const char *node);
/* Called after a reconnect. The next answer must then contain all owners. */
void hw_cluster_forget(struct hw_cluster *c);

/* Builds the call of an order in `e`, and returns its script. If there was no memory, hw_eval_end() later returns
 * NULL. */
enum hw_cluster_script hw_cluster_call(const struct hw_cluster *c, struct hw_eval *e, const struct hw_nodes_order *o,
                                       const struct hw_cluster_with *with);

/*
 * Reads the reply to the call of `o`. Returns 0 and fills *out. Or returns -EPROTO, with one line in `error`: what is
 * wrong, what to do, and the key if one is the cause. After -EPROTO it is unknown whether the order was carried out.
 */
int hw_cluster_read(struct hw_cluster *c, const struct hw_nodes_order *o, const redisReply *reply,
                    struct hw_cluster_answer *out, char error[HW_TROUBLE_TEXT]);

#endif
