/* SPDX-License-Identifier: MIT */
/* Changes of the inventory, as the daemon applies them, in Redis or in its own file. */
#ifndef HW_INVENTORY_APPLY_H
#define HW_INVENTORY_APPLY_H

#include <stdint.h>

#include "heartwheel/registry.h"

#define HW_INVENTORY_ITEMS 256 /* applied at once, at most */

enum hw_inventory_kind {
	HW_INVENTORY_SET,     /* sets the entry; if the id is expected already, it keeps its since_ms */
	HW_INVENTORY_RESTART, /* the entry stays as it is, but the id is expected only from the `since_ms` of `entry`
	                       * on */
	HW_INVENTORY_MISSING, /* sets the entry if there is none */
	HW_INVENTORY_REMOVE
};

struct hw_inventory_item {
	enum hw_inventory_kind kind;
	struct hw_id id;
	/* HW_INVENTORY_SET and _MISSING: JSON as hw_entry_print() writes it, with a since_ms other than 0.
	 * HW_INVENTORY_RESTART: {"since_ms":N}. HW_INVENTORY_REMOVE: the entry is removed only if it equals this one;
	 * empty: any entry is removed. */
	struct hw_id entry;
	int64_t unseen_ms; /* HW_INVENTORY_MISSING: since when the id is unseen; 0: it is not unseen */
};

enum hw_inventory_result {
	HW_INVENTORY_SAME,
	HW_INVENTORY_ADDED,
	HW_INVENTORY_CHANGED,
	HW_INVENTORY_REMOVED,
	HW_INVENTORY_ABSENT /* an id to remove is not expected, or has another entry by now */
};

/* Called once for each call of inventory_apply() that returned 0, and only after that call has returned. `rc`:
 * - 0; `results` then has an enum hw_inventory_result for each item
 * - -ENOTCONN: the connection to Redis was lost, and it is unknown whether the changes were written
 * - -EAGAIN: nothing was changed; the caller tries again soon
 * - -EIO: Redis or the file has refused the changes, which was logged */
typedef void hw_inventory_applied(void *arg, int rc, const uint8_t *results, unsigned n);

#endif
