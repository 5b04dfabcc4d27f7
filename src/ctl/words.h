/* SPDX-License-Identifier: MIT */
/* What a status says, in the words that all commands use for it. */
#ifndef HW_CTL_WORDS_H
#define HW_CTL_WORDS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#define HW_WORDS_MAX 256

/*
 * Why devices cannot be heard, and since when: "cannot hear devices: broker connection lost 17s ago; nobody is judged",
 * or that the monitor has just begun. False, and an empty text, if it hears them. `out` holds HW_WORDS_MAX bytes.
 */
bool hw_words_blind(const cJSON *status, char *out);

/* Heartbeats a second. What the daemon says is a mean of the last seconds: none come while its connection is lost. */
double hw_words_rate(const cJSON *status);

/* Whether Redis does what it is there for, or is not used; what else the status says of it tells why not. */
bool hw_words_redis_well(const cJSON *status);

/* Of a node that stands by: "'a' owns the fleet", and what is wrong with the owner or with this node. False if
 * something is. */
bool hw_words_standby(const cJSON *cluster, char *out);

/* Of one of several nodes: "2 ready of 3; this one owns 131 of 256; 1 lost". False if something is wrong with them. */
bool hw_words_nodes(const cJSON *cluster, char *out);

/* True if the object has that member, and it is true. */
bool hw_words_true(const cJSON *object, const char *key);

#endif
