/* SPDX-License-Identifier: MIT */
/* Shared by the files of the API. api.c has the table of routes. */
#ifndef HW_TASKS_API_PARTS_H
#define HW_TASKS_API_PARTS_H

#include "http/json.h"
#include "http/pending.h"
#include "http/reply.h"
#include "tasks/api/api.h"
#include "tasks/api/feed.h"
#include "tasks/app.h"
#include "tasks/queue/reads.h"

#define HW_API_POSTS_MAX  64   /* limit of the requests POST /v1/tasks that are under way, including those that wait */
#define HW_API_ITEMS_MAX  1000 /* maximum of tasks in one POST */
#define HW_API_WAIT_MAX_S 50   /* less than the 60 s for which a proxying client waits */

/* How many tasks wait in each state, as of the last count. */
struct hw_api_count {
	uint64_t n[HW_TASK_COMPLETE], counting[HW_TASK_COMPLETE];
	bool known, asked;
	int64_t counted_ms;                     /* monotonic: when the last count ended */
	unsigned wanted;                        /* for how many more seconds the counts are needed; 0: no client
	                                         * needs them */
	char score[32], task[HW_TASK_TEXT + 1]; /* offset of the running count */
};

struct hw_tasks_api {
	struct hw_tasks_app *app; /* borrowed */
	struct hw_reads *reads;
	struct hw_feed *feed;
	struct hw_api_count count;
	unsigned n_posts;
};

/* Each handler gets a struct hw_tasks_app as `arg`. */
hw_http_handler hw_serve_task_list, hw_serve_task, hw_serve_task_cancel,
	hw_serve_task_post;         /* api_read.c, api_post.c */
hw_http_handler hw_serve_task_call; /* call.c */

/* Writes the members of a task. `task`: its name; NULL: the name in the record is used. */
void hw_api_write_task(struct hw_json *j, const struct hw_task_id *task, const struct hw_task_record *r);
void hw_api_write_id(struct hw_json *j, const char *key, const struct hw_task_id *task);

/* Returns a sentence for an error code of the dispatcher. */
const char *hw_api_dispatch_error(const struct hw_tasks_app *a, int rc);

/* The sender of an HTTP request: `local`, or `user:NAME`. */
#define HW_API_SENDER_MAX 80
struct hw_text hw_api_sender(struct evhttp_request *req, char buf[HW_API_SENDER_MAX]);

/* Begins a count if one is wanted and none is running. */
void hw_api_count_tick(struct hw_tasks_api *api);

#endif
