/* SPDX-License-Identifier: MIT */
/* See api.h: the table of routes, status, health, metrics, receivers, and requests that wait for a commit. */
#include "alert/api/api.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/api/api_parts.h"
#include "alert/follow/follow.h"
#include "alert/follow/watch.h"
#include "alert/reload.h"
#include "alert/state/commit.h"
#include "alert/state/loader.h"
#include "http/metrics.h"
#include "http/query.h"
#include "http/usage.h"
#include "link/clock.h"

#define WHY_TEXT 1000

/* --- who answers -------------------------------------------------------------------------------------------------- */

/* Returns why this instance does not work; NULL: it works. */
static const char *why_not(const struct hw_alert_app *a, char *buf, size_t cap)
{
	const char *why = hw_alert_store_why(a->store), *other = hw_alert_holder_other(a->holder);
	if (!hw_alert_store_is_up(a->store))
		snprintf(buf, cap, "%s%.500s", a->fleet ? "" : "Redis: ", *why ? why : "connecting");
	else if (*other)
		snprintf(buf, cap, "this instance stands by: heartwheel-alert on '%s' works", other);
	else if (!a->engine && a->load_fails > 0)
		snprintf(buf, cap, "the state cannot be loaded: %s",
		         *hw_alert_loader_why(a->loader) ? hw_alert_loader_why(a->loader) : why);
	else if (!a->engine)
		snprintf(buf, cap, "the state is being loaded");
	else
		return NULL;
	return buf;
}

/* Returns why /readyz refuses. NULL: this instance is ready. An instance is not ready without the lease, before it has
 * loaded the state, or while Redis refuses to let it read a stream or the unseen devices. */
static const char *why_not_ready(const struct hw_alert_app *a, char *buf, size_t cap)
{
	const char *why = why_not(a, buf, cap);
	if (why || hw_alert_follow_is_refused(a->follow, buf, cap))
		return buf;
	if (!*hw_alert_loader_why(a->loader))
		return NULL;
	snprintf(buf, cap, "cannot read which devices are unseen: %s", hw_alert_loader_why(a->loader));
	return buf;
}

bool hw_alert_api_works(struct hw_alert_app *a, struct evhttp_request *req)
{
	char why[WHY_TEXT];
	if (!why_not(a, why, sizeof(why)))
		return true;
	hw_reply_error(req, HTTP_SERVUNAVAIL, why);
	return false;
}

/* --- status, health ----------------------------------------------------------------------------------------------- */

static void serve_status(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	struct hw_json j;
	char why[WHY_TEXT];
	(void)rest;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	hw_json_text(&j, "version", HW_VERSION);
	hw_json_text(&j, "node", a->conf->node_id);
	hw_json_int(&j, "uptime_s", (hw_clock_mono().ns / HW_NS_PER_MS - a->started_ms) / 1000);
	const char *up = a->fleet ? "off" : "up";
	hw_json_text(&j, "redis", hw_alert_store_is_up(a->store) ? up : hw_alert_store_why(a->store));
	hw_json_bool(&j, "works", a->engine && hw_alert_holder_is(a->holder));
	if (*hw_alert_holder_other(a->holder))
		hw_json_text(&j, "holder", hw_alert_holder_other(a->holder));
	if (why_not_ready(a, why, sizeof(why)))
		hw_json_text(&j, "why", why);
	if (a->engine) {
		struct hw_incidents_count n = hw_incidents_count(a->engine);
		hw_json_uint(&j, "open", n.open);
		hw_json_uint(&j, "devices", n.devices);
		hw_json_uint(&j, "commits", hw_alert_commit_number(a->commit));
		hw_json_int(&j, "lag_ms", hw_alert_follow_lag_ms(a->follow, hw_alert_holder_redis_ms(a->holder)));
	}
	int64_t ahead_ms = hw_alert_ahead_ms(a);
	if (llabs(ahead_ms) >= HW_ALERT_AGREES_MS)
		hw_json_int(&j, "clock_ahead_ms", ahead_ms);
	hw_json_uint(&j, "event_clients", hw_alert_feed_clients(a->api->feed));
	hw_answer_end(req, &j, body);
}

static void serve_ready(void *arg, struct evhttp_request *req, const char *rest)
{
	char why[WHY_TEXT];
	(void)rest;
	if (why_not_ready(arg, why, sizeof(why)))
		hw_reply_error(req, HTTP_SERVUNAVAIL, why);
	else
		hw_reply_ok(req);
}

