/* SPDX-License-Identifier: MIT */
/* See api.h: the table of routes, status, health, metrics, and the count of waiting tasks. */
#include "tasks/api/api.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heartwheel/print.h"
#include "http/access.h"
#include "http/usage.h"
#include "link/clock.h"
#include "tasks/api/api_parts.h"
#include "tasks/api/call.h"
#include "tasks/follow/sessions.h"
#include "tasks/follow/wills.h"
#include "tasks/watch/watch.h"

static const char *store_state(const struct hw_tasks_app *a, char full[HW_DEVICE_READER_WHY])
{
	const char *why = hw_tasks_store_why(a->store);
	if (!hw_tasks_store_is_up(a->store) || hw_tasks_store_refuses(a->store))
		return *why ? why : "connecting";
	return hw_device_reader_why(a->device_reader, full) ? full : "up";
}

static const char *broker_state(const struct hw_tasks_app *a)
{
	const char *why = hw_tasks_broker_why(a->broker);
	if (hw_tasks_broker_publishes(a->broker) && hw_tasks_broker_reads(a->broker))
		return "up";
	return *why ? why : "connecting";
}

/* --- status ------------------------------------------------------------------------------------------------------- */

static void write_waiting(struct hw_json *j, struct hw_tasks_api *api)
{
	uint64_t all = 0;
	api->count.wanted = 60;
	for (int s = 0; s < HW_TASK_COMPLETE; s++)
		all += api->count.n[s];
	if (api->count.known)
		hw_json_uint(j, "waiting", all);
	else
		hw_json_null(j, "waiting");
	hw_json_open_member(j, "states", '{');
	for (int s = 0; s < HW_TASK_COMPLETE && api->count.known; s++)
		hw_json_uint(j, hw_task_state_name((enum hw_task_state)s), api->count.n[s]);
	hw_json_close(j, '}');
	if (api->count.known)
		hw_json_int(j, "counted_ago_s", (hw_clock_mono().ns / HW_NS_PER_MS - api->count.counted_ms) / 1000);
}

/* Writes nothing if watching is disabled. */
static void write_watched(struct hw_json *j, const struct hw_tasks_watch *w)
{
	uint64_t n;
	if (!hw_tasks_watch_is_on(w))
		return;
	if (hw_tasks_watch_count(w, &n))
		hw_json_uint(j, "watched", n);
	else
		hw_json_null(j, "watched");
}

static void serve_status(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	struct hw_feed_stats feed;
	struct hw_json j;
	char full[HW_DEVICE_READER_WHY];
	(void)rest;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	hw_feed_stats(a->api->feed, &feed);
	hw_json_text(&j, "version", HW_VERSION);
	hw_json_text(&j, "node", a->rules.node);
	hw_json_text(&j, "name", a->conf->name);
	hw_json_int(&j, "uptime_s", (hw_clock_mono().ns / HW_NS_PER_MS - a->life.started_ms) / 1000);
	hw_json_text(&j, "redis", store_state(a, full));
	hw_json_text(&j, "mqtt", broker_state(a));
	hw_json_bool(&j, "clock_held", hw_schedule_clock_held(a->schedule, hw_tasks_now()));
	write_waiting(&j, a->api);
	hw_json_open_member(&j, "ended", '{');
	for (int s = HW_TASK_COMPLETE; s < HW_TASK_STATES; s++)
		hw_json_uint(&j, hw_task_state_name((enum hw_task_state)s), a->counts.ended[s]);
	hw_json_close(&j, '}');
	write_watched(&j, a->watch);
	hw_json_uint(&j, "retries_total", a->counts.retries);
	hw_json_uint(&j, "calls", hw_call_waiting(a->call));
	hw_json_uint(&j, "event_clients", feed.clients);
	hw_answer_end(req, &j, body);
}

/* --- health ------------------------------------------------------------------------------------------------------- */

