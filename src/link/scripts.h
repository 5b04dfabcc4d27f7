/* SPDX-License-Identifier: MIT */
/*
 * A program's Lua scripts in Redis: all are loaded together, after each connect and whenever Redis turns out to have
 * forgotten them, and called by their digests.
 */
#ifndef HW_LINK_SCRIPTS_H
#define HW_LINK_SCRIPTS_H

#include <stdbool.h>

#include "link/eval.h"
#include "link/link.h"

#define HW_SCRIPTS_MAX 16

struct hw_scripts_ops {
	/* All are there. */
	void (*on_loaded)(void *arg);
	/* One was refused; the others' answers may follow. */
	void (*on_refused)(void *arg, const char *error);
};

struct hw_scripts {
	struct hw_redis_link *link; /* borrowed */
	const struct hw_scripts_ops *ops;
	void *arg;
	unsigned n, awaited;
	struct hw_scripts_one {
		struct hw_scripts *all;
		const char *text; /* borrowed */
		char sha[HW_SHA_LEN + 1];
	} one[HW_SCRIPTS_MAX];
};

/* Readies caller's storage. `texts`: `n` of them, HW_SCRIPTS_MAX at most; a script's number is its place there. */
void hw_scripts_init(struct hw_scripts *s, struct hw_redis_link *link, const char *const *texts, unsigned n,
                     const struct hw_scripts_ops *ops, void *arg);
/* Loads them, unless that is under way; without memory the link fails. */
void hw_scripts_load(struct hw_scripts *s);
/* Whether a load is under way: nothing should be called then. */
bool hw_scripts_loading(const struct hw_scripts *s);
/* The link is lost: nothing is under way. */
void hw_scripts_lost(struct hw_scripts *s);
/* Sends the call that `e` holds, and ends it. 0, or -ENOTCONN or -ENOMEM and `fn` is not called. */
int hw_scripts_call(struct hw_scripts *s, unsigned script, struct hw_eval *e, redisCallbackFn *fn, void *arg);

#endif
