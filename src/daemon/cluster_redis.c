/* SPDX-License-Identifier: MIT */
/* See cluster_redis.h. */
#include "cluster_redis.h"

#include "cluster_priv.h"

int hw_app_cluster_redis_start(struct hw_app *a)
{
	(void)a;
	return 0;
}

void hw_app_cluster_redis_free(struct hw_app *a)
{
	(void)a;
}

void hw_app_cluster_ask(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o)
{
	(void)a, (void)now, (void)o;
}

void hw_app_cluster_redis_tick(struct hw_app *a)
{
	(void)a;
}
