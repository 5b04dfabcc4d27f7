/* SPDX-License-Identifier: MIT */
/*
 * Takers: filters that take topics from later groups. The first group in the file that matches a topic takes it, even
 * if it ignores the topic. So a group's form depends on the filters of earlier groups that overlap with its own.
 *
 * Cost: that of filter_index.h. Private to the core.
 */
#ifndef HW_TAKERS_H
#define HW_TAKERS_H

#include <stddef.h>

#include "heartwheel/group.h"

/* Completes the form_hash of groups[0 .. n), in the order of the file. Each form_hash has the group's own form when
 * this is called. The order of the filters has no influence. A form has eight hexadecimal digits and is never 0.
 * Returns 0 or -ENOMEM. */
int hw_takers_add(struct hw_group *const *groups, size_t n);

#endif
