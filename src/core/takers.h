/* SPDX-License-Identifier: MIT */
/*
 * Takers: filters of earlier groups that also match topics of a later group. The first group in the file that matches a
 * topic takes it, even if that group ignores the topic. So a group's form also depends on the filters of earlier groups
 * that overlap with its own filters.
 *
 * Cost: that of filter_index.h. Private to the core.
 */
#ifndef HW_TAKERS_H
#define HW_TAKERS_H

#include <stddef.h>

#include "heartwheel/group.h"

/* Adds to each form_hash the filters of earlier groups that overlap with the group's own filters. On entry, a form_hash
 * covers only the group's own settings. `groups` is in the order of the file. The order of the filters in a group does
 * not matter. Afterwards form_hash is a number of 32 bits and never 0. Returns 0 or -ENOMEM. */
int hw_takers_add(struct hw_group *const *groups, size_t n);

#endif
