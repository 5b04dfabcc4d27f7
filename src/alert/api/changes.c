/* SPDX-License-Identifier: MIT */
/* The API: acknowledgements and silences. A change is answered when Redis has it. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <string.h>

#include "alert/api/api_parts.h"
#include "alert/follow/fields.h"
#include "heartwheel/print.h"
#include "http/access.h"
#include "http/query.h"
#include "incident/match.h"

/* Returns the user that the forwarding daemon has admitted; "" for a request on the socket itself. */
static const char *user_of(struct evhttp_request *req)
{
	const char *user = evhttp_find_header(evhttp_request_get_input_headers(req), HW_USER_HEADER);
	return user ? user : "";
}

/* Writes the author of a change into `by`: the admitted user, or, if there is none, the name in the body. */
static void name_author(struct evhttp_request *req, char *by, size_t cap)
{
	const char *user = user_of(req);
	if (*user)
		hw_print(by, cap, "%s", user);
}

static void acknowledge(struct hw_alert_app *a, struct evhttp_request *req, const char *id, bool on)
{
	char by[256] = "", note[HW_INCIDENT_TEXT] = "";
	const struct hw_alert_field fields[] = {{"by", by, sizeof(by), NULL, NULL},
	                                        {"note", note, sizeof(note), NULL, NULL}};
	if (!hw_alert_api_works(a, req) || !hw_alert_api_read(req, fields, on ? 2 : 1))
		return;
	name_author(req, by, sizeof(by));
	int rc = hw_incidents_acknowledge(a->engine, hw_alert_now(a), id, on, by, note);
	if (rc == -ENOENT)
		hw_alert_api_not_open(a, req, id);
	else if (rc == -EEXIST)
		hw_reply_error(req, 409, HW_ALERT_CLOSED);
	else if (rc)
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
	else
		hw_alert_api_wait(a, req, HTTP_NOCONTENT, "");
}

void hw_serve_ack(void *arg, struct evhttp_request *req, const char *rest)
{
	acknowledge(arg, req, rest, true);
}

void hw_serve_unack(void *arg, struct evhttp_request *req, const char *rest)
{
	acknowledge(arg, req, rest, false);
}

/* --- silences ----------------------------------------------------------------------------------------------------- */

static bool write_silence(void *arg, const struct hw_silence_view *v, const struct hw_silence_state *s)
{
	struct hw_json *j = arg;
	hw_json_open(j, '{');
	hw_json_text(j, "id", s->name ? s->name : v->id);
	hw_json_bool(j, "file", s->name != NULL);
	hw_json_bool(j, "in_force", s->in_force);
	hw_json_text(j, "match", v->match ? v->match : "");
	if (v->until_ms)
		hw_json_int(j, "until_ms", v->until_ms);
	hw_json_bool(j, "until_online", v->until_online);
	hw_json_bool(j, "planned", s->name || v->planned);
	hw_json_text(j, "reason", v->reason ? v->reason : "");
	hw_json_text(j, "by", v->by ? v->by : "");
	if (v->at_ms)
		hw_json_int(j, "at_ms", v->at_ms);
	hw_json_close(j, '}');
	return true;
}

void hw_serve_silences(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	struct hw_json j;
	(void)rest;
	if (!hw_alert_api_works(a, req))
		return;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	hw_json_open_member(&j, "silences", '[');
	hw_incidents_silences(a->engine, write_silence, &j);
	hw_json_close(&j, ']');
	hw_answer_end(req, &j, body);
}

static bool is_matcher(const char *text)
{
	struct hw_match *m = NULL;
	bool is = *text && hw_match_parse(text, &m) == 0;
	hw_match_free(m);
	return is;
}

void hw_serve_silence_post(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	char match[HW_INCIDENT_TEXT] = "", reason[HW_INCIDENT_TEXT] = "", by[256] = "";
	int64_t until_ms = 0;
	bool until_online = false, planned = false;
	const struct hw_alert_field fields[] = {{"match", match, sizeof(match), NULL, NULL},
	                                        {"reason", reason, sizeof(reason), NULL, NULL},
	                                        {"by", by, sizeof(by), NULL, NULL},
	                                        {"until", NULL, 0, NULL, &until_ms},
	                                        {"until_online", NULL, 0, &until_online, NULL},
	                                        {"planned", NULL, 0, &planned, NULL}};
	(void)rest;
	if (!hw_alert_api_works(a, req) || !hw_alert_api_read(req, fields, sizeof(fields) / sizeof(*fields)))
		return;
	name_author(req, by, sizeof(by));
	struct hw_silence_view v = {.match = match,
	                            .reason = reason,
	                            .by = by,
	                            .until_ms = until_ms,
	                            .until_online = until_online,
	                            .planned = planned};
	int rc = until_ms && until_ms <= hw_alert_now(a).wall_ms ? -EINVAL
	                                                         : hw_incidents_silence(a->engine, hw_alert_now(a), &v);
	if (rc == -EINVAL && !is_matcher(match))
		hw_reply_error(req, HTTP_BADREQUEST,
		               "`match` is not a matcher: give terms group:GLOB, id:GLOB or label:NAME=GLOB, such as "
		               "group:pumps");
	else if (rc == -EINVAL)
		hw_reply_error(req, HTTP_BADREQUEST,
		               "give `until` (ms, in the future, within a year), or `until_online`");
	else if (rc == -ENOSPC)
		hw_reply_error(req, 409, "there are 1000 silences, which is the limit: end some");
	else if (rc)
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
	else
		hw_alert_api_wait(a, req, 201, v.id);
}

static bool is_of_the_file(const struct hw_alert_app *a, const char *name)
{
	for (size_t k = 0; k < a->conf->n_silences; k++)
		if (strcmp(a->conf->silences[k].name, name) == 0)
			return true;
	return false;
}

void hw_serve_silence_delete(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_alert_app *a = arg;
	char name[HW_CONF_NAME_MAX + 1];
	if (!hw_alert_api_works(a, req))
		return;
	if (hw_percent_decode(rest, strlen(rest), false, name, sizeof(name)) < 0)
		hw_reply_error(req, HTTP_NOTFOUND, "there is no such silence");
	else if (is_of_the_file(a, name))
		hw_reply_error(req, 409, "this silence is a section of monitor.conf: remove it there");
	else if (hw_incidents_unsilence(a->engine, hw_alert_now(a), name) != 0)
		hw_reply_error(req, HTTP_NOTFOUND, "there is no such silence");
	else
		hw_alert_api_wait(a, req, HTTP_NOCONTENT, "");
}
