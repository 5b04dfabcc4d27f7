/* SPDX-License-Identifier: MIT */
/*
 * The Lua scripts (scripts/NAME.lua, put into the program by embed.sh), and the building of their calls: EVALSHA in the
 * wire format, its keys and arguments appended one by one, in buffers that are kept for the next call.
 */
#ifndef HW_REDIS_SCRIPT_H
#define HW_REDIS_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hw_script { HW_SCRIPT_MARK, HW_SCRIPT_REFRESH, HW_SCRIPT_TRANSITION, HW_SCRIPTS };

#define HW_SHA_LEN 40

extern const char hw_script_mark_text[];
extern const char hw_script_refresh_text[];
extern const char hw_script_transition_text[];

const char *hw_script_text(enum hw_script s);

struct hw_bytes {
	char *at;
	size_t len, cap;
};

struct hw_eval {
	struct hw_bytes keys, args, whole;
	unsigned n_keys, n_args;
	bool failed; /* no memory: hw_eval_end() says so */
};

/* Zeroed storage is ready for hw_eval_begin(). */
void hw_eval_begin(struct hw_eval *e);
void hw_eval_key(struct hw_eval *e, const char *key, size_t len);
void hw_eval_arg(struct hw_eval *e, const char *arg, size_t len);
void hw_eval_arg_text(struct hw_eval *e, const char *arg);
void hw_eval_arg_int(struct hw_eval *e, int64_t arg);
/* A number below 1,000 that is not known yet: returns its place, for hw_eval_set_count(). */
#define HW_EVAL_COUNT_LEN 3
size_t hw_eval_arg_count(struct hw_eval *e);
void hw_eval_set_count(struct hw_eval *e, size_t at, unsigned n);
/* Bytes so far. */
size_t hw_eval_size(const struct hw_eval *e);
/* The whole command, valid until the next begin, or NULL without memory. */
const char *hw_eval_end(struct hw_eval *e, const char sha[HW_SHA_LEN], size_t *len);
void hw_eval_fini(struct hw_eval *e);

#endif
