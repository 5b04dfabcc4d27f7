/* SPDX-License-Identifier: MIT */
/*
 * Counts the Sentinels that confirm now that a server is the master.
 *
 * hw_follow trusts one Sentinel at a time, which is enough to find the master. But if the network is split, a Sentinel
 * on the wrong side names the old master. So this code asks each Sentinel of the list regularly, over a connection of
 * its own. At most one side of a split network has more than half of the Sentinels.
 *
 * Cost: a connection to each Sentinel, and one question to each in `pace_ms`.
 */
#ifndef HW_LINK_VOICES_H
#define HW_LINK_VOICES_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/hosts.h"

struct event_base;
struct hw_voices; /* opaque */

/* Creates the connections to the Sentinels. `sentinels`: a list for hw_hosts_parse(). `master`: the name of the
 * master there, borrowed. Each Sentinel is asked every `pace_ms`. `on_answer` is called with `arg` at each answer,
 * but never by a function below. Returns NULL if there is no memory. */
struct hw_voices *hw_voices_new(struct event_base *base, const char *sentinels, const char *master, int64_t pace_ms,
                                void (*on_answer)(void *arg), void *arg);
void hw_voices_free(struct hw_voices *v);

/* hw_voices_all(): how many Sentinels there are. hw_voices_for(): how many of them named `server` in their last
 * answer, if its question was sent within the last `within_ms`. */
unsigned hw_voices_all(const struct hw_voices *v);
unsigned hw_voices_for(const struct hw_voices *v, const struct hw_host *server, int64_t within_ms);
/* Returns the least down-after-milliseconds of all Sentinels: if a master is silent for that long, it may be
 * replaced. -1: not known. */
int64_t hw_voices_down_after_ms(const struct hw_voices *v);
/* Called each second: starts a timer for which there was no memory before. */
void hw_voices_tick(struct hw_voices *v);

#endif
