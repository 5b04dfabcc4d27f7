/* SPDX-License-Identifier: MIT */
/*
 * The keys that heartwheel-alert has in Redis, in memory: for [store] type = memory. Carries out the commands that
 * heartwheel-alert sends, with Redis' answers in Redis' wire format (RESP2), and the work of its four scripts.
 *
 * What differs from Redis: texts have no NUL. A write replaces a key of another type. The lease is not kept, because a
 * lock allows only one instance. `MAXLEN ~` trims exactly.
 *
 * Invariant: if there is no memory, `hw_keys_failed()` is true from then on. The keys may then lack a part of a
 * script's work, and must not be stored.
 */
#ifndef HW_ALERT_KEYS_H
#define HW_ALERT_KEYS_H

#include <stdbool.h>
#include <stdio.h>

#include "stream/id.h"

struct evbuffer;
struct hw_keys;
struct hw_json;

/* `seed`: a random number. */
struct hw_keys *hw_keys_new(uint64_t seed);
void hw_keys_free(struct hw_keys *k);
bool hw_keys_failed(const struct hw_keys *k);

/* Carries out a command. `words`: `n` texts. Appends the answer to `out`; `out` NULL: the answer is not needed. */
void hw_keys_run(struct hw_keys *k, size_t n, const char *const *words, FILE *out);
/* The same for words with a NULL at the end. */
void hw_keys_do(struct hw_keys *k, const char *const *words);

/* Whether a script has changed anything but offsets since the last call of hw_keys_stored(). The keys must then be
 * stored before the script's answer is used. */
bool hw_keys_must_store(const struct hw_keys *k);
void hw_keys_stored(struct hw_keys *k);
/* Returns the commands that have changed keys since hw_keys_stored(), as the elements of a JSON array, which the caller
 * may take. Returns NULL if they are not all known: then all keys must be stored. */
struct evbuffer *hw_keys_changes(struct hw_keys *k);

/* Returns the value of a text, or of a hash's field or a zset's member, until the next command; NULL: there is none. */
const char *hw_keys_text(const struct hw_keys *k, const char *key);
const char *hw_keys_field(const struct hw_keys *k, const char *key, const char *field);
/* Returns the name of the item at a place of a hash, zset or set; NULL: there are fewer. */
const char *hw_keys_item(const struct hw_keys *k, const char *key, size_t at);
/* Returns the id of a stream's newest entry; {0, 0}: it has none. */
struct hw_stream_id hw_keys_newest(const struct hw_keys *k, const char *stream);

/* Writes all keys as elements of a JSON array. */
void hw_keys_write(const struct hw_keys *k, struct hw_json *j);

#endif
