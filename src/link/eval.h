/* SPDX-License-Identifier: MIT */
/*
 * Builds the call of a script: EVALSHA in the wire format. Keys and arguments are appended one by one. The buffers are
 * kept for the next call.
 */
#ifndef HW_LINK_EVAL_H
#define HW_LINK_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_SHA_LEN 40

struct hw_bytes {
	char *at;
	size_t len, cap;
};

struct hw_eval {
	struct hw_bytes keys, args, whole;
	unsigned n_keys, n_args;
	int item;    /* value of n_args at the start of the item; the place of the next argument is n_args - item */
	bool failed; /* memory ran out: hw_eval_end() returns NULL */
};

/* Begins a call. `e` may be all zero. Each argument has a place, the index by which its script reads it. Places
 * count from 1, as in ARGV; after hw_eval_item(), they count from 0, at the start of the item. */
void hw_eval_begin(struct hw_eval *e);
/* Begins an item: the next argument has place 0. */
void hw_eval_item(struct hw_eval *e);
void hw_eval_key(struct hw_eval *e, const char *key, size_t len);
void hw_eval_arg(struct hw_eval *e, const char *arg, size_t len);
void hw_eval_arg_text(struct hw_eval *e, const char *arg);
void hw_eval_arg_int(struct hw_eval *e, int64_t arg);
/* Like hw_eval_arg(), for an argument whose place has a name (HW_AT_WRITE_SEQ, see places.h). Asserts that this is
 * the place of the next argument. */
void hw_eval_put(struct hw_eval *e, unsigned place, const char *arg, size_t len);
void hw_eval_put_text(struct hw_eval *e, unsigned place, const char *arg);
void hw_eval_put_int(struct hw_eval *e, unsigned place, int64_t arg);
/* Appends room for a number below 1,000 that is not known yet. Returns its position for hw_eval_set_count(). */
#define HW_EVAL_COUNT_LEN 3
size_t hw_eval_put_count(struct hw_eval *e, unsigned place);
void hw_eval_set_count(struct hw_eval *e, size_t at, unsigned n);
/* Appends `len` bytes of '0' for a text that is not known yet. Returns their position for hw_eval_fill(), which may
 * overwrite only a part of them. */
size_t hw_eval_put_room(struct hw_eval *e, unsigned place, size_t len);
void hw_eval_fill(struct hw_eval *e, size_t at, const char *text, size_t len);
/* hw_eval_args(): returns the length of the arguments so far, in bytes. hw_eval_take_back(): keeps the first `n`
 * arguments, and removes all later ones. `at`: the result of hw_eval_args() when there were `n` arguments. */
size_t hw_eval_args(const struct hw_eval *e);
void hw_eval_take_back(struct hw_eval *e, size_t at, unsigned n);
/* Whether two parts of the arguments are equal: `len` bytes at `a` and at `b`. */
bool hw_eval_same(const struct hw_eval *e, size_t a, size_t b, size_t len);
/* Bytes of keys and arguments so far. */
size_t hw_eval_size(const struct hw_eval *e);
/* Returns the whole command, valid until the next hw_eval_begin(); NULL if there is no memory. */
const char *hw_eval_end(struct hw_eval *e, const char sha[HW_SHA_LEN], size_t *len);
void hw_eval_fini(struct hw_eval *e);

#endif
