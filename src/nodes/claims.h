/* SPDX-License-Identifier: MIT */
/*
 * Claims as a presence says them (10.5): which tokens a node claims, "0-84:1700000001,90:1700000007", and the greatest
 * ones that it knows, "0-84:1700000001:NODE_ID 90:1700000007:NODE_ID". What is known names its nodes: two masters may
 * give out the same epoch twice, and then the name decides. Ranges ascend; the text is no longer than it must be.
 * And a record as Redis has it: "EPOCH NODE_ID", and behind it " -" once it was released, " ~" if something was owed
 * then.
 */
#ifndef HW_NODES_CLAIMS_H
#define HW_NODES_CLAIMS_H

#include <stddef.h>
#include <stdint.h>

#include "nodes/token.h"

/* The longest texts, with their NULs: 256 ranges of one partition each. */
#define HW_CLAIMS_TEXT (HW_PARTITIONS * 25)
#define HW_KNOWN_TEXT  (HW_PARTITIONS * (25 + 1 + HW_NODE_ID_MAX))

/* Writes the text of 256 epochs, of which those that are 0 are left out, with a NUL. Returns its length. */
size_t hw_claims_text(const uint64_t epochs[HW_PARTITIONS], char buf[HW_CLAIMS_TEXT]);
/* The inverse: 0, or -EINVAL (a range that does not ascend or is none, an epoch of 0, anything else between) with
 * `epochs` undefined. "" is no claim. */
int hw_claims_parse(const char *text, size_t len, uint64_t epochs[HW_PARTITIONS]);

/* The same for tokens. */
size_t hw_known_text(const struct hw_token tokens[HW_PARTITIONS], char buf[HW_KNOWN_TEXT]);
int hw_known_parse(const char *text, size_t len, struct hw_token tokens[HW_PARTITIONS]);

/* Reads digits without a leading zero, at most `max`, from *at on, and moves it behind them: 0, or -EINVAL. */
int hw_claims_number(const char **at, const char *end, uint64_t max, uint64_t *out);

/* Whether it can be a NODE_ID in any of these texts. */
bool hw_claims_is_node(const char *text, size_t len);

/* A set of partitions as hexadecimal digits, of four partitions each, the lowest first; with a NUL. */
#define HW_PARTITIONS_TEXT (HW_PARTITIONS / 4 + 1)
void hw_partitions_text(const struct hw_partitions *set, char buf[HW_PARTITIONS_TEXT]);
/* 0; or -EINVAL with *out undefined. */
int hw_partitions_parse(const char *text, size_t len, struct hw_partitions *out);

/* The longest record, with its NUL. */
#define HW_RECORD_TEXT (20 + 1 + HW_NODE_ID_MAX + 2 + 1)

/* A record as Redis has it, with a NUL; "" for none. Returns its length. */
size_t hw_record_text(const struct hw_record *r, char buf[HW_RECORD_TEXT]);
/* 0 and *out; or -EINVAL, and *out is none. */
int hw_record_parse(const char *text, size_t len, struct hw_record *out);

#endif
