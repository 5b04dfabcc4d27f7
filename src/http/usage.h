/* SPDX-License-Identifier: MIT */
/* The daemon's resource use, under the usual names of Prometheus client libraries: process_*. */
#ifndef HW_USAGE_H
#define HW_USAGE_H

struct evbuffer;

/* Appends the families. Values that /proc does not provide are left out. */
void hw_usage_metrics(struct evbuffer *b);

#endif
