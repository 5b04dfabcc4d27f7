/* SPDX-License-Identifier: MIT */
/*
 * The query worker: a thread with its own SQL connection that answers one query after the other. So neither the loop
 * nor the importer waits for a report. A query is a function and a copy of its arguments. The function fills an
 * evbuffer, which the loop sends if the client is still connected.
 */
#ifndef HW_HISTORY_QUERY_WORKER_H
#define HW_HISTORY_QUERY_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/sql.h"

struct event_base;
struct evbuffer;
struct evhttp_request;
struct hw_query_worker; /* opaque */

#define HW_QUERY_MAX      64   /* queries that may wait; a further query gets 503 */
#define HW_QUERY_ARGS_MAX 1024 /* bytes of a query's arguments */

struct hw_query_result {
	struct evbuffer *body;
	int code;         /* HTTP status */
	const char *type; /* of the body */
	char next[64];    /* value of `after` for the next page, sent in the header Heartwheel-Next; "": this is the
	                   * last page */
	int64_t as_of_ms; /* the Unix ms up to which the database was complete when the query arrived; 0: unknown */
	bool old;         /* the report reaches beyond as_of_ms, so the header Heartwheel-As-Of is sent */
	const char *why;  /* an error message, sent as {"error":why}; may point into why_text */
	char why_text[HW_SQL_WHY];
};

/* Runs in the worker's thread when the tables exist. Returns 0, or -EIO if SQL failed; the worker then reconnects. */
typedef int hw_query_fn(struct hw_sql *sql, const void *args, struct hw_query_result *out);

/* Called on the loop for each query. Returns the Unix ms up to which the database is complete. */
typedef int64_t hw_query_as_of_fn(void *arg);

/* Starts the worker. `conf` is copied, its texts are borrowed. Returns NULL if there is no memory. */
struct hw_query_worker *hw_query_worker_new(struct event_base *base, const struct hw_sql_conf *conf,
                                            hw_query_as_of_fn *as_of, void *arg);
/* Frees the object. Called after hw_http_fini(), when no request waits for an answer. */
void hw_query_worker_free(struct hw_query_worker *d);
/* Passes a request to the worker, which answers it. */
void hw_query_worker_ask(struct hw_query_worker *d, struct evhttp_request *req, hw_query_fn *question, const void *args,
                         size_t size);

#endif
