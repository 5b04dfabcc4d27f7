/* SPDX-License-Identifier: MIT */
/* What the files of the keys share. */
#ifndef HW_ALERT_KEYS_PRIV_H
#define HW_ALERT_KEYS_PRIV_H

#include "alert/memory/dict.h"
#include "alert/memory/keys.h"

enum hw_key_type { HW_KEY_STRING, HW_KEY_HASH, HW_KEY_ZSET, HW_KEY_SET, HW_KEY_STREAM, HW_KEY_TYPES };

struct hw_key_entry {
	struct hw_stream_id id;
	char **words; /* owned: names and values, alternating; one allocation */
	size_t n;
};

/* The value of a key. `items`: of a hash (texts), a zset (scores, as texts) and a set. */
struct hw_key {
	enum hw_key_type type;
	char *text;
	struct hw_dict items;
	struct hw_key_entry *entries; /* from `first` on: `n` */
	size_t first, n, cap;
};

struct hw_keys {
	struct hw_dict keys; /* struct hw_key */
	bool failed, must_store;
	struct evbuffer *changes; /* the commands since the keys were stored, as elements of a JSON array; NULL: some
	                           * are missing */
};

/* Returns the key; NULL: there is none. */
struct hw_key *hw_keys_find(const struct hw_keys *k, const char *name);
/* Returns the first entry with an id of `from` or later: its index, or `n`. */
size_t hw_key_first_entry(const struct hw_key *o, struct hw_stream_id from);

/* Answers in the wire format. `out` may be NULL. */
void hw_keys_answer_text(FILE *out, const char *text); /* NULL: nil */
void hw_keys_answer_count(FILE *out, size_t n);        /* of the elements that follow */
void hw_keys_answer_int(FILE *out, long long n);

typedef void hw_keys_command(struct hw_keys *k, size_t n, const char *const *words, FILE *out);
hw_keys_command hw_keys_hgetall, hw_keys_scan, hw_keys_zrange, hw_keys_zrevrange, hw_keys_zrevrank,
	hw_keys_zrangebyscore, hw_keys_smembers, hw_keys_mget, hw_keys_xrange, hw_keys_xrevrange, hw_keys_script,
	hw_keys_evalsha;

/* A member of a zset with its score. */
struct hw_key_member {
	double score;
	const char *name;
};
/* Returns the members by score and name; NULL if there is no memory, and `failed` is set. The caller frees the array.
 */
struct hw_key_member *hw_keys_sorted(struct hw_keys *k, const struct hw_key *o);

#endif
