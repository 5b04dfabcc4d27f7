/* SPDX-License-Identifier: MIT */
/*
 * The subscriptions of one reader: the filters of heartbeats and the barrier topic, and whether the broker has granted
 * each. The loop creates the object and hands it to the reader's thread. Only one thread uses it at a time.
 */
#ifndef HW_MQTT_FILTERS_H
#define HW_MQTT_FILTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "mqtt/link.h"

struct hw_filters;

/* Copies all arguments. `share_group` NULL: plain subscriptions, and no subscription to `share_topic`. Returns NULL
 * if there is no memory. */
struct hw_filters *hw_filters_new(const struct hw_mqtt_filter *filters, size_t n, const char *share_group,
                                  const char *barrier_topic, const char *share_topic);
void hw_filters_free(struct hw_filters *f);

/* A new connection: no subscription is granted. */
void hw_filters_forget(struct hw_filters *f);
/* Marks the filters with `replay` as not requested, so that they are requested again. Returns whether there are any.
 * With `renews`, only the filters with `renew`; the broker may refuse these. */
bool hw_filters_replay(struct hw_filters *f, bool renews);
/* Replaces the subscriptions of `from` by those of `f`. Filters that are granted in `from` are not requested again.
 * Unsubscribes from filters that `f` does not have. Returns -1 on failure, with the reason in the link's `why`. */
int hw_filters_replace(struct hw_filters *f, const struct hw_filters *from, struct hw_link *l);
/* Subscribes to all filters that are neither granted nor requested. Returns -1 on failure, with the reason in the
 * link's `why`. */
int hw_filters_ask(struct hw_filters *f, struct hw_link *l);
/* Handles a SUBACK. Returns the filter if it was refused, otherwise NULL. Of refused renewals, only the first one is
 * returned, with *renewal set, until the broker grants the filter again. */
const char *hw_filters_answer(struct hw_filters *f, int mid, int code, bool *renewal);
bool hw_filters_granted(const struct hw_filters *f);

#endif
