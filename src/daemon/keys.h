/* SPDX-License-Identifier: MIT */
/* From the keyspace listener into the core. */
#ifndef HW_KEYS_H
#define HW_KEYS_H

#include "context.h"

extern const struct hw_keyspace_ops hw_app_keyspace_ops;

#endif
