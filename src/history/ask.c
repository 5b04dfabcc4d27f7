/* SPDX-License-Identifier: MIT */
/* See ask.h. A time is Unix milliseconds, a UTC day, a UTC second, or an age such as 30d. */
#include "history/ask.h"

#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/value.h"
#include "heartwheel/event.h"
#include "history/api.h"
#include "history/calendar.h"
#include "history/entry.h"
#include "history/report.h"
#include "http/query.h"
#include "http/reply.h"
#include "link/clock.h"

#define DAY_MS    INT64_C(86400000)
#define MINUTE_MS INT64_C(60000)

/* The parameters that a request may have. */
enum {
	TAKES_DEVICE = 1,
	TAKES_GROUP = 2,
	TAKES_WINDOW = 4,
	TAKES_PAGE = 8,
	TAKES_MIN = 16,
	TAKES_MONTH = 32,
	TAKES_DAYS = 64,
	TAKES_EVENT = 128,
	TAKES_OFFSET = 256,
	TAKES_SORT = 512,
	TAKES_STEP = 1024,
	TAKES_LIVE = 2048,
	TAKES_INCIDENT = 4096
};

static bool parse_number(const char *text, int64_t *out)
{
	char *end;
	*out = strtoll(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *out < INT64_C(253402300800000);
}

static bool parse_moment(const char *text, int64_t now_ms, int64_t *out)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%d", &tm);
	int64_t ago;
	if (end && *end == 'T')
		end = strptime(end + 1, "%H:%M:%S", &tm);
	if (end && (!*end || (*end == 'Z' && !end[1]))) {
		*out = (int64_t)timegm(&tm) * 1000;
		return *out >= 0;
	}
	if (parse_number(text, out))
		return true;
	if (hw_conf_duration_parse(text, &ago) != 0 || ago > now_ms)
		return false;
	*out = now_ms - ago;
	return true;
}

static const char *take_text(char *to, size_t cap, const struct hw_param *p)
{
	if (p->value_len == 0 || p->value_len >= cap)
		return "an id or group has 1 to 255 bytes";
	memcpy(to, p->value, p->value_len + 1);
	return NULL;
}

static const char *take_month(struct hw_report_asked *a, const char *text, int64_t now_ms)
{
	int month = hw_month_parse(text);
	if (month < 0)
		return "'month' must have the form 2026-11";
	a->since_ms = hw_month_begin(month);
	a->until_ms = hw_month_begin(hw_month_next(month));
	a->month = true;
	return a->since_ms < now_ms ? NULL : "'month' is in the future";
}

/* Parses "MS.DEV", the format of `next`. */
static const char *take_offset(struct hw_report_asked *a, const char *text)
{
	char more;
	if (sscanf(text, "%" SCNd64 ".%" SCNd64 "%c", &a->after, &a->after_dev, &more) == 2)
		return NULL;
	a->after_dev = INT64_MAX;
	return parse_number(text, &a->after) ? NULL : "'after' must be the 'next' of an earlier page";
}

static const char *take_event(struct hw_report_asked *a, const struct hw_param *p)
{
	struct hw_stream_id at;
	if (hw_stream_id_parse(p->value, p->value_len, &at) != 0)
		return "'after' must be the id of an event";
	a->after = hw_entry_number(at);
	return NULL;
}

static const char *take_count(unsigned *to, const char *text, unsigned most, const char *why)
{
	int64_t n;
	if (!parse_number(text, &n) || n > most)
		return why;
	*to = (unsigned)n;
	return NULL;
}

static const char *take_sort(struct hw_report_asked *a, const char *text)
{
	a->by_outages = strcmp(text, "outages") == 0;
	return a->by_outages || strcmp(text, "down") == 0 ? NULL : "'sort' must be down or outages";
}

static const char *take_step(struct hw_report_asked *a, const char *text)
{
	return hw_conf_duration_parse(text, &a->step_ms) == 0 && a->step_ms >= 1000
	               ? NULL
	               : "'step' must be a duration of 1s or more";
}

static const char *take_live(struct hw_report_asked *a, const char *text)
{
	a->live = strcmp(text, "1") == 0;
	return a->live || strcmp(text, "0") == 0 ? NULL : "'live' must be 0 or 1";
}

