/* SPDX-License-Identifier: MIT */
/* Inside of the API: what its files share. Its table of routes is in api.c. */
#ifndef HW_TASKS_API_PARTS_H
#define HW_TASKS_API_PARTS_H

#include "http/json.h"
#include "http/pending.h"
#include "http/reply.h"
#include "tasks/api.h"
#include "tasks/app.h"
#include "tasks/feed.h"
#include "tasks/reads.h"

#define HW_API_POSTS_MAX  64   /* POST /v1/tasks under way, those that wait for an end included */
#define HW_API_ITEMS_MAX  1000 /* tasks of one */
#define HW_API_WAIT_MAX_S 50   /* a client that passes requests on is patient for 60 s */

/* How many tasks wait in each state, as it was counted last. */
struct hw_api_count {
	uint64_t n[HW_TASK_COMPLETE], counting[HW_TASK_COMPLETE];
	bool known, asked;
	int64_t counted_ms;                     /* monotonic: when that was */
	unsigned wanted;                        /* seconds for which somebody wants to know */
	char score[32], task[HW_TASK_TEXT + 1]; /* where the counting is */
};

struct hw_tasks_api {
	struct hw_tasks_app *app; /* borrowed */
	struct hw_reads *reads;
	struct hw_feed *feed;
	struct hw_api_count count;
	unsigned n_posts;
};

/* Handlers take the struct hw_tasks_app as their `arg`. */
hw_http_handler hw_serve_task_list, hw_serve_task, hw_serve_task_cancel,
	hw_serve_task_post;         /* api_read.c, api_post.c */
hw_http_handler hw_serve_task_call; /* call.c */

/* The members of a task. `task` unless the record names it. */
void hw_api_write_task(struct hw_json *j, const struct hw_task_id *task, const struct hw_task_record *r);
void hw_api_write_id(struct hw_json *j, const char *key, const struct hw_task_id *task);

/* A sentence about what the desk returned. */
const char *hw_api_dispatch_error(const struct hw_tasks_app *a, int rc);

/* Who asks: `local`, or `user:NAME`. */
#define HW_API_SENDER_MAX 80
struct hw_text hw_api_sender(struct evhttp_request *req, char buf[HW_API_SENDER_MAX]);

/* Counts on, or anew. */
void hw_api_count_tick(struct hw_tasks_api *api);

#endif
