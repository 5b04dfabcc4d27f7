/* SPDX-License-Identifier: MIT */
/*
 * The claims in a node's presence, and the tokens that a node knows, as text.
 *
 * "0-84:1700000001,90:1700000007" are claims: the epochs of the tokens with which the node claims these partitions.
 * "0-84:1700000001:NODE_ID 90:1700000007:NODE_ID" are known tokens: the greatest that the node has read. They contain
 * the owner's name: two masters may give out the same epoch, and then the name decides. Ranges ascend, and as few
 * ranges as possible are used.
 *
 * An owner's record in Redis is "EPOCH NODE_ID". A released record has " -" after that, or " ~" if writes were pending
 * at the release.
 */
#ifndef HW_NODES_CLAIMS_H
#define HW_NODES_CLAIMS_H

#include <stddef.h>
#include <stdint.h>

#include "nodes/fencing_token.h"

/* The length of the longest text of each kind, with its NUL. This text has 256 ranges of one partition each. */
#define HW_CLAIMS_TEXT (HW_PARTITIONS * 25)
#define HW_KNOWN_TEXT  (HW_PARTITIONS * (25 + 1 + HW_NODE_ID_MAX))

/* Writes 256 epochs as text, with a NUL. Epochs of 0 are omitted. Returns the length. */
size_t hw_claims_text(const uint64_t epochs[HW_PARTITIONS], char buf[HW_CLAIMS_TEXT]);
/* Reads a text of hw_claims_text(). Returns 0, or -EINVAL for ranges that do not ascend, an epoch of 0, or any other
 * text; `epochs` is then undefined. "" means no claims. */
int hw_claims_parse(const char *text, size_t len, uint64_t epochs[HW_PARTITIONS]);

/* The same for tokens. */
size_t hw_known_text(const struct hw_fencing_token tokens[HW_PARTITIONS], char buf[HW_KNOWN_TEXT]);
int hw_known_parse(const char *text, size_t len, struct hw_fencing_token tokens[HW_PARTITIONS]);

/* Reads a number without leading zeros, at most `max`, and moves *at past it. Returns 0 or -EINVAL. */
int hw_claims_number(const char **at, const char *end, uint64_t max, uint64_t *out);

/* Whether a text can be a NODE_ID in any of these texts. */
bool hw_claims_is_node(const char *text, size_t len);

/* Writes a set of partitions as hexadecimal digits with a NUL. Each digit stands for four partitions, and the first
 * digit for the lowest four. */
#define HW_PARTITIONS_TEXT (HW_PARTITIONS / 4 + 1)
void hw_partitions_text(const struct hw_partitions *set, char buf[HW_PARTITIONS_TEXT]);
/* Returns 0; or -EINVAL, and *out is undefined. */
int hw_partitions_parse(const char *text, size_t len, struct hw_partitions *out);

/* The longest record, with its NUL. */
#define HW_RECORD_TEXT (20 + 1 + HW_NODE_ID_MAX + 2 + 1)

/* Writes an owner's record as Redis stores it, with a NUL; "" if there is none. Returns the length. */
size_t hw_record_text(const struct hw_record *r, char buf[HW_RECORD_TEXT]);
/* Reads a record. Returns 0 and the record in *out, or -EINVAL and an empty *out. */
int hw_record_parse(const char *text, size_t len, struct hw_record *out);

#endif
