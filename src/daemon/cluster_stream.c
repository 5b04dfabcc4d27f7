/* SPDX-License-Identifier: MIT */
/* See cluster_stream.h. */
#include "cluster_stream.h"

#include "cluster_priv.h"

int hw_app_cluster_stream_start(struct hw_app *a)
{
	(void)a;
	return 0;
}

void hw_app_cluster_stream_free(struct hw_app *a)
{
	(void)a;
}

void hw_app_cluster_stream_tick(struct hw_app *a, struct hw_now now)
{
	(void)a, (void)now;
}
