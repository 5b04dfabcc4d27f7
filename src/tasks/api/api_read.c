/* SPDX-License-Identifier: MIT */
/* The API: lists, shows and cancels tasks. A list with filters may need several requests to Redis, one after the
 * other, but at most LIST_ROUNDS. The page may then be short; `next` names the begin of the next page. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/topic.h"
#include "http/query.h"
#include "tasks/api/api_parts.h"

#define LIST_ROUNDS 20

/* --- a task as JSON ----------------------------------------------------------------------------------------------- */

void hw_api_write_id(struct hw_json *j, const char *key, const struct hw_task_id *task)
{
	char text[HW_TASK_TEXT + 1];
	hw_task_id_text(task, text);
	hw_json_bytes(j, key, text, HW_TASK_TEXT);
}

static void write_text(struct hw_json *j, const char *key, struct hw_text t)
{
	if (t.len)
		hw_json_bytes(j, key, t.at, t.len);
}

static void write_number(struct hw_json *j, const char *key, int64_t n)
{
	if (n >= 0)
		hw_json_int(j, key, n);
}

/* Writes a value that was JSON when it arrived. If it is no JSON any more, because another program has overwritten
 * it, writes it as a string. */
static void write_value(struct hw_json *j, const char *key, struct hw_text t, bool bytes)
{
	if (!t.len)
		return;
	if (!bytes && hw_json_valid(t.at, t.len))
		hw_json_raw(j, key, t.at, t.len);
	else
		hw_json_bytes(j, key, t.at, t.len);
}

void hw_api_write_task(struct hw_json *j, const struct hw_task_id *task, const struct hw_task_record *r)
{
	if (task)
		hw_api_write_id(j, "task", task);
	else
		hw_json_bytes(j, "task", r->task.at, r->task.len);
	hw_json_text(j, "state", r->state < HW_TASK_STATES ? hw_task_state_name(r->state) : NULL);
	write_text(j, "why", r->why);
	write_text(j, "receiver", r->receiver);
	write_text(j, "action", r->action);
	write_text(j, "topic", r->topic);
	write_text(j, "sender", r->sender);
	write_text(j, "msg_id", r->msg_id);
	write_number(j, "created_ms", r->created_ms);
	write_number(j, "at_ms", r->at_ms);
	write_number(j, "exp_ms", r->exp_ms);
	write_number(j, "run_ms", r->run_ms);
	if (r->watched)
		hw_json_bool(j, "watched", true);
	else
		hw_json_bool(j, "hold", !r->no_hold);
	write_number(j, "due_ms", r->due_ms);
	write_number(j, "tries", r->tries);
	write_number(j, "sent_ms", r->sent_ms);
	write_number(j, "acked_ms", r->acked_ms);
	write_number(j, "ended_ms", r->ended_ms);
	write_text(j, "late", r->late);
	write_number(j, "late_ms", r->late_ms);
	write_value(j, "payload", r->body, r->topic.len > 0);
	write_value(j, r->state == HW_TASK_FAILED ? "error" : "value", r->value, false);
}

/* --- a list ------------------------------------------------------------------------------------------------------- */

struct list {
	struct hw_tasks_api *api;
	struct hw_pending pending;
	struct evbuffer *body;
	struct hw_json j;
	unsigned n, limit, rounds;
	bool watched;
	struct hw_text receiver, state;
	char receiver_text[HW_ID_MAX + 1], score[32], task[HW_TASK_TEXT + 1];
};

static void list_free(struct list *l)
{
	if (l->body)
		evbuffer_free(l->body);
	free(l);
}

/* Parses "SCORE.TASK", the form of `next`. */
static const char *take_after(struct list *l, const char *text)
{
	const char *dot = strrchr(text, '.');
	struct hw_task_id id;
	size_t len = dot ? (size_t)(dot - text) : 0;
	if (!dot || len == 0 || len >= sizeof(l->score) || strspn(text, "0123456789.e+") < len ||
	    !hw_task_id_parse(&id, dot + 1, strlen(dot + 1)))
		return "'after' must be the 'next' of an earlier page";
	memcpy(l->score, text, len);
	l->score[len] = '\0';
	hw_task_id_text(&id, l->task);
	return NULL;
}

static const char *take_state(struct list *l, const struct hw_param *p)
{
	enum hw_task_state s = hw_task_state_of(p->value, p->value_len);
	if (s == HW_TASK_STATES)
		return "'state' must be scheduled, held, sent or acked; with 'watched' also the state of an ended task";
	l->state = (struct hw_text){hw_task_state_name(s), strlen(hw_task_state_name(s))};
	return NULL;
}

static const char *take_receiver(struct list *l, const struct hw_param *p)
{
	if (!hw_task_name_is_valid((struct hw_text){p->value, p->value_len}))
		return "'receiver' is not a receiver's name";
	memcpy(l->receiver_text, p->value, p->value_len + 1);
	l->receiver = (struct hw_text){l->receiver_text, p->value_len};
	return NULL;
}