static void serve_ready(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	char full[HW_DEVICE_READER_WHY];
	const char *store = store_state(a, full), *broker = broker_state(a);
	bool no_store = strcmp(store, "up") != 0, no_broker = strcmp(broker, "up") != 0;
	char why[1024];
	(void)rest;
	if (!no_store && !no_broker) {
		hw_reply_ok(req);
		return;
	}
	snprintf(why, sizeof(why), "%s%.400s%s%s%.400s", no_store ? "Redis: " : "", no_store ? store : "",
	         no_store && no_broker ? "; " : "", no_broker ? "MQTT: " : "", no_broker ? broker : "");
	hw_reply_error(req, HTTP_SERVUNAVAIL, why);
}

/* --- metrics ------------------------------------------------------------------------------------------------------ */

static void add_states(struct evbuffer *b, struct hw_tasks_app *a)
{
	a->api->count.wanted = 60;
	hw_metric_family(b, "tasks", "gauge", "Tasks that wait, by state, at the last count");
	for (int s = 0; s < HW_TASK_COMPLETE && a->api->count.known; s++)
		hw_metric_labelled(b, "tasks", "state", hw_task_state_name((enum hw_task_state)s),
		                   (double)a->api->count.n[s]);
	hw_metric_family(b, "tasks_total", "counter", "Transitions of tasks into a state");
	for (int s = 0; s < HW_TASK_STATES; s++)
		hw_metric_labelled(b, "tasks_total", "state", hw_task_state_name((enum hw_task_state)s),
		                   (double)a->counts.ended[s]);
	hw_metric_family(b, "task_refused_total", "counter", "Messages that were refused, by reason");
	for (int k = 0; k < HW_REFUSED_KINDS; k++)
		hw_metric_labelled(b, "task_refused_total", "kind", hw_tasks_refusal_name((enum hw_tasks_refusal)k),
		                   (double)a->counts.refused[k]);
	hw_metric_family(b, "task_unusable_total", "counter", "Values in Redis that cannot be used, by kind");
	for (int k = 0; k < HW_UNUSABLE_KINDS; k++)
		hw_metric_labelled(b, "task_unusable_total", "kind", hw_tasks_unusable_name((enum hw_tasks_unusable)k),
		                   (double)a->counts.unusable[k]);
}

static void add_schedule(struct evbuffer *b, const struct hw_tasks_app *a)
{
	struct hw_schedule_stats s;
	hw_schedule_stats(a->schedule, &s);
	hw_metric_one(b, "task_overdue", "gauge", "Tasks that are due and were not claimed yet", (double)s.waiting);
	hw_metric_one(b, "task_overdue_total", "counter", "Overdue tasks that the periodic check has found",
	              (double)s.overdue);
	hw_metric_one(b, "task_known", "gauge", "Tasks in the wheel", (double)s.known);
	hw_metric_one(b, "task_bytes", "gauge", "Memory of the tasks in the wheel, in bytes", (double)s.bytes);
	hw_metric_one(b, "task_clock_held", "gauge", "1 while Redis' clock is not trusted after a jump",
	              hw_schedule_clock_held(a->schedule, hw_tasks_now()));
}

static void add_watched(struct evbuffer *b, const struct hw_tasks_app *a)
{
	uint64_t n;
	if (hw_tasks_watch_count(a->watch, &n))
		hw_metric_one(b, "task_watched", "gauge", "Watched tasks between other clients, ended ones included",
		              (double)n);
	hw_metric_family(b, "task_watched_total", "counter", "Transitions of watched tasks between other clients");
	for (int s = HW_TASK_SENT; s < HW_TASK_CANCELLED; s++)
		hw_metric_labelled(b, "task_watched_total", "state", hw_task_state_name((enum hw_task_state)s),
		                   (double)a->counts.watched[s]);
}

static void add_calls(struct evbuffer *b, const struct hw_tasks_app *a)
{
	struct hw_call_stats c;
	hw_call_stats(a->call, &c);
	hw_metric_family(b, "task_calls_total", "counter", "Calls (POST /v1/call), by result");
	hw_metric_labelled(b, "task_calls_total", "result", "answered", (double)c.answered);
	hw_metric_labelled(b, "task_calls_total", "result", "timeout", (double)c.timed_out);
	hw_metric_labelled(b, "task_calls_total", "result", "failed", (double)c.failed);
}

