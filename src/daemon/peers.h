/* SPDX-License-Identifier: MIT */
/*
 * What nodes of a cluster say of themselves over the broker (design 10.5), as text: their presence on
 * heartwheel/NODE_ID/status, and on heartwheel/NODE_ID/known the greatest tokens that they know of, which no last will
 * replaces. Of another cluster's, or of a monitor that is alone, nothing is claimed or known here. Pure.
 */
#ifndef HW_PEERS_H
#define HW_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "nodes/token.h"

enum hw_peer_topic { HW_PEER_NONE, HW_PEER_STATUS, HW_PEER_KNOWN };

/* Which of them it is, and whose. */
enum hw_peer_topic hw_peer_topic(const char *topic, size_t len, char node[HW_NODE_ID_MAX + 1]);

/* What a presence claims in this cluster; nothing if it is offline, or empty. *seq: its own number, 0 if it has none.
 * 0; or -EINVAL: it cannot be read, and `claims` are undefined. */
int hw_peer_claims(const char *payload, size_t len, const char *cluster, uint64_t claims[HW_PARTITIONS], uint64_t *seq);

/* What is known, the same way. */
int hw_peer_known(const char *payload, size_t len, const char *cluster, struct hw_token known[HW_PARTITIONS],
                  uint64_t *seq);

/* Write them, with a NUL. The length; -1 if it does not fit. */
int hw_peer_print_known(const char *cluster, const char *node, uint64_t seq, const struct hw_token known[HW_PARTITIONS],
                        char *buf, size_t cap);
/* In the place of a node that is cut off by the node `by`. */
int hw_peer_print_offline(const char *cluster, const char *node, const char *by, int64_t wall_ms, char *buf,
                          size_t cap);

/* Enough for a known one, of node ids in which little is to be escaped; less than a reader takes. */
#define HW_PEER_KNOWN_MAX (2 * HW_PARTITIONS * (25 + 1 + HW_NODE_ID_MAX))

#endif
