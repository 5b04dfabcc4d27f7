/* SPDX-License-Identifier: MIT */
/* Notifications: those that were sent, with time and result, and tests on request. */
#include <event2/buffer.h>
#include <event2/http.h>
#include <string.h>

#include "control/parts.h"
#include "http/json.h"
#include "http/query.h"

void hw_serve_notify(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	(void)rest;
	if (!body)
		return;
	c->ops->notify(c->arg, &j);
	hw_answer_end(req, &j, body);
}

/* Sets *out to the value of `channel`; "" if it is not given. Returns NULL, or what is wrong. */
static const char *read_channel(const char *query, struct hw_param *out)
{
	struct hw_param p;
	int rc;
	*out = (struct hw_param){.value = ""};
	for (query = query ? query : ""; (rc = hw_query_next(&query, &p)) != 0; *out = p) {
		if (rc < 0)
			return "the query is malformed";
		if (strcmp(p.key, "channel") != 0)
			return "unknown key in the query: the only key is channel";
	}
	return NULL;
}

void hw_serve_notify_test(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct hw_param channel;
	struct hw_json j;
	const char *why = read_channel(evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req)), &channel);
	(void)rest;
	if (why) {
		hw_reply_error(req, HTTP_BADREQUEST, why);
		return;
	}
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	int code = c->ops->notify_test(c->arg, channel.value, &j);
	if (code == HTTP_OK) {
		hw_answer_end(req, &j, body);
		return;
	}
	evbuffer_free(body);
	hw_reply_error(req, code,
	               *channel.value ? "no such channel: the channels are exec and webhook, if [notify] sets them"
	                              : "no channel is set up: set exec or webhook in [notify]");
}
