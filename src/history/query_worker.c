/* SPDX-License-Identifier: MIT */
/*
 * See query_worker.h. From its start until its answer, a query belongs to the worker's thread, and otherwise to the
 * loop. If the client disconnects, the query loses its request, and the answer is discarded.
 */
#include "history/query_worker.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "history/schema.h"
#include "http/reply.h"

struct question {
	struct question *next;
	struct hw_query_worker *d;
	struct evhttp_request *req; /* used by the loop; NULL: the client has disconnected */
	hw_query_fn *ask;
	struct hw_query_result answer;
	_Alignas(max_align_t) char args[HW_QUERY_ARGS_MAX];
};

struct queue {
	struct question *first, **end;
};

struct hw_query_worker {
	struct hw_sql_conf conf;
	hw_query_as_of_fn *as_of;
	void *as_of_arg;
	struct event *wake;
	int wake_fd;
	pthread_t thread;
	bool running;
	unsigned n;  /* queries that are not answered yet; used by the loop */
	bool tables; /* the tables exist; used by the thread */

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t some;
	struct queue asked, done;
	bool stop;
};

static void push(struct queue *q, struct question *x)
{
	x->next = NULL;
	*q->end = x;
	q->end = &x->next;
}

static struct question *pop(struct queue *q)
{
	struct question *x = q->first;
	if (x && !(q->first = x->next))
		q->end = &q->first;
	return x;
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

/* Waits for the tables, which the importer creates, by checking for them. Returns 0 or -EIO. */
static int find_tables(struct hw_query_worker *d, struct hw_sql *sql, struct hw_query_result *a)
{
	int rc = d->tables ? 1 : hw_schema_is_there(sql);
	d->tables = rc == 1;
	if (rc == 0) {
		a->code = HTTP_SERVUNAVAIL;
		a->why = "the database has no tables of this version yet";
	}
	return rc < 0 ? rc : 0;
}

static void answer(struct hw_query_worker *d, struct hw_sql **sql, struct question *x)
{
	struct hw_query_result *a = &x->answer;
	if (!*sql)
		*sql = hw_sql_open(&d->conf, a->why_text);
	int rc = *sql ? find_tables(d, *sql, a) : -EIO;
	if (rc == 0 && d->tables)
		rc = x->ask(*sql, x->args, a);
	if (rc == 0) {
		hw_sql_finish_all(*sql);
		return;
	}
	d->tables = false;
	if (*sql)
		snprintf(a->why_text, sizeof(a->why_text), "SQL: %.500s", hw_sql_error(*sql));
	hw_sql_close(*sql);
	*sql = NULL;
	a->code = HTTP_SERVUNAVAIL;
	a->why = a->why_text;
}

static void *work(void *arg)
{
	struct hw_query_worker *d = arg;
	struct hw_sql *sql = NULL;
	uint64_t one = 1;
	pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		struct question *x = pop(&d->asked);
		if (!x) {
			pthread_cond_wait(&d->some, &d->lock);
			continue;
		}
		pthread_mutex_unlock(&d->lock);
		answer(d, &sql, x);
		pthread_mutex_lock(&d->lock);
		push(&d->done, x);
		(void)!write(d->wake_fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&d->lock);
	hw_sql_close(sql);
	return NULL;
}

/* --- the loop --------------------------------------------------------------------------------------------------- */

static void end(struct question *x)
{
	x->d->n--;
	if (x->answer.body)
		evbuffer_free(x->answer.body);
	free(x);
}

static void on_close(struct evhttp_connection *conn, void *arg)
{
	struct question *x = arg;
	struct evhttp_request *req = x->req;
	(void)conn;
	x->req = NULL;
	/* evhttp frees a request that still has its connection. A request that evhttp has detached from its
	 * connection is freed here. */
	if (!evhttp_request_get_connection(req))
		evhttp_request_free(req);
}

static void send_answer(struct question *x)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(x->req);
	struct hw_query_result *a = &x->answer;
	if (conn)
		evhttp_connection_set_closecb(conn, NULL, NULL);
	if (a->code != HTTP_OK) {
		hw_reply_error(x->req, a->code, a->why);
		return;
	}
	if (*a->next)
		evhttp_add_header(evhttp_request_get_output_headers(x->req), "Heartwheel-Next", a->next);
	if (a->old) {
		char as_of[32];
		snprintf(as_of, sizeof(as_of), "%" PRId64, a->as_of_ms);
		evhttp_add_header(evhttp_request_get_output_headers(x->req), "Heartwheel-As-Of", as_of);
	}
	hw_reply_as(x->req, a->code, a->type, a->body);
	a->body = NULL;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct hw_query_worker *d = arg;
	struct question *x;
	uint64_t n;
	(void)what;
	(void)!read(fd, &n, sizeof(n));
	do {
		pthread_mutex_lock(&d->lock);
		x = pop(&d->done);
		pthread_mutex_unlock(&d->lock);
		if (x && x->req)
			send_answer(x);
		if (x)
			end(x);
	} while (x);
}

void hw_query_worker_ask(struct hw_query_worker *d, struct evhttp_request *req, hw_query_fn *question, const void *args,
                         size_t size)
{
	struct question *x = d->n < HW_QUERY_MAX ? calloc(1, sizeof(*x)) : NULL;
	assert(size <= HW_QUERY_ARGS_MAX);
	if (x)
		x->answer =
			(struct hw_query_result){.body = evbuffer_new(), .code = HTTP_OK, .type = "application/json"};
	if (!x || !x->answer.body) {
		free(x);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "too many reports at once");
		return;
	}
	x->d = d;
	x->answer.as_of_ms = d->as_of(d->as_of_arg);
	x->req = req;
	x->ask = question;
	memcpy(x->args, args, size);
	d->n++;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, x);
	pthread_mutex_lock(&d->lock);
	push(&d->asked, x);
	pthread_cond_signal(&d->some);
	pthread_mutex_unlock(&d->lock);
}

/* --- start and stop --------------------------------------------------------------------------------------------- */

static int start(struct hw_query_worker *d)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old); /* the loop handles the signals */
	d->running = pthread_create(&d->thread, NULL, work, d) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return d->running ? 0 : -EAGAIN;
}

struct hw_query_worker *hw_query_worker_new(struct event_base *base, const struct hw_sql_conf *conf,
                                            hw_query_as_of_fn *as_of, void *arg)
{
	struct hw_query_worker *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->conf = *conf;
	d->as_of = as_of;
	d->as_of_arg = arg;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->some, NULL);
	d->asked.end = &d->asked.first;
	d->done.end = &d->done.first;
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->wake = d->wake_fd >= 0 ? event_new(base, d->wake_fd, EV_READ | EV_PERSIST, on_wake, d) : NULL;
	if (d->wake && event_add(d->wake, NULL) == 0 && start(d) == 0)
		return d;
	hw_query_worker_free(d);
	return NULL;
}

void hw_query_worker_free(struct hw_query_worker *d)
{
	struct question *x;
	if (!d)
		return;
	if (d->running) {
		pthread_mutex_lock(&d->lock);
		d->stop = true;
		pthread_cond_signal(&d->some);
		pthread_mutex_unlock(&d->lock);
		pthread_join(d->thread, NULL);
	}
	while ((x = pop(&d->asked)) || (x = pop(&d->done)))
		end(x);
	if (d->wake)
		event_free(d->wake);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	pthread_cond_destroy(&d->some);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
