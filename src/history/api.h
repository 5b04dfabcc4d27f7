/* SPDX-License-Identifier: MIT */
/* What heartwheel-history answers on its socket: the table of routes. Reports go to the desk, the rest is answered at
 * once. */
#ifndef HW_HISTORY_API_H
#define HW_HISTORY_API_H

#include <stdint.h>

#include "history/importer.h"
#include "history/query_worker.h"
#include "http/router.h"

/* The argument of the handlers. */
struct hw_history_api {
	struct hw_importer *importer;
	struct hw_query_worker *query_worker;
	const char *database; /* as configured: it holds no secret */
	int64_t started_ms;   /* monotonic */
};

/* Up to when the database has all that Redis had, as Unix ms; 0: that is not known. `arg`: the struct above. */
int64_t hw_history_as_of(void *arg);

extern const struct hw_http_table hw_history_routes;

#endif
