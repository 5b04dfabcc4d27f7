/* SPDX-License-Identifier: MIT */
/*
 * notify-keyspace-events: the letters of this Redis setting that the keyspace listener needs. The letter A stands for
 * the classes g$lshzxetd.
 */
#ifndef HW_REDIS_FLAGS_H
#define HW_REDIS_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#define HW_FLAGS_NEEDED "Exg$e"
#define HW_FLAGS_MAX    64

/* Writes the letters of `have`, followed by the needed letters that `have` lacks. Returns whether any letter was
 * lacking. */
bool hw_flags_complete(const char *have, char buf[HW_FLAGS_MAX]);

#endif