static const char *take_param(struct hw_report_asked *a, int takes, const struct hw_param *p, int64_t now_ms)
{
	unsigned days;
	const char *wrong;
	if (takes & TAKES_DEVICE && strcmp(p->key, "device") == 0)
		return take_text(a->device, sizeof(a->device), p);
	if (takes & TAKES_GROUP && strcmp(p->key, "group") == 0)
		return take_text(a->group, sizeof(a->group), p);
	if (takes & TAKES_WINDOW && strcmp(p->key, "since") == 0)
		return (a->since_given = parse_moment(p->value, now_ms, &a->since_ms))
		               ? NULL
		               : "'since' must be a time: 2026-11-01, 30d or Unix ms";
	if (takes & TAKES_WINDOW && strcmp(p->key, "until") == 0)
		return (a->until_given = parse_moment(p->value, now_ms, &a->until_ms))
		               ? NULL
		               : "'until' must be a time: 2026-11-01, 30d or Unix ms";
	if (takes & TAKES_MONTH && strcmp(p->key, "month") == 0)
		return take_month(a, p->value, now_ms);
	if (takes & TAKES_PAGE && strcmp(p->key, "limit") == 0)
		return hw_query_limit(p->value, p->value_len, &a->limit);
	if (takes & TAKES_OFFSET && strcmp(p->key, "offset") == 0)
		return take_count(&a->offset, p->value, 1000000000, "'offset' is not a number");
	if (takes & TAKES_EVENT && strcmp(p->key, "after") == 0)
		return take_event(a, p);
	if (takes & TAKES_INCIDENT && strcmp(p->key, "after") == 0)
		return p->value_len < sizeof(a->incident) ? (memcpy(a->incident, p->value, p->value_len + 1), NULL)
		                                          : "'after' must be the 'next' of an earlier page";
	if (takes & TAKES_PAGE && !(takes & TAKES_OFFSET) && strcmp(p->key, "after") == 0)
		return take_offset(a, p->value);
	if (takes & TAKES_MIN && strcmp(p->key, "min") == 0)
		return hw_conf_duration_parse(p->value, &a->min_ms) == 0 ? NULL : "'min' must be a duration such as 5m";
	if (takes & TAKES_DAYS && strcmp(p->key, "days") == 0) {
		wrong = take_count(&days, p->value, 3660, "'days' must be a number from 1 to 3660");
		if (!wrong && days > 0)
			a->since_ms = now_ms - days * DAY_MS;
		return wrong ? wrong : days > 0 ? NULL : "'days' must be a number from 1 to 3660";
	}
	if (takes & TAKES_SORT && strcmp(p->key, "sort") == 0)
		return take_sort(a, p->value);
	if (takes & TAKES_STEP && strcmp(p->key, "step") == 0)
		return take_step(a, p->value);
	if (takes & TAKES_LIVE && strcmp(p->key, "live") == 0)
		return take_live(a, p->value);
	return "unknown parameter";
}

/* Fills *a from the query and from the path, which may name a device. On an error, answers 400 and returns false. */
static bool read_query(struct evhttp_request *req, const char *rest, int takes, struct hw_report_asked *a)
{
	int64_t now_ms = hw_clock_now().wall_ms;
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req)), *wrong = NULL;
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
	struct hw_param p;
	char why[160];
	int rc = 0;
	*a = (struct hw_report_asked){
		.until_ms = now_ms, .after = INT64_MAX, .after_dev = INT64_MAX, .limit = HW_LIMIT_DEFAULT};
	a->csv = accept && strstr(accept, "text/csv");
	if (*rest && hw_percent_decode(rest, strlen(rest), false, a->device, sizeof(a->device)) <= 0)
		wrong = "the path names no device";
	while (!wrong && query && (rc = hw_query_next(&query, &p)) == 1) {
		wrong = take_param(a, takes, &p, now_ms);
		if (wrong && strchr(wrong, '\'') == NULL) {
			snprintf(why, sizeof(why), "'%.32s': %s", p.key, wrong);
			wrong = why;
		}
	}
	if (!wrong && rc < 0)
		wrong = "the query is malformed";
	if (a->until_ms > now_ms)
		a->until_ms = now_ms;
	if (!wrong && a->since_ms > a->until_ms)
		wrong = "'since' is later than 'until'";
	if (wrong)
		hw_reply_error(req, HTTP_BADREQUEST, wrong);
	return !wrong;
}

