/* SPDX-License-Identifier: MIT */
/*
 * The pending writes of a device: its state at the store (HW_PENDING_STORE, here), and its status and discovery at the
 * broker (retained_sink.h). A status is released when the store has the same state, so that no message
 * contradicts Redis. If Redis has not answered for a second, statuses do not wait for it. The record of a forgotten
 * device exists until nothing of the device is pending.
 */
#ifndef HW_PENDING_H
#define HW_PENDING_H

#include "daemon/context.h"

/* Makes a device's transition pending at the store, unless another node owns the device. */
void hw_app_set_store_pending(struct hw_app *a, struct hw_now now, struct hw_device *d, const struct hw_transition *t);
/* Called when the device's state is no longer pending at the store. Returns whether it was. */
bool hw_app_settle_store(struct hw_app *a, struct hw_device *d);
/* Called when the store has a greater seq of a device. The core raises the device's seq above that seq, and the
 * device's state is pending again. */
void hw_app_store_newer(struct hw_app *a, struct hw_ref device, uint64_t stored_seq);
/* Releases statuses that have waited too long for Redis. Called each second. If the function returns true, some
 * statuses are left, and hw_app_release_on() must be called in the next turn. */
bool hw_app_release(struct hw_app *a, struct hw_now now);
/* Called in a turn: continues hw_app_release(). */
bool hw_app_release_on(struct hw_app *a, struct hw_now now);
/* Whether this device's status must wait until the store has the same state. */
bool hw_app_waits_for_store(const struct hw_app *a, const struct hw_device *d);
/* How many devices are pending at the store. */
uint64_t hw_app_pending_writes(const struct hw_app *a);
/* Returns how many devices have a state that a sink has not confirmed. *oldest_ms: how long the oldest has been
 * pending. */
uint64_t hw_app_pending(const struct hw_app *a, struct hw_now now, int64_t *oldest_ms);

#endif