static const char *take_watched(struct list *l, const struct hw_param *p)
{
	if (strcmp(p->value, "0") != 0 && strcmp(p->value, "1") != 0)
		return "'watched' must be 0 or 1";
	l->watched = p->value[0] == '1';
	return NULL;
}

/* Checks the parameters together. Returns an error or NULL. */
static const char *judge_list(const struct list *l)
{
	enum hw_task_state s = hw_task_state_of(l->state.at, l->state.len);
	if (!l->watched && s != HW_TASK_STATES && hw_task_has_ended(s))
		return "ended tasks are not listed: ask for one task, or read /v1/tasks/events";
	return NULL;
}

static const char *read_list_query(struct list *l, struct evhttp_request *req)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req)), *why = NULL;
	struct hw_param p;
	int rc = 0;
	l->limit = HW_LIMIT_DEFAULT;
	l->receiver = l->state = (struct hw_text){"", 0};
	for (query = query ? query : ""; !why && (rc = hw_query_next(&query, &p)) == 1;) {
		if (strcmp(p.key, "receiver") == 0)
			why = take_receiver(l, &p);
		else if (strcmp(p.key, "state") == 0)
			why = take_state(l, &p);
		else if (strcmp(p.key, "after") == 0)
			why = take_after(l, p.value);
		else if (strcmp(p.key, "limit") == 0)
			why = hw_query_limit(p.value, p.value_len, &l->limit);
		else if (strcmp(p.key, "watched") == 0)
			why = take_watched(l, &p);
		else
			why = "unknown key in the query: the keys are receiver, state, watched, after and limit";
	}
	if (!why && rc < 0)
		why = "the query is malformed";
	return why ? why : judge_list(l);
}

static void end_list(struct list *l, bool more)
{
	char next[sizeof(l->score) + sizeof(l->task)];
	struct evhttp_request *req = hw_pending_take(&l->pending);
	hw_json_close(&l->j, ']');
	snprintf(next, sizeof(next), "%s.%s", l->score, l->task);
	if (more)
		hw_json_text(&l->j, "next", next);
	if (req) {
		hw_answer_end(req, &l->j, l->body);
		l->body = NULL;
	}
	list_free(l);
}

static int ask_list(struct list *l);

static void fail_list(struct list *l, const char *why)
{
	struct evhttp_request *req = hw_pending_take(&l->pending);
	if (req)
		hw_reply_error(req, HTTP_SERVUNAVAIL, why);
	list_free(l);
}

static void on_list(void *arg, const struct hw_tasks_reply *reply, const char *why)
{
	struct list *l = arg;
	struct hw_task_record r;
	struct hw_task_place behind;
	if (!reply || !l->pending.req) {
		fail_list(l, why ? why : "");
		return;
	}
	for (size_t i = 0; i < reply->n_items; i++, l->n++) {
		hw_tasks_listed(reply, i, &r);
		hw_json_open(&l->j, '{');
		hw_api_write_task(&l->j, NULL, &r);
		hw_json_close(&l->j, '}');
	}
	bool more = hw_tasks_next_place(reply, &behind);
	snprintf(l->score, sizeof(l->score), "%.*s", (int)behind.score.len, behind.score.at);
	snprintf(l->task, sizeof(l->task), "%.*s", (int)behind.task.len, behind.task.at);
	if (!more || l->n >= l->limit || ++l->rounds >= LIST_ROUNDS) {
		end_list(l, more);
		return;
	}
	int rc = ask_list(l);
	if (rc)
		fail_list(l, hw_reads_error(l->api->reads, rc));
}

static int ask_list(struct list *l)
{
	const struct hw_task_listing listing = {
		l->receiver,
		l->state,
		{{l->score, *l->task ? strlen(l->score) : 0}, {l->task, strlen(l->task)}},
		l->limit - l->n,
		l->watched};
	return hw_reads_list(l->api->reads, &listing, on_list, l);
}

void hw_serve_task_list(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	struct list *l = calloc(1, sizeof(*l));
	(void)rest;
	const char *why = l ? read_list_query(l, req) : NULL;
	if (why) {
		free(l);
		hw_reply_error(req, HTTP_BADREQUEST, why);
		return;
	}
	if (!l || !(l->body = hw_answer_begin(req, &l->j))) {
		if (!l)
			hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		free(l);
		return;
	}
	l->api = a->api;
	hw_json_key(&l->j, "tasks");
	hw_json_open(&l->j, '[');
	int rc = ask_list(l);
	if (rc) {
		list_free(l);
		hw_reply_error(req, HTTP_SERVUNAVAIL, hw_reads_error(a->api->reads, rc));
		return;
	}
	hw_pending_begin(&l->pending, req, NULL, NULL);
}

/* --- one task ----------------------------------------------------------------------------------------------------- */