static void pass_on(void *arg, struct evhttp_request *req, hw_query_fn *question, const struct hw_report_asked *a)
{
	struct hw_history_api *api = arg;
	hw_query_worker_ask(api->query_worker, req, question, a, sizeof(*a));
}

void hw_serve_transitions_of(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_report_asked a;
	if (read_query(req, rest, TAKES_WINDOW | TAKES_PAGE, &a))
		pass_on(arg, req, hw_report_transitions, &a);
}

void hw_serve_outages(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_report_asked a;
	if (read_query(req, rest, TAKES_DEVICE | TAKES_GROUP | TAKES_WINDOW | TAKES_PAGE | TAKES_MIN, &a))
		pass_on(arg, req, hw_report_outages, &a);
}

void hw_serve_old_incidents(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_report_asked a;
	if (read_query(req, rest, TAKES_DEVICE | TAKES_GROUP | TAKES_WINDOW | TAKES_PAGE | TAKES_INCIDENT, &a))
		pass_on(arg, req, hw_report_incidents, &a);
}

void hw_serve_uptime(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_report_asked a;
	if (!read_query(req, rest,
	                TAKES_DEVICE | TAKES_GROUP | TAKES_WINDOW | TAKES_MONTH | TAKES_PAGE | TAKES_OFFSET |
	                        TAKES_SORT,
	                &a))
		return;
	if (!a.month && !a.since_given) { /* default: the current month */
		a.since_ms = hw_month_begin(hw_month_of(a.until_ms));
		a.month = !a.until_given;
	}
	pass_on(arg, req, hw_report_uptime, &a);
}

void hw_serve_bars(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_report_asked a;
	if (!read_query(req, rest, TAKES_DEVICE | TAKES_WINDOW | TAKES_STEP | TAKES_LIVE, &a))
		return;
	if (a.step_ms == 0)
		a.step_ms = DAY_MS;
	if (!*a.device || a.since_ms == 0) {
		hw_reply_error(req, HTTP_BADREQUEST, "bars need 'device' and 'since'");
		return;
	}
	if ((a.until_ms - a.since_ms) / a.step_ms >= HW_LIMIT_MAX) {
		hw_reply_error(req, HTTP_BADREQUEST, "too many bars: use a longer 'step'");
		return;
	}
	pass_on(arg, req, hw_report_bars, &a);
}

void hw_serve_counts(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_report_asked a;
	if (!read_query(req, rest, TAKES_WINDOW | TAKES_STEP, &a))
		return;
	if (a.step_ms == 0)
		a.step_ms = MINUTE_MS;
	if (!a.since_given) {
		hw_reply_error(req, HTTP_BADREQUEST, "counts need 'since'");
		return;
	}
	if ((a.until_ms - a.since_ms) / a.step_ms >= HW_LIMIT_MAX) {
		hw_reply_error(req, HTTP_BADREQUEST, "too many counts: use a longer 'step'");
		return;
	}
	pass_on(arg, req, hw_report_counts, &a);
}

void hw_serve_badge(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_report_asked a;
	if (!read_query(req, rest, TAKES_DAYS, &a))
		return;
	size_t len = strlen(a.device);
	if (len <= 4 || strcmp(a.device + len - 4, ".svg") != 0) {
		hw_reply_error(req, HTTP_NOTFOUND, "the path of a badge is ID.svg");
		return;
	}
	a.device[len - 4] = '\0';
	if (a.since_ms == 0)
		a.since_ms = a.until_ms - 30 * DAY_MS;
	pass_on(arg, req, hw_report_badge, &a);
}

void hw_serve_old_events(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_report_asked a;
	if (!read_query(req, rest, TAKES_EVENT | TAKES_PAGE, &a))
		return;
	if (a.after == INT64_MAX)
		a.after = 0;
	pass_on(arg, req, hw_report_events, &a);
}
