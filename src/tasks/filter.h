/* SPDX-License-Identifier: MIT */
/* Which transitions a follower wants: JSON {"ids","group","prefix"}, all that is given, as its session keeps it. */
#ifndef HW_TASKS_FILTER_H
#define HW_TASKS_FILTER_H

#include "tasks/message.h"
#include "tasks/stream_reader.h"

/* Of a request; on the heap; NULL without memory. */
char *hw_filter_of(const struct hw_request *q);
/* All that the filter, a valid object, names must hold. */
bool hw_filter_matches(const char *filter, const struct hw_device_transition *d);

#endif
