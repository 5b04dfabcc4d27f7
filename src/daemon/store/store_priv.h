/* SPDX-License-Identifier: MIT */
/* Shared by store.c, which handles the input from Redis, and pending.c, which tracks what Redis has not confirmed. */
#ifndef HW_STORE_PRIV_H
#define HW_STORE_PRIV_H

#include "pending.h"
#include "store.h"

struct hw_app_store {
	struct hw_redis_conf conf;
	bool up, ever_up;
	bool skips_groups; /* the next tick writes no device:groups */
	bool again;        /* the store is read again for devices that were left out */
	char why[512];     /* the cause while `up` is false */

	/* pending.c */
	uint64_t pending;    /* devices with HW_PENDING_STORE */
	struct hw_mono late; /* since when Redis is late to confirm writes; 0: it is not late */
	bool releasing;      /* a sweep releases the statuses that waited for Redis */
	uint32_t release_at;
};

#endif
