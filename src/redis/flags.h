/* SPDX-License-Identifier: MIT */
/*
 * notify-keyspace-events: which of its letters the keyspace listener needs, and which are missing. The letter A stands
 * for the classes g$lshzxetd, in Redis' own words.
 */
#ifndef HW_REDIS_FLAGS_H
#define HW_REDIS_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#define HW_FLAGS_NEEDED "Exg$e"
#define HW_FLAGS_MAX    64

/* Writes `have` with what is missing put behind it, nothing taken away. Returns whether anything was. */
bool hw_flags_complete(const char *have, char buf[HW_FLAGS_MAX]);

#endif
