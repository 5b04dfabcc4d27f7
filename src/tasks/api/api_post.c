/* SPDX-License-Identifier: MIT */
/*
 * The API: POST /v1/tasks. Each task of a request is submitted separately and has a result of its own. The answer is
 * sent when all tasks have results.
 *
 * With ?wait=S, the answer is sent when all accepted tasks have ended, or after S seconds, with the states of the tasks
 * at that time. The end of a task is read from the event stream. Because a task may end before the request waits on the
 * stream, the request then also reads the records once.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "heartwheel/json.h"
#include "http/query.h"
#include "link/trouble.h"
#include "tasks/allow.h"
#include "tasks/api/api_parts.h"
#include "tasks/mqtt/message.h"

struct post;

struct item {
	struct post *post;
	char msg_id[HW_TASK_MSG_ID_MAX + 1];
	struct hw_task_id task;
	int status; /* HTTP; 0: no result yet */
	const char *why;
	enum hw_task_state state;
	int64_t at_ms, exp_ms;
	uint32_t known_as; /* its receiver, as the schedule has it */
	bool ended;
	struct hw_feed_wait wait;
};

struct post {
	struct hw_tasks_app *app;
	struct hw_pending pending;
	struct event *timer; /* of ?wait; NULL: the request does not wait */
	bool array, asked;   /* asked: records are requested from Redis */
	bool gone, writing;
	size_t n, n_open, n_waiting, at; /* at: next item to check, or to write */
	unsigned wait_s;
	struct evbuffer *body;
	struct hw_json j;
	char why[HW_TROUBLE_TEXT]; /* Redis' error */
	struct item items[];
};

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void stop_waiting(struct post *p)
{
	for (size_t i = 0; i < p->n; i++)
		hw_feed_wait_stop(&p->items[i].wait);
	if (p->timer)
		event_free(p->timer);
	p->timer = NULL;
}

/* Frees the request, unless a callback is still to come. */
static void release(struct post *p)
{
	if (p->n_open > 0 || p->asked)
		return;
	p->app->api->n_posts--;
	if (p->body)
		evbuffer_free(p->body);
	free(p);
}

static void on_gone(void *arg)
{
	struct post *p = arg;
	stop_waiting(p);
	p->gone = true;
	release(p);
}

