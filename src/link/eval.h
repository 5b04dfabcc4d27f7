/* SPDX-License-Identifier: MIT */
/*
 * The building of a script's call: EVALSHA in the wire format, its keys and arguments appended one by one, in buffers
 * that are kept for the next call.
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
	int item;    /* n_args less place of the next argument, since an item began */
	bool failed; /* no memory: hw_eval_end() says so */
};

/* Zeroed storage is ready for hw_eval_begin(). The first argument has place 1. */
void hw_eval_begin(struct hw_eval *e);
/* The next argument begins an item: it has place 0. */
void hw_eval_item(struct hw_eval *e);
void hw_eval_key(struct hw_eval *e, const char *key, size_t len);
void hw_eval_arg(struct hw_eval *e, const char *arg, size_t len);
void hw_eval_arg_text(struct hw_eval *e, const char *arg);
void hw_eval_arg_int(struct hw_eval *e, int64_t arg);
/* The same for an argument whose place has a name (HW_AT_WRITE_SEQ: places.h). It must be the next one. */
void hw_eval_put(struct hw_eval *e, unsigned place, const char *arg, size_t len);
void hw_eval_put_text(struct hw_eval *e, unsigned place, const char *arg);
void hw_eval_put_int(struct hw_eval *e, unsigned place, int64_t arg);
/* A number below 1,000 that is not known yet: returns where it stands, for hw_eval_set_count(). */
#define HW_EVAL_COUNT_LEN 3
size_t hw_eval_put_count(struct hw_eval *e, unsigned place);
void hw_eval_set_count(struct hw_eval *e, size_t at, unsigned n);
/* The same for any text of a known length: '0's for now, for hw_eval_fill(), which may fill a part of it. */
size_t hw_eval_put_room(struct hw_eval *e, unsigned place, size_t len);
void hw_eval_fill(struct hw_eval *e, size_t at, const char *text, size_t len);
/* Bytes so far. */
size_t hw_eval_size(const struct hw_eval *e);
/* The whole command, valid until the next begin, or NULL without memory. */
const char *hw_eval_end(struct hw_eval *e, const char sha[HW_SHA_LEN], size_t *len);
void hw_eval_fini(struct hw_eval *e);

#endif
