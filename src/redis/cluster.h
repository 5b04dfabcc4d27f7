/* SPDX-License-Identifier: MIT */
/*
 * What several nodes ask of Redis (scripts/renew.lua, claim.lua, release.lua, remove.lua): the calls, made from the
 * orders of src/nodes, and their answers, read into what src/nodes takes. Nothing here sends, keeps a connection or
 * judges: the calls of one connection are answered in their order, and whoever sends says when it is another one.
 *
 *   device:nodes   NODE_ID -> "RUN COUNT {json}", RUN 16 hexadecimal digits; "state" in the JSON says who is ready
 *   device:owners  PARTITION -> "EPOCH NODE_ID", and behind it " -" once it was released, " ~" if something was owed
 * then
 *   device:nodes_left  NODE_ID -> seconds of Redis' clock: it was a member until then
 *
 * What stands there and is none of this counts as not being there, here and in the scripts alike; so does a record with
 * an epoch that is more than HW_EPOCH_AHEAD_S ahead of Redis' clock.
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
	char digest[HW_DIGEST_LEN + 1]; /* of the owners that were told last; "": none were */
};

/* What an order needs beside itself; each is borrowed for the call, and only what its kind needs is looked at. */
struct hw_cluster_with {
	const char *json;                 /* JOIN, RENEW: an object, whose "state" is "ready" if the order is */
	const uint64_t *claims;           /* RENEW: HW_PARTITIONS epochs of our tokens, 0: not ours */
	const struct hw_record *expected; /* CLAIM: HW_PARTITIONS of them */
	const struct hw_token *given;     /* RELEASE: HW_PARTITIONS of them */
};

/* An answer. `nodes` borrows from the reply and from what stands behind it here. */
struct hw_cluster_answer {
	struct hw_nodes_answer nodes;
	struct hw_member_entry members[HW_CLUSTER_ENTRIES];
	const char *json[HW_CLUSTER_ENTRIES]; /* of each member, borrowed from the reply */
	const char *left[HW_CLUSTER_ENTRIES];
	struct hw_record owners[HW_PARTITIONS];
	unsigned impossible; /* owners' records whose epoch is too far ahead: they count as none */
	unsigned unusable;   /* what stood in either hash and is nothing, or is beyond HW_CLUSTER_ENTRIES */
};

void hw_cluster_init(struct hw_cluster *c, const struct hw_keys *keys, const char *node);
/* Another connection: all owners are to be told. */
void hw_cluster_forget(struct hw_cluster *c);

/* Builds the call of an order to Redis in `e`, and returns whose it is. No memory: hw_eval_end() says so. */
enum hw_cluster_script hw_cluster_call(const struct hw_cluster *c, struct hw_eval *e, const struct hw_nodes_order *o,
                                       const struct hw_cluster_with *with);

/*
 * Reads the reply to the call of `o`: 0 and *out; or -EPROTO and what is wrong and what to do, in `error`, one line
 * that names a key where one is to blame. What was asked is then not known to have happened.
 */
int hw_cluster_read(struct hw_cluster *c, const struct hw_nodes_order *o, const redisReply *reply,
                    struct hw_cluster_answer *out, char error[HW_TROUBLE_TEXT]);

#endif
