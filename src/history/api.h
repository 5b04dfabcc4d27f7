/* SPDX-License-Identifier: MIT */
/* The routes of heartwheel-history's socket. The query worker answers reports; the loop answers other requests at
 * once. */
#ifndef HW_HISTORY_API_H
#define HW_HISTORY_API_H

#include <stdint.h>

#include "history/importer.h"
#include "history/query_worker.h"
#include "http/router.h"

/* Argument of the handlers. */
struct hw_history_api {
	struct hw_importer *importer;
	struct hw_query_worker *query_worker;
	const char *database; /* as configured; contains no secret */
	int64_t started_ms;   /* monotonic */
};

/* Returns the Unix ms up to which the database has all entries of Redis; 0: unknown. `arg`: a struct hw_history_api. */
int64_t hw_history_as_of(void *arg);

extern const struct hw_http_table hw_history_routes;

#endif
