/* SPDX-License-Identifier: MIT */
/* From the keyspace listener into the core. */
#ifndef HW_KEYS_H
#define HW_KEYS_H

#include "context.h"

/* Listens to keys, where that is configured. 0 or -ENOMEM. */
int hw_app_start_keyspace(struct hw_app *a);

#endif
