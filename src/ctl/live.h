/* SPDX-License-Identifier: MIT */
/*
 * The daemon, asked by a program that must not wait: several requests side by side and one stream of events, each on a
 * connection of its own that is kept. By libcurl's multi interface.
 */
#ifndef HW_CTL_LIVE_H
#define HW_CTL_LIVE_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#define HW_LIVE_ASKS 8

struct hw_live; /* opaque */

/* Called from hw_live_wait() alone. */
struct hw_live_ops {
	/* An answer: `code` 0 if none came within ten seconds, or nobody is there. `json` may be NULL, and is taken
	 * over. */
	void (*on_answer)(void *arg, unsigned ask, long code, cJSON *json);
	void (*on_line)(void *arg, const char *line); /* of the stream */
	void (*on_end)(void *arg, long code);         /* of the stream; 0: nobody was there */
};

/* NULL without memory. */
struct hw_live *hw_live_new(const struct hw_live_ops *ops, void *arg);
void hw_live_free(struct hw_live *l);

/* Asks for `path` at that socket: number `ask` of HW_LIVE_ASKS. -EBUSY: that one is still out. 0 or -errno. */
int hw_live_ask(struct hw_live *l, unsigned ask, const char *socket, const char *path);
/* Opens the stream; `last` is where it goes on, "" for now. -EBUSY: it is open. 0 or -errno. */
int hw_live_follow(struct hw_live *l, const char *socket, const char *path, const char *last);
bool hw_live_follows(const struct hw_live *l);

/*
 * Goes on with all of it, for at most that long, or until something can be read from one of the two descriptors. 0, or
 * -ENOMEM.
 */
int hw_live_wait(struct hw_live *l, const int fds[2], int timeout_ms);

#endif
