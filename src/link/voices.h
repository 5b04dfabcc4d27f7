/* SPDX-License-Identifier: MIT */
/*
 * How many Sentinels confirm that a server is the master now. hw_follow asks one Sentinel after the other, and believes
 * it: that finds the master, but a Sentinel on the wrong side of a network that is split names the old master. Here
 * each Sentinel of the list is asked again and again, over a connection of its own; of two sides of a network only one
 * has more than half of them.
 *
 * Cost: a connection to each Sentinel, and one question each per pace.
 */
#ifndef HW_LINK_VOICES_H
#define HW_LINK_VOICES_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/hosts.h"

struct event_base;
struct hw_voices; /* opaque */

/* `sentinels`: a list that hw_hosts_parse() takes; `master`: its name there, borrowed. Each is asked every `pace_ms`.
 * `on_answer` is called with `arg` at each answer, not from a function below. NULL without memory. */
struct hw_voices *hw_voices_new(struct event_base *base, const char *sentinels, const char *master, int64_t pace_ms,
                                void (*on_answer)(void *arg), void *arg);
void hw_voices_free(struct hw_voices *v);

/* How many Sentinels there are; and how many named this server when they were asked last, within the last `within_ms`.
 */
unsigned hw_voices_all(const struct hw_voices *v);
unsigned hw_voices_for(const struct hw_voices *v, const struct hw_host *server, int64_t within_ms);
/* The least time, by what Sentinels said, after which a master that does not answer is replaced; -1: none has said. */
int64_t hw_voices_down_after_ms(const struct hw_voices *v);
/* Each second: what a timer that found no memory has left undone. */
void hw_voices_tick(struct hw_voices *v);

#endif
