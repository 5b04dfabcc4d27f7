/* SPDX-License-Identifier: MIT */
/* The store, and the input from Redis: stored devices, confirmations, and the state of the connection. */
#ifndef HW_STORE_H
#define HW_STORE_H

#include "daemon/context.h"

/* Sets a->store, which the caller frees. Returns 0 or -ENOMEM. */
int hw_app_store_new(struct hw_app *a);
/* Sets a->redis, if there is a store. Returns 0 or -ENOMEM. */
int hw_app_store_start(struct hw_app *a);

/* hw_app_redis_is_up(): whether the connection to Redis is up. hw_app_redis_was_up(): whether it was up in this run. */
bool hw_app_redis_is_up(const struct hw_app *a);
bool hw_app_redis_was_up(const struct hw_app *a);
/* Returns the configuration of the connection, which other connections to the same Redis use. Valid if there is a
 * store. */
const struct hw_redis_conf *hw_app_redis_conf(const struct hw_app *a);
/* "off", "up", or why Redis takes no writes. */
const char *hw_app_redis_text(const struct hw_app *a);

/* Keeps in Redis, for the next run, which canaries came back. Valid if there is a store. */
void hw_app_keep_canaries(struct hw_app *a);
/* Called each second. Every other time, the owner of partition 0 writes the hash device:groups. */
void hw_app_groups_tick(struct hw_app *a, struct hw_now now);
/* Called each second. Reads the store again if there is room for devices that were left out. */
void hw_app_left_out_tick(struct hw_app *a, struct hw_now now);

#endif
