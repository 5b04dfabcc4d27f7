/* SPDX-License-Identifier: MIT */
/* Which run of which Redis answers: two connections of one address may be to two of them while a failover goes on. */
#ifndef HW_REDIS_RUN_ID_H
#define HW_REDIS_RUN_ID_H

#include <hiredis/hiredis.h>

#define HW_RUN_ID 40 /* characters */

/* Of the answer to INFO server; "" if it does not tell. */
void hw_run_id(const redisReply *info, char id[HW_RUN_ID + 1]);

#endif
