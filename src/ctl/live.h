/* SPDX-License-Identifier: MIT */
/*
 * Requests to the daemon that do not block: several at a time and one event stream, each on a connection of its own
 * that stays open. Uses libcurl's multi interface.
 */
#ifndef HW_CTL_LIVE_H
#define HW_CTL_LIVE_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#define HW_LIVE_ASKS 8

struct hw_live; /* opaque */

/* Called only from hw_live_wait(). */
struct hw_live_ops {
	/* Called with an answer. `code` 0: there was none within ten seconds, or no connection. `json` may be NULL;
	 * the callback owns it. */
	void (*on_answer)(void *arg, unsigned ask, long code, cJSON *json);
	void (*on_line)(void *arg, const char *line); /* a line of the stream */
	void (*on_end)(void *arg, long code);         /* the stream ended; 0: no connection */
};

/* Returns NULL if there is no memory. */
struct hw_live *hw_live_new(const struct hw_live_ops *ops, void *arg);
void hw_live_free(struct hw_live *l);

/* Requests `path` at `socket` as request number `ask`, which is less than HW_LIVE_ASKS. Returns 0 or -errno; -EBUSY: a
 * request with this number is open. */
int hw_live_ask(struct hw_live *l, unsigned ask, const char *socket, const char *path);
/* Opens the stream after the id `last`; "": only new events. Returns 0 or -errno; -EBUSY: it is open. */
int hw_live_follow(struct hw_live *l, const char *socket, const char *path, const char *last);
bool hw_live_follows(const struct hw_live *l);

/*
 * Processes all transfers for at most `timeout_ms`, or until one of the two descriptors is readable. Returns 0 or
 * -ENOMEM.
 */
int hw_live_wait(struct hw_live *l, const int fds[2], int timeout_ms);

#endif
