/* SPDX-License-Identifier: MIT */
/*
 * A program's Lua scripts in Redis. All are loaded together, after each connect and whenever Redis has lost them. They
 * are called by their digests.
 */
#ifndef HW_LINK_SCRIPTS_H
#define HW_LINK_SCRIPTS_H

#include <stdbool.h>

#include "link/eval.h"
#include "link/link.h"

#define HW_SCRIPTS_MAX 16

struct hw_scripts_ops {
	/* All scripts are loaded. */
	void (*on_loaded)(void *arg);
	/* Called when Redis has refused a script. The answers for other scripts may follow. */
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

/* Initialises the caller's storage. `texts`: `n` scripts, at most HW_SCRIPTS_MAX. A script's number is its index
 * there. */
void hw_scripts_init(struct hw_scripts *s, struct hw_redis_link *link, const char *const *texts, unsigned n,
                     const struct hw_scripts_ops *ops, void *arg);
/* Loads all scripts, unless they are being loaded. If there is no memory, the connection is given up. */
void hw_scripts_load(struct hw_scripts *s);
/* Whether scripts are being loaded. The caller should send no calls until this ends. */
bool hw_scripts_loading(const struct hw_scripts *s);
/* The link is lost: no load is under way any more. */
void hw_scripts_lost(struct hw_scripts *s);
/* Completes the call in `e` and sends it. Returns 0, or -ENOTCONN or -ENOMEM, and `fn` is then not called. */
int hw_scripts_call(struct hw_scripts *s, unsigned script, struct hw_eval *e, redisCallbackFn *fn, void *arg);

#endif
