/* SPDX-License-Identifier: MIT */
/* What the daemon's process uses, under the names that Prometheus' client libraries give it: process_*. */
#ifndef HW_USAGE_H
#define HW_USAGE_H

struct evbuffer;

/* Appends the families. What /proc does not say is left out. */
void hw_usage_metrics(struct evbuffer *b);

#endif
