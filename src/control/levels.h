/* SPDX-License-Identifier: MIT */
/*
 * Devices counted by how their ids begin: up to a level of the id, where a level ends with one of the characters
 * / . : _ -. Cost: one look-up for each device; at most HW_LEVELS_MAX beginnings are told apart, the others' devices
 * are counted together.
 */
#ifndef HW_CONTROL_LEVELS_H
#define HW_CONTROL_LEVELS_H

#include "heartwheel/registry.h"

#define HW_LEVELS_MAX 1000
#define HW_LEVEL_DEEP 16 /* the deepest level that can be asked for */

struct hw_json;
struct hw_levels;

/* Counts up to the level `depth`, 1 .. HW_LEVEL_DEEP. NULL without memory. */
struct hw_levels *hw_levels_new(unsigned depth);
void hw_levels_free(struct hw_levels *l);

void hw_levels_count(struct hw_levels *l, struct hw_id id, enum hw_state state);
/* Writes the member "levels", those with most offline first, and "rest". Nothing may be counted after it. */
void hw_levels_write(struct hw_levels *l, struct hw_json *j);

#endif
