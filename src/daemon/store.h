/* SPDX-License-Identifier: MIT */
/* Back from Redis: what it has stored, what it has confirmed, and how it fares. */
#ifndef HW_STORE_H
#define HW_STORE_H

#include "context.h"

extern const struct hw_redis_ops hw_app_redis_ops;
extern const struct hw_redis_ops hw_app_redis_ops_several; /* of one of several nodes */
extern const struct hw_redis_ops hw_app_redis_ops_standby; /* ... which stand by */

#endif