static void serve_reload(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_json j;
	(void)rest;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	int status = hw_alert_reload(arg, &j);
	hw_answer_end_as(req, status, &j, body);
}

/* --- metrics ------------------------------------------------------------------------------------------------------ */

static bool count_one(void *arg, const struct hw_incident_view *v)
{
	uint64_t(*n)[HW_INCIDENT_KINDS] = arg;
	if (v->state == HW_INCIDENT_OPEN)
		n[v->acknowledged ? 1 : 0][v->kind]++;
	return true;
}

static void add_incidents(struct evbuffer *b, const struct hw_alert_app *a)
{
	uint64_t n[2][HW_INCIDENT_KINDS] = {{0}};
	if (!a->engine)
		return;
	hw_incidents_list(a->engine, count_one, n);
	hw_metric_family(b, "incidents", "gauge", "Open incidents, by kind; state acknowledged or open");
	for (int s = 0; s < 2; s++)
		for (int k = 0; k < HW_INCIDENT_KINDS; k++) {
			const char *labels[] = {"state", s ? "acknowledged" : "open", "kind",
			                        hw_incident_kind_name((enum hw_incident_kind)k), NULL};
			hw_metric_sample(b, "incidents", labels, (double)n[s][k]);
		}
}

static void add_receivers(struct evbuffer *b, const struct hw_alert_app *a)
{
	size_t n = a->senders ? hw_senders_count(a->senders) : 0;
	int64_t now_ms = hw_clock_now().wall_ms;
	struct hw_send_stats s;
	hw_metric_family(b, "notifications_total", "counter",
	                 "Messages that a receiver has taken, or that were given up");
	for (size_t k = 0; k < n; k++) {
		hw_senders_stats(a->senders, k, &s);
		for (int r = HW_SEND_SENT; r < HW_SEND_RESULTS; r++) {
			const char *labels[] = {"receiver", s.name, "result",
			                        hw_send_result_name((enum hw_send_result)r), NULL};
			hw_metric_sample(b, "notifications_total", labels, (double)s.result[r]);
		}
	}
	hw_metric_family(b, "notify_lag_seconds", "gauge", "For how long the oldest message of a receiver has waited");
	for (size_t k = 0; k < n; k++) {
		hw_senders_stats(a->senders, k, &s);
		double lag =
			s.waits_since_ms && now_ms > s.waits_since_ms ? (double)(now_ms - s.waits_since_ms) / 1000 : 0;
		hw_metric_labelled(b, "notify_lag_seconds", "receiver", s.name, lag);
	}
}

static bool count_silence(void *arg, const struct hw_silence_view *v, const struct hw_silence_state *s)
{
	(void)v;
	*(uint64_t *)arg += s->in_force;
	return true;
}

static void serve_metrics(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	struct evbuffer *b = evbuffer_new();
	uint64_t silences = 0;
	(void)rest;
	if (!b) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	if (a->engine)
		hw_incidents_silences(a->engine, count_silence, &silences);
	hw_metric_one(b, "alert_works", "gauge", "1: this instance holds the lease and sends", a->engine != NULL);
	add_incidents(b, a);
	hw_metric_one(b, "silences", "gauge", "Silences in force", (double)silences);
	add_receivers(b, a);
	hw_metric_one(b, "alert_entries_total", "counter", "Entries of streams that were read",
	              (double)a->counts.entries);
	hw_metric_one(b, "alert_commits_total", "counter", "Commits to Redis", (double)a->counts.commits);
	hw_metric_one(b, "alert_lag_seconds", "gauge", "For how long the oldest unread entry has waited",
	              (double)hw_alert_follow_lag_ms(a->follow, hw_alert_holder_redis_ms(a->holder)) / 1000);
	hw_metric_one(b, "alert_gaps_total", "counter", "Times that entries were trimmed before they were read",
	              (double)a->counts.gaps);
	hw_metric_family(b, "alert_unusable_total", "counter", "Values in Redis that cannot be used, by kind");
	for (int k = 0; k < HW_ALERT_UNUSABLE_KINDS; k++)
		hw_metric_labelled(b, "alert_unusable_total", "kind", hw_alert_unusable_name((enum hw_alert_unusable)k),
		                   (double)a->counts.unusable[k]);
	hw_usage_metrics(b);
	hw_reply_as(req, HTTP_OK, "text/plain; version=0.0.4", b);
}

