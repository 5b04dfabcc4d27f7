/* SPDX-License-Identifier: MIT */
/* What the other nodes have written: the event stream, followed, and all of the store, read again after a gap. */
#ifndef HW_CLUSTER_STREAM_H
#define HW_CLUSTER_STREAM_H

#include <stdbool.h>

#include "heartwheel/time.h"

struct hw_app;
struct hw_tail;

struct hw_cluster_stream {
	struct hw_tail *tail; /* owned */
	bool followed;        /* to its end, at least once since it began anew */
};

int hw_app_cluster_stream_start(struct hw_app *a);
void hw_app_cluster_stream_free(struct hw_app *a);
void hw_app_cluster_stream_tick(struct hw_app *a, struct hw_now now);

#endif
