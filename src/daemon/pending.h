/* SPDX-License-Identifier: MIT */
/*
 * What the outside is owed of a device: its state to the store (HW_PENDING_STORE, here), its status and its discovery
 * to the broker (retained_sink.h). A status is released once the store holds what it says, so that the outbox covers
 * it; but when Redis has not answered for a second, statuses stop waiting for it. A forgotten device's record lives
 * until nothing is owed of it.
 */
#ifndef HW_PENDING_H
#define HW_PENDING_H

#include "context.h"

/* Owes the store this transition of a device, and nothing of it where another node owns the device. */
void hw_app_set_store_pending(struct hw_app *a, struct hw_now now, struct hw_device *d, const struct hw_transition *t);
/* Nothing is owed to the store of it any more. Whether anything was. */
bool hw_app_settle_store(struct hw_app *a, struct hw_device *d);
/* The store holds this newer seq of a device: ours grows past it, and its state is owed anew. */
void hw_app_store_newer(struct hw_app *a, struct hw_ref device, uint64_t stored_seq);
/* A device's retained status may have been replaced: it is owed again. */
void hw_app_set_status_pending(struct hw_app *a, struct hw_now now, struct hw_ref ref);
/* Home Assistant has to hear of a device once, and once more when it is forgotten. */
void hw_app_discover(struct hw_app *a, struct hw_now now, struct hw_ref ref, struct hw_device *d);
/* Everybody's retained messages are owed again. */
void hw_app_republish(struct hw_app *a, struct hw_now now);
/* Frees the record of a forgotten device of which nothing is owed any more. */
void hw_app_reap_if_done(struct hw_app *a, struct hw_ref ref, const struct hw_device *d);
/* Each second, and while it says true more often: lets statuses go that have waited for Redis for too long. */
bool hw_app_release(struct hw_app *a, struct hw_now now);
/* Devices whose current state some sink has not confirmed, and for how long the oldest. */
uint64_t hw_app_pending(const struct hw_app *a, struct hw_now now, int64_t *oldest_ms);

#endif