/* --- receivers ---------------------------------------------------------------------------------------------------- */

static void serve_receivers(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	struct hw_json j;
	(void)rest;
	if (!hw_alert_api_works(a, req))
		return;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	hw_senders_show(a->senders, &j);
	hw_answer_end(req, &j, body);
}

static void serve_test(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	char name[HW_CONF_NAME_MAX + 1];
	uint64_t number;
	struct hw_json j;
	if (!hw_alert_api_works(a, req))
		return;
	int rc = hw_percent_decode(rest, strlen(rest), false, name, sizeof(name)) < 0
	                 ? -ENOENT
	                 : hw_senders_test(a->senders, name, &number);
	if (rc == 0) {
		struct evbuffer *body = hw_answer_begin(req, &j);
		if (!body)
			return;
		hw_json_uint(&j, "number", number);
		hw_answer_end_as(req, 202, &j, body);
	} else if (rc == -ENOENT) {
		hw_reply_error(req, HTTP_NOTFOUND, "there is no such receiver");
	} else {
		hw_reply_error(req, HTTP_SERVUNAVAIL, rc == -EBUSY ? "a test message is being sent" : "out of memory");
	}
}

/* --- requests that wait for a commit ------------------------------------------------------------------------------ */

struct hw_alert_wait {
	struct hw_alert_wait *next, **prev;
	struct hw_alert_api *api;
	struct hw_pending pending;
	uint64_t commit; /* that has all changes */
	int code;
	char id[HW_INCIDENT_ID + 1];
};

static void wait_end(struct hw_alert_wait *w)
{
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->api->n_waits--;
	free(w);
}

static void on_gone(void *arg)
{
	wait_end(arg);
}

static void answer(struct evhttp_request *req, int code, const char *id)
{
	struct hw_json j;
	if (!*id) {
		hw_reply(req, code, NULL);
		return;
	}
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	hw_json_text(&j, "id", id);
	hw_answer_end_as(req, code, &j, body);
}

void hw_alert_api_wait(struct hw_alert_app *a, struct evhttp_request *req, int code, const char *id)
{
	struct hw_alert_api *api = a->api;
	struct hw_alert_wait *w = api->n_waits < HW_ALERT_WAITS_MAX ? calloc(1, sizeof(*w)) : NULL;
	hw_alert_schedule_turn(a);
	if (!w) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "too many requests wait for Redis; the change was made");
		return;
	}
	*w = (struct hw_alert_wait){.next = api->waits, .prev = &api->waits, .api = api, .code = code};
	w->commit = hw_alert_commit_number(a->commit) + (hw_alert_commit_is_busy(a->commit) ? 2 : 1);
	snprintf(w->id, sizeof(w->id), "%s", id);
	if (api->waits)
		api->waits->prev = &w->next;
	api->waits = w;
	api->n_waits++;
	hw_pending_begin(&w->pending, req, on_gone, w);
}

void hw_alert_api_committed(struct hw_alert_api *api)
{
	struct hw_alert_wait *next;
	uint64_t number = hw_alert_commit_number(api->app->commit);
	for (struct hw_alert_wait *w = api->waits; w; w = next) {
		next = w->next;
		if (w->commit > number)
			continue;
		struct evhttp_request *req = hw_pending_take(&w->pending);
		if (req)
			answer(req, w->code, w->id);
		wait_end(w);
	}
	hw_alert_feed_poll(api->feed);
}

void hw_alert_api_reset(struct hw_alert_api *api)
{
	while (api && api->waits) {
		struct evhttp_request *req = hw_pending_take(&api->waits->pending);
		if (req)
			hw_reply_error(req, HTTP_SERVUNAVAIL,
			               "this instance has stopped working; the change may be lost");
		wait_end(api->waits);
	}
}

/* --- the body of a request ---------------------------------------------------------------------------------------- */

