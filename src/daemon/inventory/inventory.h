/* SPDX-License-Identifier: MIT */
/*
 * The inventory of the running daemon: the table of expected devices in the core (heartwheel/expected.h). Redis keeps
 * it or, with store = memory, a file. With Redis, each node reads the stored inventory and follows its changes, also
 * those that the node itself has made. So a change is in the table a moment after the callback of the change.
 */
#ifndef HW_DAEMON_INVENTORY_H
#define HW_DAEMON_INVENTORY_H

#include "daemon/context.h"
#include "inventory/apply.h"
#include "inventory/entry.h"

int hw_app_inventory_new(struct hw_app *a);
/* Begins to read the inventory. Called after hw_app_store_start(). Returns 0 or -errno. */
int hw_app_inventory_start(struct hw_app *a);
void hw_app_inventory_free(struct hw_app *a);
/* Called each second. */
void hw_app_inventory_tick(struct hw_app *a, struct hw_now now);
/* Redis was found emptied. */
void hw_app_inventory_emptied(struct hw_app *a);
/* Called when the groups have changed. Determines again when each expected device is checked, in bounded steps. */
void hw_app_inventory_regroup(struct hw_app *a);
/* Called when a device's state has changed, here or on another node, or was loaded. */
void hw_app_inventory_state(struct hw_app *a, struct hw_id id, enum hw_state state);
/* Called when loading has ended. */
void hw_app_inventory_loaded(struct hw_app *a);

/* Whether the inventory can be changed now: it was read once, and Redis or the file can store the change. */
bool hw_app_inventory_is_ready(const struct hw_app *a);

/* Applies at most HW_INVENTORY_ITEMS items, in their order. `source` is the source of the import, for the followers of
 * device:inventory. Returns 0; -ENOTCONN: no Redis; -EAGAIN: repeat it soon; -EOPNOTSUPP: store = memory without
 * [monitor] inventory; or -ENOMEM. `fn` is called only after 0. Everything is borrowed for the call. */
int hw_app_inventory_apply(struct hw_app *a, const char *source, const struct hw_inventory_item *items, unsigned n,
                           hw_inventory_applied *fn, void *arg);

/* hw_app_inventory_find(): returns the entry of an expected id. hw_app_inventory_entry(): returns the entry with
 * index `i` of hw_monitor_expected(). Both return false if there is none. */
bool hw_app_inventory_find(const struct hw_app *a, const char *id, size_t id_len, struct hw_expected_entry *out);
bool hw_app_inventory_entry(const struct hw_app *a, uint32_t i, struct hw_expected_entry *out);

#endif
