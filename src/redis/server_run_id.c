/* SPDX-License-Identifier: MIT */
/* See server_run_id.h. */
#include "redis/server_run_id.h"

#include <stdio.h>
#include <string.h>

void hw_server_run_id(const redisReply *info, char id[HW_SERVER_RUN_ID + 1])
{
	static const char name[] = "\nrun_id:";
	const char *at = info->type == REDIS_REPLY_STRING ? strstr(info->str, name) : NULL;
	size_t len = at ? strcspn(at + strlen(name), "\r\n") : 0;
	id[0] = '\0';
	if (len == HW_SERVER_RUN_ID)
		snprintf(id, HW_SERVER_RUN_ID + 1, "%.*s", HW_SERVER_RUN_ID, at + strlen(name));
}
