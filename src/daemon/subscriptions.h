/* SPDX-License-Identifier: MIT */
/* What the readers subscribe to. */
#ifndef HW_SUBSCRIPTIONS_H
#define HW_SUBSCRIPTIONS_H

#include "context.h"

/* The filters to subscribe to for heartbeats, on the heap; their texts belong to the groups. 0 or -ENOMEM. */
int hw_app_filters(struct hw_app *a, struct hw_mqtt_filter **out, size_t *n_out);
/* Appends, behind `n` of them, what this reader alone subscribes to: reader 0 of one of several nodes hears what the
 * others say of themselves. Returns how many there are then. */
size_t hw_app_filters_of(const struct hw_app *a, unsigned reader, struct hw_mqtt_filter *filters, size_t n);
/* Where filters overlap, what MQTT 5 brokers deliver for each of them counts once. 0 or -ENOMEM. */
int hw_app_expect_copies(struct hw_app *a, const struct hw_mqtt_filter *filters, size_t n);
/*
 * Has the readers subscribe to what the groups, which have changed, want now. 0 or -ENOMEM: some may go on with what
 * they had.
 */
int hw_app_subscribe(struct hw_app *a);

#endif
