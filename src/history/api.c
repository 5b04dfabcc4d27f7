/* SPDX-License-Identifier: MIT */
/* See api.h. */
#include "history/api.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "history/ask.h"
#include "http/json.h"
#include "http/reply.h"
#include "http/usage.h"
#include "link/clock.h"

/* --- as of ------------------------------------------------------------------------------------------------------ */

/*
 * Returns the time up to which SQL has all entries about devices; entries about tasks do not matter here. Only an
 * answer of Redis advances this time. So it stands still while Redis or SQL cannot be reached, and while this process
 * is stopped. Until both streams were read once, it is the time of the last entry.
 */
int64_t hw_history_as_of(void *arg)
{
	struct hw_history_api *api = arg;
	struct hw_importer_view v;
	int64_t now_ms = hw_clock_now().wall_ms;
	hw_importer_view(api->importer, &v);
	int64_t events_ms = v.until_ms[HW_STREAM_EVENTS], sight_ms = v.until_ms[HW_STREAM_SIGHT];
	int64_t at_ms = events_ms < sight_ms ? events_ms : sight_ms;
	if (at_ms == 0) {
		events_ms = (int64_t)v.cursor[HW_STREAM_EVENTS].id.ms;
		sight_ms = (int64_t)v.cursor[HW_STREAM_SIGHT].id.ms;
		at_ms = events_ms > sight_ms ? events_ms : sight_ms;
	}
	return at_ms < now_ms ? at_ms : now_ms;
}

/* --- status ----------------------------------------------------------------------------------------------------- */

static void put_cursor(struct hw_json *j, const struct hw_importer_view *v, int stream)
{
	char at[HW_STREAM_ID_TEXT];
	hw_stream_id_print(v->cursor[stream].id, at);
	hw_json_text(j, "at", at);
	hw_json_int(j, "n", v->cursor[stream].added < 0 ? 0 : v->cursor[stream].added);
	if (v->lag_entries[stream] < 0)
		hw_json_null(j, "lag_entries");
	else
		hw_json_int(j, "lag_entries", v->lag_entries[stream]);
	hw_json_number(j, "lag_s", (double)v->lag_ms[stream] / 1e3);
}

static void serve_status(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_history_api *api = arg;
	struct hw_importer_view v;
	struct hw_json j;
	(void)rest;
	hw_importer_view(api->importer, &v);
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	hw_json_text(&j, "version", HW_VERSION);
	hw_json_int(&j, "uptime_s", (hw_clock_mono().ns / HW_NS_PER_MS - api->started_ms) / 1000);
	hw_json_text(&j, "database", api->database);
	hw_json_text(&j, "sql", v.sql ? "up" : *v.sql_why ? v.sql_why : "connecting");
	hw_json_text(&j, "redis", v.redis ? "up" : *v.redis_why ? v.redis_why : "connecting");
	put_cursor(&j, &v, HW_STREAM_EVENTS);
	hw_json_int(&j, "gaps", v.gaps);
	hw_json_int(&j, "lost", v.lost);
	hw_json_bool(&j, "reading_back", v.pending);
	hw_json_open_member(&j, "streams", '[');
	for (int i = 0; i < HW_STREAMS; i++) {
		hw_json_open(&j, '{');
		hw_json_text(&j, "stream", hw_entry_stream_name((enum hw_stream)i));
		put_cursor(&j, &v, i);
		hw_json_close(&j, '}');
	}
	hw_json_close(&j, ']');
	hw_answer_end(req, &j, body);
}

/* --- health and metrics ----------------------------------------------------------------------------------------- */

static void serve_ready(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_history_api *api = arg;
	struct hw_importer_view v;
	char why[2 * HW_SQL_WHY + 32];
	(void)rest;
	hw_importer_view(api->importer, &v);
	if (v.sql && v.redis) {
		hw_reply_ok(req);
		return;
	}
	snprintf(why, sizeof(why), "%s%s%s%s%s", v.sql ? "" : "SQL: ",
	         v.sql        ? ""
	         : *v.sql_why ? v.sql_why
	                      : "connecting",
	         v.sql || v.redis ? "" : "; ", v.redis ? "" : "Redis: ",
	         v.redis        ? ""
	         : *v.redis_why ? v.redis_why
	                        : "connecting");
	hw_reply_error(req, HTTP_SERVUNAVAIL, why);
}

