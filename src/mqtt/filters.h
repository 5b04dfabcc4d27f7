/* SPDX-License-Identifier: MIT */
/*
 * What one reader subscribes to: the heartbeats' filters and the barrier topic, and which of them the broker granted.
 * Made by the loop's thread, then handed to the reader's; never used by both.
 */
#ifndef HW_MQTT_FILTERS_H
#define HW_MQTT_FILTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "mqtt/link.h"

struct hw_filters;

/* Copies all; `share_group` NULL: plain subscriptions, and none to `share_topic`. NULL without memory. */
struct hw_filters *hw_filters_new(const struct hw_mqtt_filter *filters, size_t n, const char *share_group,
                                  const char *barrier_topic, const char *share_topic);
void hw_filters_free(struct hw_filters *f);

/* A new connection: nothing is granted. */
void hw_filters_forget(struct hw_filters *f);
/* Those that bring what is retained are to be asked for once more. Whether there are any. */
bool hw_filters_replay(struct hw_filters *f);
/* Those that `from` was granted need not be asked for again; unsubscribes what `f` does not have. 0, or -1 with the
 * link's `why`. */
int hw_filters_replace(struct hw_filters *f, const struct hw_filters *from, struct hw_link *l);
/* Subscribes to all that was neither granted nor asked for. 0, or -1 with the link's `why`. */
int hw_filters_ask(struct hw_filters *f, struct hw_link *l);
/* A SUBACK: the filter if it was refused, otherwise NULL. */
const char *hw_filters_answer(struct hw_filters *f, int mid, int code);
bool hw_filters_granted(const struct hw_filters *f);

#endif
