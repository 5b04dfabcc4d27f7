/* SPDX-License-Identifier: MIT */
/*
 * Counts devices by the beginnings of their ids, up to a level; a level ends with one of the characters / . : _ -.
 * Cost: a look-up per device. At most HW_LEVELS_MAX beginnings are counted separately, the others together.
 */
#ifndef HW_CONTROL_LEVELS_H
#define HW_CONTROL_LEVELS_H

#include "heartwheel/registry.h"

#define HW_LEVELS_MAX 1000
#define HW_LEVEL_DEEP 16 /* the deepest level */

struct hw_json;
struct hw_levels;

/* Counts by the first `depth` levels, 1 .. HW_LEVEL_DEEP. NULL without memory. */
struct hw_levels *hw_levels_new(unsigned depth);
void hw_levels_free(struct hw_levels *l);

void hw_levels_count(struct hw_levels *l, struct hw_id id, enum hw_state state);
/* Writes the members "levels", most offline devices first, and "rest". No counting after this call. */
void hw_levels_write(struct hw_levels *l, struct hw_json *j);

#endif
