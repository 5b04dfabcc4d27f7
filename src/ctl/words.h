/* SPDX-License-Identifier: MIT */
/* The status in words, common to all commands. */
#ifndef HW_CTL_WORDS_H
#define HW_CTL_WORDS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#define HW_WORDS_MAX 256

/*
 * Writes why and since when the monitor is blind: "cannot hear devices: broker connection lost 17s ago; no device is
 * judged", or that the monitor is starting. Returns false, with an empty text, if it is not blind. `out` has room for
 * HW_WORDS_MAX bytes.
 */
bool hw_words_blind(const cJSON *status, char *out);

/* Returns the heartbeats per second; 0 while the connection to the broker is lost, because the daemon's value is a
 * mean of the last seconds. */
double hw_words_rate(const cJSON *status);

/* Whether Redis works or is not used. If false, `redis` in the status has the reason. */
bool hw_words_redis_well(const cJSON *status);

/* Writes a text about a standby node, such as "'a' owns the fleet", and problems of the owner or of this node. Returns
 * false if there are problems. */
bool hw_words_standby(const cJSON *cluster, char *out);

/* Writes a text about the nodes, such as "2 ready of 3; this one owns 131 of 256; 1 lost". Returns false if there are
 * problems. */
bool hw_words_nodes(const cJSON *cluster, char *out);

/* Whether the member exists and is true. */
bool hw_words_true(const cJSON *object, const char *key);

#endif
