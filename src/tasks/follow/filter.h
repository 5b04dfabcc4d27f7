/* SPDX-License-Identifier: MIT */
/* A follower's filter of transitions: JSON {"ids","group","prefix"}, with only the members that the client has sent.
 * The follower's session stores it. */
#ifndef HW_TASKS_FILTER_H
#define HW_TASKS_FILTER_H

#include "tasks/follow/transition.h"
#include "tasks/mqtt/message.h"

/* Returns the filter in a request, in heap memory; NULL if there is no memory. */
char *hw_filter_of(const struct hw_request *q);
/* Whether the transition matches each member of the filter. `filter` must be a valid object. */
bool hw_filter_matches(const char *filter, const struct hw_device_transition *d);

#endif
