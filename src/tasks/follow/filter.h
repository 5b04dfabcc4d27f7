/* SPDX-License-Identifier: MIT */
/* A follower's filter of transitions: JSON {"ids","group","prefix"} with the members that the client gave, as its
 * session stores it. */
#ifndef HW_TASKS_FILTER_H
#define HW_TASKS_FILTER_H

#include "tasks/follow/transition.h"
#include "tasks/mqtt/message.h"

/* The filter of a request, on the heap; NULL without memory. */
char *hw_filter_of(const struct hw_request *q);
/* Whether the transition satisfies every member of the filter, a valid object. */
bool hw_filter_matches(const char *filter, const struct hw_device_transition *d);

#endif
