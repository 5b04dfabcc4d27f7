/* SPDX-License-Identifier: MIT */
/* Serves the dashboard's files. The page may load and run only these files. */
#include "control/web.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <string.h>

#include "control/parts.h"

static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct hw_web_file *find(const char *name)
{
	for (size_t i = 0; i < hw_web_n_files; i++)
		if (strcmp(hw_web_files[i].name, name) == 0)
			return &hw_web_files[i];
	return NULL;
}

void hw_serve_web(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	const struct hw_web_file *f = find(*rest ? rest : "index.html");
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	const char *has = evhttp_find_header(evhttp_request_get_input_headers(req), "If-None-Match");
	struct evbuffer *body = f ? evbuffer_new() : NULL;
	(void)c;
	if (!f) {
		hw_reply_error(req, HTTP_NOTFOUND, "no such file");
		return;
	}
	if (!body || evbuffer_add_reference(body, f->bytes, f->len, NULL, NULL) < 0) {
		if (body)
			evbuffer_free(body);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	evhttp_add_header(headers, "ETag", f->etag);
	evhttp_add_header(headers, "Cache-Control", "no-cache"); /* browsers revalidate each time */
	hw_reply_policy(req, policy);
	evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
	if (has && strcmp(has, f->etag) == 0) {
		evbuffer_free(body);
		evhttp_send_reply(req, HTTP_NOTMODIFIED, NULL, NULL);
		return;
	}
	char length[24];
	snprintf(length, sizeof(length), "%zu", f->len);
	evhttp_add_header(headers, "Content-Length", length);
	evhttp_add_header(headers, "Content-Type", f->type);
	evhttp_send_reply(req, HTTP_OK, NULL, hw_is_head(req) ? NULL : body);
	evbuffer_free(body);
}
