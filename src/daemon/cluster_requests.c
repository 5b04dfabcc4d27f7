/* SPDX-License-Identifier: MIT */
/* See cluster_requests.h. */
#include "cluster_requests.h"

#include "context.h"

void hw_app_cluster_asked(struct hw_app *a, const char *text, size_t len)
{
	hw_log(a->log, HW_LOG_DEBUG, "nodes: asked for what is not known: %.*s", (int)(len < 100 ? len : 100), text);
}
