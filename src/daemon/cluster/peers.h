/* SPDX-License-Identifier: MIT */
/*
 * The messages that the nodes of a cluster publish about themselves, as text. heartwheel/NODE_ID/status has a node's
 * presence. heartwheel/NODE_ID/known has the greatest fencing tokens that the node knows; no last will replaces it. A
 * message of another cluster or of a single monitor counts as a message without claims and known tokens. Pure: no I/O.
 */
#ifndef HW_PEERS_H
#define HW_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nodes/fencing_token.h"

enum hw_peer_topic { HW_PEER_NONE, HW_PEER_STATUS, HW_PEER_KNOWN };

/* Returns the kind of a topic, and the node in it. */
enum hw_peer_topic hw_peer_topic(const char *topic, size_t len, char node[HW_NODE_ID_MAX + 1]);

/* Reads the claims in a presence of this cluster. A presence that is offline or empty has none. Sets *seq to the
 * number of the presence; 0: it has none. Returns 0, or -EINVAL if the presence is malformed; `claims` is then
 * undefined. */
int hw_peer_claims(const char *payload, size_t len, const char *cluster, uint64_t claims[HW_PARTITIONS], uint64_t *seq);

/* Reads the known fencing tokens in the same way. */
int hw_peer_known(const char *payload, size_t len, const char *cluster, struct hw_fencing_token known[HW_PARTITIONS],
                  uint64_t *seq);

/* Whether a presence is of another cluster or of a single monitor. */
bool hw_peer_is_of_another(const char *payload, size_t len, const char *cluster);

/* Writes the known fencing tokens, with a NUL. Returns the length, or -1 if `buf` is too small. */
int hw_peer_print_known(const char *cluster, const char *node, uint64_t seq,
                        const struct hw_fencing_token known[HW_PARTITIONS], char *buf, size_t cap);
/* Writes a presence `offline` of `node`, which the node `by` publishes when it evicts `node`. */
int hw_peer_print_offline(const char *cluster, const char *node, const char *by, int64_t wall_ms, char *buf,
                          size_t cap);

/* Enough for the known fencing tokens if node ids need few escapes, and less than a reader's limit. */
#define HW_PEER_KNOWN_MAX (2 * HW_PARTITIONS * (25 + 1 + HW_NODE_ID_MAX))

#endif