struct one {
	struct hw_pending pending;
	struct hw_task_id task;
};

/* Parses the end of a path, `rest`, as the name of a task. If it is no such name, answers 404 and returns false. */
static bool find_task(struct evhttp_request *req, const char *rest, struct hw_task_id *task)
{
	bool found = hw_task_id_parse(task, rest, strlen(rest));
	if (!found)
		hw_reply_error(req, HTTP_NOTFOUND, "no such task");
	return found;
}

static void on_shown(void *arg, const struct hw_tasks_reply *reply, const char *why)
{
	struct one *o = arg;
	struct evhttp_request *req = hw_pending_take(&o->pending);
	struct hw_task_record r;
	struct hw_json j;
	struct evbuffer *body;
	if (req && reply)
		hw_tasks_shown(reply, 0, &r);
	if (req && !reply) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, why);
	} else if (req && r.state == HW_TASK_STATES) {
		hw_reply_error(req, HTTP_NOTFOUND, "no such task");
	} else if (req && (body = hw_answer_begin(req, &j))) {
		hw_api_write_task(&j, &o->task, &r);
		hw_answer_end(req, &j, body);
	}
	free(o);
}

void hw_serve_task(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	struct hw_task_id task;
	if (!find_task(req, rest, &task))
		return;
	struct one *o = malloc(sizeof(*o));
	int rc = o ? hw_reads_show(a->api->reads, &task, 1, on_shown, o) : -ENOMEM;
	if (rc) {
		free(o);
		hw_reply_error(req, HTTP_SERVUNAVAIL, hw_reads_error(a->api->reads, rc));
		return;
	}
	o->task = task;
	hw_pending_begin(&o->pending, req, NULL, NULL);
}

/* --- cancelling --------------------------------------------------------------------------------------------------- */

static void answer_cancelled(struct evhttp_request *req, const struct hw_dispatch_result *result)
{
	const struct hw_task_cancelled *c = &result->cancelled;
	const char *why = NULL;
	char over[64];
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	snprintf(over, sizeof(over), "the task has already ended: %s", hw_task_state_name(c->was));
	if (c->verdict == HW_TASK_OVER)
		why = over;
	else if (c->verdict == HW_TASK_RUNNING)
		why = "the device has acknowledged the task and may be executing it: force=1 cancels it nevertheless "
		      "(heartwheelctl task cancel --force)";
	if (why)
		hw_json_text(&j, "error", why);
	hw_api_write_id(&j, "task", &result->task);
	hw_json_text(&j, "state", hw_task_state_name(why ? c->was : HW_TASK_CANCELLED));
	if (!why)
		hw_json_text(&j, "was", hw_task_state_name(c->was));
	hw_json_uint(&j, "tries", c->tries);
	hw_answer_end_as(req, why ? 409 : HTTP_OK, &j, body);
}

static void on_cancelled(void *arg, const struct hw_dispatch_result *result)
{
	struct one *o = arg;
	struct evhttp_request *req = hw_pending_take(&o->pending);
	if (req && result->rc)
		hw_reply_error(req, HTTP_SERVUNAVAIL,
		               result->rc == -EIO
		                       ? "Redis refused the command: see the log"
		                       : "Redis went away before it answered: the task may have been cancelled");
	else if (req && result->cancelled.verdict == HW_TASK_GONE)
		hw_reply_error(
			req, HTTP_NOTFOUND,
			"no such task, or a watched task between other clients, which only its sender can cancel");
	else if (req)
		answer_cancelled(req, result);
	free(o);
}

static const char *read_force(struct evhttp_request *req, bool *force)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	struct hw_param p;
	int rc = 0;
	*force = false;
	for (query = query ? query : ""; (rc = hw_query_next(&query, &p)) == 1;) {
		if (strcmp(p.key, "force") != 0)
			return "unknown key in the query: the only key is force";
		if (strcmp(p.value, "0") != 0 && strcmp(p.value, "1") != 0)
			return "'force' must be 0 or 1";
		*force = p.value[0] == '1';
	}
	return rc < 0 ? "the query is malformed" : NULL;
}

/* Cancels a task. A client with the right to send this request is an operator, who may cancel any task. */
void hw_serve_task_cancel(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	struct hw_task_cancel c = {.sender = {"", 0}};
	const char *why = read_force(req, &c.force);
	if (why) {
		hw_reply_error(req, HTTP_BADREQUEST, why);
		return;
	}
	if (!find_task(req, rest, &c.task))
		return;
	struct one *o = malloc(sizeof(*o));
	int rc = o ? hw_dispatcher_cancel(a->dispatcher, &c, on_cancelled, o) : -ENOMEM;
	if (rc) {
		free(o);
		hw_reply_error(req, HTTP_SERVUNAVAIL, hw_api_dispatch_error(a, rc));
		return;
	}
	hw_pending_begin(&o->pending, req, NULL, NULL);
}
