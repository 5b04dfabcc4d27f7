/* SPDX-License-Identifier: MIT */
/*
 * Counts devices by their ids' beginnings up to a level, for example "site-3/". A level ends with one of the characters
 * / . : _ -. At most HW_LEVELS_MAX beginnings have counts of their own; all others share one count. Cost: one look-up
 * for each device.
 */
#ifndef HW_CONTROL_LEVELS_H
#define HW_CONTROL_LEVELS_H

#include "heartwheel/registry.h"

#define HW_LEVELS_MAX 1000
#define HW_LEVEL_DEEP 16 /* the deepest level */

struct hw_json;
struct hw_levels;

/* Counts by the first `depth` levels, which is 1 to HW_LEVEL_DEEP. NULL if there is no memory. */
struct hw_levels *hw_levels_new(unsigned depth);
void hw_levels_free(struct hw_levels *l);

void hw_levels_count(struct hw_levels *l, struct hw_id id, enum hw_state state);
/* Writes the members "levels", with the most offline devices first, and "rest". After this, nothing may be counted. */
void hw_levels_write(struct hw_levels *l, struct hw_json *j);

#endif
