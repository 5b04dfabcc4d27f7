/* SPDX-License-Identifier: MIT */
/* See reply.h. */
#include "http/reply.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>

#include "http/json.h"

static void set_header(struct evkeyvalq *headers, const char *name, const char *value)
{
	while (evhttp_remove_header(headers, name) == 0)
		;
	evhttp_add_header(headers, name, value);
}

void hw_reply_policy(struct evhttp_request *req, const char *policy)
{
	set_header(evhttp_request_get_output_headers(req), "Content-Security-Policy", policy);
}

void hw_reply_guard(struct evhttp_request *req)
{
	set_header(evhttp_request_get_output_headers(req), "X-Content-Type-Options", "nosniff");
	hw_reply_policy(req, HW_REPLY_POLICY);
}

bool hw_is_head(struct evhttp_request *req)
{
	return evhttp_request_get_command(req) == EVHTTP_REQ_HEAD;
}

void hw_reply_as(struct evhttp_request *req, int code, const char *content_type, struct evbuffer *body)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	char length[24];
	evhttp_add_header(headers, "Cache-Control", "no-store");
	if (body) {
		/* evhttp's answer to CONNECT has no length, but evhttp keeps the connection open. So the length is
		 * added here. */
		snprintf(length, sizeof(length), "%zu", evbuffer_get_length(body));
		evhttp_add_header(headers, "Content-Length", length);
		evhttp_add_header(headers, "Content-Type", content_type);
	}
	evhttp_send_reply(req, code, NULL, hw_is_head(req) ? NULL : body);
	if (body)
		evbuffer_free(body);
}

void hw_reply(struct evhttp_request *req, int code, struct evbuffer *body)
{
	hw_reply_as(req, code, "application/json", body);
}

void hw_reply_ok(struct evhttp_request *req)
{
	struct evbuffer *body = evbuffer_new();
	if (body)
		evbuffer_add(body, "ok\n", 3);
	hw_reply_as(req, HTTP_OK, "text/plain", body);
}

void hw_serve_alive(void *arg, struct evhttp_request *req, const char *rest)
{
	(void)arg, (void)rest;
	hw_reply_ok(req);
}

void hw_reply_error(struct evhttp_request *req, int code, const char *why)
{
	struct hw_json j;
	struct evbuffer *body = evbuffer_new();
	if (body) {
		hw_json_begin(&j, body);
		hw_json_open(&j, '{');
		hw_json_text(&j, "error", why);
		hw_json_close(&j, '}');
		hw_json_end(&j);
		evbuffer_add(body, "\n", 1);
	}
	hw_reply(req, code, body);
}

struct evbuffer *hw_answer_begin(struct evhttp_request *req, struct hw_json *j)
{
	struct evbuffer *body = evbuffer_new();
	if (!body) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return NULL;
	}
	hw_json_begin(j, body);
	hw_json_open(j, '{');
	return body;
}

void hw_answer_end(struct evhttp_request *req, struct hw_json *j, struct evbuffer *body)
{
	hw_answer_end_as(req, HTTP_OK, j, body);
}

void hw_answer_end_as(struct evhttp_request *req, int code, struct hw_json *j, struct evbuffer *body)
{
	hw_json_close(j, '}');
	if (hw_json_end(j) < 0 || evbuffer_add(body, "\n", 1) < 0) {
		evbuffer_free(body);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	hw_reply(req, code, body);
}