static bool read_member(const struct hw_alert_field *fields, size_t n, const struct hw_json_member *m)
{
	char buf[HW_INCIDENT_TEXT * 6 + 2];
	for (size_t k = 0; k < n; k++) {
		const struct hw_alert_field *f = &fields[k];
		if (strlen(f->name) != m->key_len || memcmp(f->name, m->key, m->key_len) != 0)
			continue;
		if (f->flag) {
			*f->flag = m->value_len == 4 && memcmp(m->value, "true", 4) == 0;
			return *f->flag || (m->value_len == 5 && memcmp(m->value, "false", 5) == 0);
		}
		if (f->ms) {
			char *end;
			snprintf(buf, sizeof(buf), "%.*s", (int)(m->value_len < 40 ? m->value_len : 40), m->value);
			*f->ms = strtoll(buf, &end, 10);
			return m->value_len <= 20 && !*end && *f->ms >= 0;
		}
		if (m->value[0] != '"' || m->value_len >= sizeof(buf))
			return false;
		int len = hw_json_unquote(m->value, m->value_len, buf);
		if (len < 0 || (size_t)len >= f->cap || memchr(buf, '\0', (size_t)len))
			return false;
		memcpy(f->text, buf, (size_t)len);
		f->text[len] = '\0';
		return true;
	}
	return false;
}

bool hw_alert_api_read(struct evhttp_request *req, const struct hw_alert_field *fields, size_t n)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t len = evbuffer_get_length(in), at = 0;
	const char *text = len ? (const char *)evbuffer_pullup(in, -1) : "";
	struct hw_json_member m;
	char why[200];
	if (len == 0)
		return true;
	if (!text || !hw_json_object_valid(text, len)) {
		hw_reply_error(req, HTTP_BADREQUEST, "the body must be a JSON object");
		return false;
	}
	while (hw_json_object_next(text, len, &at, &m))
		if (!read_member(fields, n, &m)) {
			snprintf(why, sizeof(why), "the member '%.*s' is unknown, too long, or of another type",
			         (int)(m.key_len < 40 ? m.key_len : 40), m.key);
			hw_reply_error(req, HTTP_BADREQUEST, why);
			return false;
		}
	return true;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const struct hw_http_route routes[] = {
	{EVHTTP_REQ_GET, "/v1/incidents", "", hw_serve_incidents},
	{EVHTTP_REQ_GET, "/v1/incidents/events", "", hw_serve_incident_events},
	{EVHTTP_REQ_GET, "/v1/incidents/metrics", "", serve_metrics}, /* heartwheeld forwards this path */
	{EVHTTP_REQ_GET, "/v1/incidents/", "", hw_serve_incident},
	{EVHTTP_REQ_POST, "/v1/incidents/", "/ack", hw_serve_ack},
	{EVHTTP_REQ_DELETE, "/v1/incidents/", "/ack", hw_serve_unack},
	{EVHTTP_REQ_GET, "/v1/silences", "", hw_serve_silences},
	{EVHTTP_REQ_POST, "/v1/silences", "", hw_serve_silence_post},
	{EVHTTP_REQ_DELETE, "/v1/silences/", "", hw_serve_silence_delete},
	{EVHTTP_REQ_GET, "/v1/receivers", "", serve_receivers},
	{EVHTTP_REQ_POST, "/v1/receivers/", "/test", serve_test},
	{EVHTTP_REQ_GET, "/v1/status", "", serve_status},
	{EVHTTP_REQ_POST, "/v1/reload", "", serve_reload},
	{EVHTTP_REQ_GET, "/healthz", "", hw_serve_alive},
	{EVHTTP_REQ_GET, "/readyz", "", serve_ready},
	{EVHTTP_REQ_GET, "/metrics", "", serve_metrics},
};

const struct hw_http_table hw_alert_routes = {routes, sizeof(routes) / sizeof(routes[0]), NULL};

/* --- start and stop ----------------------------------------------------------------------------------------------- */

struct hw_alert_api *hw_alert_api_new(struct hw_alert_app *app)
{
	struct hw_alert_api *api = calloc(1, sizeof(*api));
	if (!api)
		return NULL;
	api->app = app;
	api->feed = hw_alert_feed_new(app);
	if (api->feed)
		return api;
	free(api);
	return NULL;
}

void hw_alert_api_free(struct hw_alert_api *api)
{
	if (!api)
		return;
	hw_alert_feed_free(api->feed);
	free(api);
}

void hw_alert_api_tick(struct hw_alert_api *api)
{
	hw_alert_feed_tick(api->feed);
}