static void fail(struct post *p, int code, const char *why)
{
	struct evhttp_request *req = hw_pending_take(&p->pending);
	stop_waiting(p);
	p->gone = true;
	if (req)
		hw_reply_error(req, code, why);
	release(p);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static bool is_taken(const struct item *it)
{
	return it->status == 201 || it->status == HTTP_OK;
}

static void write_item(struct post *p, const struct item *it, const struct hw_task_record *r)
{
	struct hw_json *j = &p->j;
	if (p->array) {
		hw_json_open(j, '{');
		hw_json_int(j, "status", it->status);
	}
	if (!is_taken(it)) {
		hw_json_text(j, "error", it->why);
		if (*it->msg_id)
			hw_json_text(j, "msg_id", it->msg_id);
	} else if (r && r->state != HW_TASK_STATES) {
		hw_api_write_task(j, &it->task, r);
	} else {
		hw_api_write_id(j, "task", &it->task);
		hw_json_text(j, "msg_id", it->msg_id);
		hw_json_text(j, "state", hw_task_state_name(it->state));
		hw_json_int(j, "at_ms", it->at_ms);
		hw_json_int(j, "exp_ms", it->exp_ms);
	}
	if (p->array)
		hw_json_close(j, '}');
}

static void finish(struct post *p)
{
	struct evhttp_request *req = hw_pending_take(&p->pending);
	if (p->array)
		hw_json_close(&p->j, ']');
	stop_waiting(p);
	p->gone = true;
	if (req) {
		hw_answer_end_as(req, p->array ? HTTP_OK : p->items[0].status, &p->j, p->body);
		p->body = NULL;
	}
	release(p);
}

static void ask_records(struct post *p);

/* Writes the answer. With ?wait, accepted tasks are written with their records, which are read from Redis
 * HW_TASK_CALL_ITEMS at a time. */
static void write_on(struct post *p)
{
	while (p->at < p->n && !(p->wait_s && is_taken(&p->items[p->at])))
		write_item(p, &p->items[p->at++], NULL);
	if (p->at == p->n)
		finish(p);
	else
		ask_records(p);
}

static void begin_answer(struct post *p)
{
	p->writing = true;
	p->at = 0;
	if (p->array) {
		hw_json_key(&p->j, "results");
		hw_json_open(&p->j, '[');
	}
	write_on(p);
}

/* --- waiting for an end ------------------------------------------------------------------------------------------- */

static void ended(struct item *it)
{
	struct post *p = it->post;
	if (it->ended)
		return;
	it->ended = true;
	hw_feed_wait_stop(&it->wait);
	if (--p->n_waiting == 0 && !p->asked)
		begin_answer(p);
}

static void on_end(void *arg)
{
	ended(arg);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct post *p = arg;
	(void)fd, (void)what;
	for (size_t i = 0; i < p->n; i++) {
		hw_feed_wait_stop(&p->items[i].wait);
		p->items[i].ended = true;
	}
	p->n_waiting = 0;
	if (!p->asked)
		begin_answer(p);
}

/* Reads the records of accepted tasks, to find tasks that have already ended. */
static void search_on(struct post *p)
{
	while (p->at < p->n && !is_taken(&p->items[p->at]))
		p->at++;
	if (p->n_waiting == 0)
		begin_answer(p);
	else if (p->at < p->n)
		ask_records(p);
}

static void on_records(void *arg, const struct hw_tasks_reply *reply, const char *why)
{
	struct post *p = arg;
	struct hw_task_record r;
	p->asked = false;
	if (p->gone) {
		release(p);
		return;
	}
	if (!reply) {
		fail(p, HTTP_SERVUNAVAIL, why);
		return;
	}
	p->asked = true; /* so ended() does not begin the answer in this loop */
	for (size_t i = 0; i < reply->n_items && p->at < p->n; i++) {
		while (!is_taken(&p->items[p->at])) {
			if (p->writing)
				write_item(p, &p->items[p->at], NULL);
			p->at++;
		}
		struct item *it = &p->items[p->at++];
		hw_tasks_shown(reply, i, &r);
		if (p->writing)
			write_item(p, it, &r);
		else if (r.state == HW_TASK_STATES || hw_task_has_ended(r.state))
			ended(it);
	}
	p->asked = false;
	if (p->writing)
		write_on(p);
	else
		search_on(p);
}

static void ask_records(struct post *p)
{
	struct hw_task_id tasks[HW_TASK_CALL_ITEMS];
	size_t n = 0;
	for (size_t i = p->at; i < p->n && n < HW_TASK_CALL_ITEMS; i++)
		if (is_taken(&p->items[i]))
			tasks[n++] = p->items[i].task;
	int rc = hw_reads_show(p->app->api->reads, tasks, n, on_records, p);
	if (rc)
		fail(p, HTTP_SERVUNAVAIL, hw_reads_error(p->app->api->reads, rc));
	else
		p->asked = true;
}

static void wait_for_ends(struct post *p)
{
	struct timeval tv = {p->wait_s, 0};
	p->timer = evtimer_new(p->app->loop.base, on_time, p);
	if (!p->timer || event_add(p->timer, &tv) != 0) {
		fail(p, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	for (size_t i = 0; i < p->n; i++) {
		struct item *it = &p->items[i];
		if (!is_taken(it))
			continue;
		it->wait = (struct hw_feed_wait){.task = it->task, .on_end = on_end, .arg = it};
		hw_feed_wait(p->app->api->feed, &it->wait);
		p->n_waiting++;
	}
	p->at = 0;
	search_on(p);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void all_have_results(struct post *p)
{
	if (p->gone)
		release(p);
	else if (p->wait_s)
		wait_for_ends(p);
	else
		begin_answer(p);
}

static void refuse(struct item *it, int status, const char *why)
{
	it->status = status;
	it->why = why;
}

static void take_verdict(struct item *it, const struct hw_task_submitted *s)
{
	it->state = s->state;
	it->at_ms = s->at_ms;
	it->exp_ms = s->exp_ms;
	switch (s->verdict) {
	case HW_TASK_NEW:
		it->status = 201;
		break;
	case HW_TASK_KNOWN:
		it->status = HTTP_OK;
		break;
	case HW_TASK_CONTENT:
		refuse(it, 409, "this msg_id was submitted before with other content");
		break;
	case HW_TASK_OLD:
		refuse(it, 409, "time is older than tasks are kept, so a repetition could not be detected");
		break;
	case HW_TASK_AHEAD:
		refuse(it, 409, "time is ahead of this server's clock");
		break;
	case HW_TASK_AT:
		refuse(it, 409, "at must be within 366 days");
		break;
	case HW_TASK_EXP:
		refuse(it, 409, "exp must be later than at, by at most 30 days");
		break;
	case HW_TASK_FULL:
		refuse(it, HTTP_SERVUNAVAIL, "too many tasks wait: see [tasks] max and max_per_receiver");
		break;
	default:
		refuse(it, HTTP_SERVUNAVAIL, "the task was not accepted");
	}
}

static void on_submitted(void *arg, const struct hw_dispatch_result *result)
{
	struct item *it = arg;
	struct post *p = it->post;
	if (result->rc == 0) {
		take_verdict(it, &result->submitted);
	} else if (result->rc == -EIO) {
		hw_trouble_text(result->error, p->why);
		refuse(it, HTTP_SERVUNAVAIL, p->why);
	} else {
		refuse(it, HTTP_SERVUNAVAIL,
		       "Redis went away before it answered: submit the task again with the same msg_id");
	}
	if (result->rc == 0 && result->submitted.verdict == HW_TASK_NEW)
		hw_schedule_put(p->app->schedule, hw_tasks_now(), result->task, it->known_as, it->at_ms);
	if (--p->n_open == 0)
		all_have_results(p);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Makes a random msg_id for a request without one: its client cannot repeat the request as the same task. */
static bool make_msg_id(char msg_id[HW_TASK_MSG_ID_MAX + 1])
{
	unsigned char random[12];
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(msg_id + 2 * i, 3, "%02x", random[i]);
	return true;
}

static void submit(struct post *p, struct item *it, struct hw_text sender, struct hw_request *q)
{
	const struct hw_tasks_settings *c = p->app->conf;
	struct hw_task_submission *t = &q->task;
	if (q->msg_id.len)
		snprintf(it->msg_id, sizeof(it->msg_id), "%.*s", (int)q->msg_id.len, q->msg_id.at);
	else if (!make_msg_id(it->msg_id)) {
		refuse(it, HTTP_SERVUNAVAIL, "the system has no random numbers");
		return;
	}
	if (t->topic.len && !hw_allow_publish(c, sender, t->topic)) {
		refuse(it, 403, "no [tasks] publish line permits this topic");
		return;
	}
	t->sender = sender;
	t->msg_id = (struct hw_text){it->msg_id, strlen(it->msg_id)};
	it->known_as = hw_schedule_receiver(t->receiver.at, t->receiver.len);
	int rc = hw_dispatcher_submit(p->app->dispatcher, t, &it->task, on_submitted, it);
	if (rc)
		refuse(it, HTTP_SERVUNAVAIL, hw_api_dispatch_error(p->app, rc));
	else
		p->n_open++;
}

static void read_item(struct post *p, struct item *it, struct hw_text sender, const char *text, size_t len)
{
	struct hw_request q;
	const char *why = NULL;
	it->post = p;
	int rc = hw_request_read_task(&q, text, len, &why);
	if (rc == -EINVAL)
		refuse(it, HTTP_BADREQUEST, why);
	else if (rc)
		refuse(it, HTTP_SERVUNAVAIL, "out of memory");
	else
		submit(p, it, sender, &q);
	hw_request_fini(&q);
}

/* Returns the number of tasks in a body: 1 for an object; for an array its length, but at most HW_API_ITEMS_MAX + 1;
 * 0 for an empty array, or if the body is neither. */
static size_t count_items(const char *text, size_t len, bool array)
{
	struct hw_json_member m;
	size_t n = 0, at = 0;
	if (!array)
		return hw_json_object_valid(text, len) ? 1 : 0;
	if (!hw_json_array_valid(text, len))
		return 0;
	while (n <= HW_API_ITEMS_MAX && hw_json_array_next(text, len, &at, &m))
		n++;
	return n;
}

static void read_items(struct post *p, struct hw_text sender, const char *text, size_t len)
{
	struct hw_json_member m;
	size_t at = 0;
	if (!p->array) {
		read_item(p, &p->items[0], sender, text, len);
		return;
	}
	for (size_t i = 0; i < p->n && hw_json_array_next(text, len, &at, &m); i++)
		read_item(p, &p->items[i], sender, m.value, m.value_len);
}

static const char *read_wait(struct evhttp_request *req, unsigned *wait_s)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	struct hw_param p;
	int rc = 0;
	*wait_s = 0;
	for (query = query ? query : ""; (rc = hw_query_next(&query, &p)) == 1;) {
		if (strcmp(p.key, "wait") != 0)
			return "unknown key in the query: the only key is wait";
		if (p.value_len == 0 || p.value_len > 2 || strspn(p.value, "0123456789") != p.value_len ||
		    strtoul(p.value, NULL, 10) > HW_API_WAIT_MAX_S)
			return "'wait' must be 0 to 50 seconds: to wait longer, submit the task again with the same "
			       "msg_id";
		*wait_s = (unsigned)strtoul(p.value, NULL, 10);
	}
	return rc < 0 ? "the query is malformed" : NULL;
}

static struct post *post_new(struct hw_tasks_app *app, size_t n)
{
	struct post *p = app->api->n_posts < HW_API_POSTS_MAX ? calloc(1, sizeof(*p) + n * sizeof(p->items[0])) : NULL;
	if (!p)
		return NULL;
	p->app = app;
	p->n = n;
	app->api->n_posts++;
	return p;
}

/* Checks the request as a whole. Returns an error, or NULL and the number of its tasks in *n. */
static const char *judge(struct evhttp_request *req, const char *text, size_t len, size_t *n, unsigned *wait_s)
{
	bool array = len > 0 && text[strspn(text, " \t\r\n")] == '[';
	const char *why = read_wait(req, wait_s);
	*n = !why && len > 0 ? count_items(text, len, array) : 0;
	if (why)
		return why;
	if (*n > HW_API_ITEMS_MAX)
		return "a request may have at most 1000 tasks";
	if (*n == 0)
		return array && hw_json_array_valid(text, len)
		               ? "the array has no task"
		               : "the body must be a JSON object, or an array of objects";
	return NULL;
}

/* Returns the body with a NUL after it, which *len does not count. NULL if there is no memory. */
static const char *body_of(struct evhttp_request *req, size_t *len)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	*len = evbuffer_get_length(in);
	if (evbuffer_add(in, "", 1) != 0)
		return NULL;
	return (const char *)evbuffer_pullup(in, -1);
}

void hw_serve_task_post(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	char sender[HW_API_SENDER_MAX];
	size_t len, n;
	unsigned wait_s;
	const char *text = body_of(req, &len), *why = text ? judge(req, text, len, &n, &wait_s) : "out of memory";
	(void)rest;
	if (why) {
		hw_reply_error(req, text ? HTTP_BADREQUEST : HTTP_SERVUNAVAIL, why);
		return;
	}
	struct post *p = post_new(a, n);
	if (!p || !(p->body = hw_answer_begin(req, &p->j))) {
		if (!p)
			hw_reply_error(req, HTTP_SERVUNAVAIL, "too many requests are in progress");
		else
			release(p);
		return;
	}
	p->wait_s = wait_s;
	p->array = text[strspn(text, " \t\r\n")] == '[';
	hw_pending_begin(&p->pending, req, on_gone, p);
	p->n_open = 1;
	read_items(p, hw_api_sender(req, sender), text, len);
	if (--p->n_open == 0)
		all_have_results(p);
}
