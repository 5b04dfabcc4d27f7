/* SPDX-License-Identifier: MIT */
/*
 * The desk: a thread that answers what is asked of SQL, one question after the other, on a connection of its own, so
 * that neither the loop nor the clerk waits for a report. A question is a function and what it needs, by value; it
 * fills an evbuffer, which the loop sends when it is done, if the client is still there.
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

#define HW_QUERY_MAX      64   /* questions that may wait; one more is answered with 503 */
#define HW_QUERY_ARGS_MAX 1024 /* bytes of what a question needs */

struct hw_query_result {
	struct evbuffer *body;
	int code;         /* HTTP */
	const char *type; /* of the body */
	char next[64];    /* of a page: `after` of the next one, for the header Heartwheel-Next; "": it is the last */
	int64_t as_of_ms; /* the database had all up to then when the question came; 0: that is not known */
	bool old;         /* the report is about a time after that: the header Heartwheel-As-Of says so */
	const char *why;  /* of an error: {"error":why} is sent. May point into why_text */
	char why_text[HW_SQL_WHY];
};

/* Answers, in the desk's thread, once there are tables. `args`: as they were given. 0; or -EIO if SQL failed, and the
 * connection is made anew.
 */
typedef int hw_query_fn(struct hw_sql *sql, const void *args, struct hw_query_result *out);

/* Called on the loop with each question: up to when the database has all. */
typedef int64_t hw_query_as_of_fn(void *arg);

/* `conf` is copied but for its texts. NULL without memory. */
struct hw_query_worker *hw_query_worker_new(struct event_base *base, const struct hw_sql_conf *conf,
                                            hw_query_as_of_fn *as_of, void *arg);
/* After hw_http_fini(): nobody waits for an answer. */
void hw_query_worker_free(struct hw_query_worker *d);
/* Has the request answered. */
void hw_query_worker_ask(struct hw_query_worker *d, struct evhttp_request *req, hw_query_fn *question, const void *args,
                         size_t size);

#endif
