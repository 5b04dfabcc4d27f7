/* SPDX-License-Identifier: MIT */
/* The run id of the Redis server that answers. During a failover, two connections to one address may reach two servers.
 */
#ifndef HW_REDIS_SERVER_RUN_ID_H
#define HW_REDIS_SERVER_RUN_ID_H

#include <hiredis/hiredis.h>

#define HW_SERVER_RUN_ID 40 /* characters */

/* Takes the run id from the reply to INFO server; "" if the reply has none. */
void hw_server_run_id(const redisReply *info, char id[HW_SERVER_RUN_ID + 1]);

#endif