static void serve_metrics(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	struct evbuffer *b = evbuffer_new();
	(void)rest;
	if (!b) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	add_states(b, a);
	hw_metric_histogram(b, "task_lateness_seconds", "How late tasks were sent", &a->counts.lateness);
	hw_metric_histogram(b, "task_ack_seconds", "From sending to the device's acknowledgement", &a->counts.ack);
	hw_metric_one(b, "task_retries_total", "counter", "Repeated sendings of tasks", (double)a->counts.retries);
	hw_metric_one(b, "task_late_answers_total", "counter", "Answers that came after their task had ended",
	              (double)a->counts.late);
	hw_metric_one(b, "task_foreign_answers_total", "counter", "Answers from a client that is not the receiver",
	              (double)a->counts.foreign);
	hw_metric_one(b, "task_told_total", "counter", "Messages to submitters", (double)a->counts.notified);
	add_schedule(b, a);
	add_watched(b, a);
	add_calls(b, a);
	hw_metric_one(b, "task_followers", "gauge", "Sessions of clients that follow devices over MQTT",
	              (double)hw_tasks_sessions_count(a->sessions));
	hw_metric_one(b, "task_followers_current", "gauge", "Sessions that have read the whole stream",
	              (double)hw_tasks_sessions_count_current(a->sessions));
	hw_metric_one(b, "task_followers_expired_total", "counter",
	              "Sessions that were ended because their client acknowledged nothing",
	              (double)a->counts.followers_expired);
	hw_metric_one(b, "task_redis_up", "gauge", "1 while connected to Redis", hw_tasks_store_is_up(a->store));
	hw_metric_one(b, "task_mqtt_up", "gauge", "1 while connected to the broker",
	              hw_tasks_broker_publishes(a->broker) && hw_tasks_broker_reads(a->broker));
	hw_usage_metrics(b);
	hw_reply_as(req, HTTP_OK, "text/plain; version=0.0.4", b);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void serve_events(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_tasks_app *a = arg;
	(void)rest;
	hw_feed_serve(a->api->feed, req);
}

/* The routes of the API. heartwheeld forwards only requests below /v1/tasks, so the status and the metrics are there
 * too. */
static const struct hw_http_route routes[] = {
	{EVHTTP_REQ_POST, "/v1/tasks", "", hw_serve_task_post},
	{EVHTTP_REQ_GET, "/v1/tasks", "", hw_serve_task_list},
	{EVHTTP_REQ_GET, "/v1/tasks/events", "", serve_events},
	{EVHTTP_REQ_GET, "/v1/tasks/status", "", serve_status},
	{EVHTTP_REQ_GET, "/v1/tasks/metrics", "", serve_metrics},
	{EVHTTP_REQ_GET, "/v1/tasks/", "", hw_serve_task},
	{EVHTTP_REQ_DELETE, "/v1/tasks/", "", hw_serve_task_cancel},
	{EVHTTP_REQ_POST, "/v1/call", "", hw_serve_task_call},
	{EVHTTP_REQ_GET, "/v1/status", "", serve_status},
	{EVHTTP_REQ_GET, "/healthz", "", hw_serve_alive},
	{EVHTTP_REQ_GET, "/readyz", "", serve_ready},
	{EVHTTP_REQ_GET, "/metrics", "", serve_metrics},
	{EVHTTP_REQ_GET, "/v1/devices/", "/will", hw_tasks_serve_will},
	{EVHTTP_REQ_PUT, "/v1/devices/", "/will", hw_tasks_serve_will_put},
	{EVHTTP_REQ_DELETE, "/v1/devices/", "/will", hw_tasks_serve_will_delete},
};

const struct hw_http_table hw_tasks_routes = {routes, sizeof(routes) / sizeof(routes[0]), NULL};

/* --- counting ----------------------------------------------------------------------------------------------------- */

#define COUNT_PAGE 2000

static void count_on(struct hw_tasks_api *api);

static void on_counted(void *arg, const struct hw_tasks_reply *reply, const char *why)
{
	struct hw_tasks_api *api = arg;
	struct hw_api_count *c = &api->count;
	struct hw_task_place behind;
	(void)why;
	c->asked = false;
	if (!reply) {
		*c->task = '\0';
		return;
	}
	hw_tasks_counted(reply, c->counting);
	if (hw_tasks_next_place(reply, &behind)) {
		snprintf(c->score, sizeof(c->score), "%.*s", (int)behind.score.len, behind.score.at);
		snprintf(c->task, sizeof(c->task), "%.*s", (int)behind.task.len, behind.task.at);
		count_on(api);
		return;
	}
	memcpy(c->n, c->counting, sizeof(c->n));
	c->known = true;
	c->counted_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	*c->task = '\0';
}

/* Counts page by page. Each page takes Redis about 1 ms. */
static void count_on(struct hw_tasks_api *api)
{
	struct hw_api_count *c = &api->count;
	struct hw_task_place behind = {{c->score, *c->task ? strlen(c->score) : 0}, {c->task, strlen(c->task)}};
	if (!*c->task)
		memset(c->counting, 0, sizeof(c->counting));
	c->asked = hw_reads_count(api->reads, &behind, COUNT_PAGE, on_counted, api) == 0;
}

void hw_api_count_tick(struct hw_tasks_api *api)
{
	struct hw_api_count *c = &api->count;
	if (c->wanted > 0)
		c->wanted--;
	if (!c->asked && (c->wanted > 0 || !c->known))
		count_on(api);
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

const char *hw_api_dispatch_error(const struct hw_tasks_app *a, int rc)
{
	const char *why = hw_tasks_store_why(a->store);
	if (rc == -ENOTCONN)
		return *why ? why : "Redis is not connected yet";
	return rc == -EBUSY ? "too many requests are waiting for Redis" : "out of memory";
}

struct hw_text hw_api_sender(struct evhttp_request *req, char buf[HW_API_SENDER_MAX])
{
	const char *user = evhttp_find_header(evhttp_request_get_input_headers(req), HW_USER_HEADER);
	size_t len = hw_print(buf, HW_API_SENDER_MAX, "%s%.64s", user ? "user:" : "local", user ? user : "");
	return (struct hw_text){buf, len};
}

static void on_up(void *arg, bool up)
{
	struct hw_tasks_api *api = arg;
	hw_feed_store(api->feed, up);
	if (up && !api->count.asked)
		count_on(api);
}

static const struct hw_reads_ops reads_ops = {on_up};

struct hw_tasks_api *hw_tasks_api_new(struct hw_tasks_app *app)
{
	struct hw_tasks_api *api = calloc(1, sizeof(*api));
	const struct hw_redis_link_conf link = {.at = hw_redis_address_of(&app->conf->redis, app->life.redis_password),
	                                        .seed = (uint64_t)(uintptr_t)api ^ (uint64_t)getpid()};
	char key[512];
	if (!api)
		return NULL;
	api->app = app;
	snprintf(key, sizeof(key), "%sevents", app->rules.prefix);
	api->reads = hw_reads_new(app->loop.base, &link, &app->rules, &reads_ops, api);
	if (api->reads)
		api->feed = hw_feed_new(app, api->reads, key);
	if (api->feed)
		return api;
	hw_tasks_api_free(api);
	return NULL;
}

void hw_tasks_api_free(struct hw_tasks_api *api)
{
	if (!api)
		return;
	hw_reads_free(api->reads);
	hw_feed_free(api->feed);
	free(api);
}

void hw_tasks_api_tick(struct hw_tasks_api *api)
{
	hw_reads_tick(api->reads);
	hw_feed_tick(api->feed);
	hw_api_count_tick(api);
}
