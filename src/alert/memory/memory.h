/* SPDX-License-Identifier: MIT */
/*
 * [store] type = memory: carries out in this process what the store sends to Redis otherwise. The link to Redis passes
 * the commands on to the keys (keys.h). A script's changes are in the state file before its answer is used. While the
 * file cannot be written, the link is down, as it is while Redis is away.
 */
#ifndef HW_ALERT_MEMORY_H
#define HW_ALERT_MEMORY_H

#include <stddef.h>

struct hw_alert_app;
struct hw_alert_memory;
struct hw_keys;
struct hw_redis_link;
struct hw_redis_local;

/* Why the link is down until heartwheeld has listed its devices; normal at a start. */
#define HW_ALERT_NOT_LISTED "heartwheeld has not listed its devices yet"

/* Reads the state file. `link` is borrowed; it is initialised after this call. Returns NULL with the reason in `why`.
 */
struct hw_alert_memory *hw_alert_memory_new(struct hw_alert_app *app, struct hw_redis_link *link, char *why,
                                            size_t cap);
/* Call it after the link has ended. `m` may be NULL. */
void hw_alert_memory_free(struct hw_alert_memory *m);

/* What the link calls. Valid as long as the memory. */
const struct hw_redis_local *hw_alert_memory_local(struct hw_alert_memory *m);
struct hw_keys *hw_alert_memory_keys(struct hw_alert_memory *m);

#endif