static void add_lags(struct evbuffer *b, const struct hw_importer_view *v)
{
	hw_metric_family(b, "history_lag_seconds", "gauge", "Age of the last written entry while more entries wait");
	for (int i = 0; i < HW_STREAMS; i++)
		hw_metric_labelled(b, "history_lag_seconds", "stream", hw_entry_stream_name((enum hw_stream)i),
		                   (double)v->lag_ms[i] / 1e3);
	hw_metric_family(b, "history_lag_entries", "gauge", "Entries that wait in Redis; NaN: not known");
	for (int i = 0; i < HW_STREAMS; i++)
		hw_metric_labelled(b, "history_lag_entries", "stream", hw_entry_stream_name((enum hw_stream)i),
		                   v->lag_entries[i] < 0 ? (double)NAN : (double)v->lag_entries[i]);
}

static void serve_metrics(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_history_api *api = arg;
	struct hw_importer_view v;
	struct evbuffer *b = evbuffer_new();
	(void)rest;
	if (!b) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	hw_importer_view(api->importer, &v);
	add_lags(b, &v);
	hw_metric_family(b, "history_rows_total", "counter", "Rows that this instance has written");
	for (int i = 0; i < HW_ROWS_KINDS; i++)
		hw_metric_labelled(b, "history_rows_total", "kind", hw_importer_rows_name((enum hw_importer_rows)i),
		                   (double)v.rows[i]);
	hw_metric_one(b, "history_gaps_total", "counter", "Gaps in the streams that the database holds",
	              (double)v.gaps);
	hw_metric_one(b, "history_lost_total", "counter", "Entries that were lost in these gaps, as far as known",
	              (double)v.lost);
	hw_metric_family(b, "history_unusable_total", "counter",
	                 "Entries that were skipped (fields, time, seq) or corrected (text)");
	for (int i = 0; i < HW_ODD_KINDS; i++)
		hw_metric_labelled(b, "history_unusable_total", "kind", hw_importer_odd_name((enum hw_source_odd)i),
		                   (double)v.odd[i]);
	hw_metric_one(b, "history_yielded_total", "counter", "Batches that another instance wrote first",
	              (double)v.yielded);
	hw_metric_one(b, "history_sql_losses_total", "counter", "How often the database went away",
	              (double)v.sql_losses);
	hw_metric_one(b, "history_up", "gauge", "1 while connected to the database and to Redis", v.sql && v.redis);
	hw_metric_histogram(b, "history_batch_seconds", "Duration of a batch's transaction", &v.batch);
	hw_usage_metrics(b);
	hw_reply_as(req, HTTP_OK, "text/plain; version=0.0.4", b);
}

static const struct hw_http_route routes[] = {
	{EVHTTP_REQ_GET, "/v1/history/status", "", serve_status},
	{EVHTTP_REQ_GET, "/v1/history/devices/", "", hw_serve_transitions_of},
	{EVHTTP_REQ_GET, "/v1/history/outages", "", hw_serve_outages},
	{EVHTTP_REQ_GET, "/v1/history/incidents", "", hw_serve_old_incidents},
	{EVHTTP_REQ_GET, "/v1/history/uptime", "", hw_serve_uptime},
	{EVHTTP_REQ_GET, "/v1/history/bars", "", hw_serve_bars},
	{EVHTTP_REQ_GET, "/v1/history/counts", "", hw_serve_counts},
	{EVHTTP_REQ_GET, "/v1/history/badge/", "", hw_serve_badge},
	{EVHTTP_REQ_GET, "/v1/history/events", "", hw_serve_old_events},
	{EVHTTP_REQ_GET, "/v1/history/metrics", "", serve_metrics}, /* heartwheeld forwards this path */
	{EVHTTP_REQ_GET, "/healthz", "", hw_serve_alive},
	{EVHTTP_REQ_GET, "/readyz", "", serve_ready},
	{EVHTTP_REQ_GET, "/metrics", "", serve_metrics},
};

const struct hw_http_table hw_history_routes = {routes, sizeof(routes) / sizeof(routes[0]), NULL};
