/* SPDX-License-Identifier: MIT */
/* Passes the keyspace listener's events to the core. */
#ifndef HW_KEYS_H
#define HW_KEYS_H

#include "daemon/context.h"

/* Starts the keyspace listener if it is configured. Returns 0 or -ENOMEM. */
int hw_app_start_keyspace(struct hw_app *a);

#endif
