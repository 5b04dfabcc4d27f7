/* SPDX-License-Identifier: MIT */
/* See router.h. Cost: a comparison per row of the table. */
#include "http/router.h"

#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/topic.h"
#include "http/reply.h"

#define REST_MAX (3 * HW_ID_MAX + 4) /* room for an id and one more byte, all percent-encoded; a longer text is cut */

bool hw_http_is_open(const struct hw_http_table *t, const char *path)
{
	for (const char *const *open = t->open; open && *open; open++) {
		size_t len = strlen(*open);
		bool level = len > 1 && (*open)[len - 1] == '/';
		if (level ? strncmp(path, *open, len) == 0 && !strchr(path + len, '/') : strcmp(path, *open) == 0)
			return true;
	}
	return false;
}

/* Whether the path matches the route. `rest` receives the open level, still encoded. */
static bool match(const struct hw_http_route *r, const char *path, char rest[REST_MAX])
{
	size_t len = strlen(r->path);
	*rest = '\0';
	if (strncmp(path, r->path, len) != 0)
		return false;
	if (!r->tail)
		return path[len] == '\0' || path[len] == '/';
	if (r->path[len - 1] != '/' || len == 1)
		return path[len] == '\0';
	size_t level = strcspn(path + len, "/");
	if (strcmp(path + len + level, r->tail) != 0)
		return false;
	snprintf(rest, REST_MAX, "%.*s", (int)level, path + len);
	return true;
}

/* Value for the header Allow. */
static const char *method_name(enum evhttp_cmd_type method)
{
	switch (method) {
	case EVHTTP_REQ_GET:
		return "GET, HEAD";
	case EVHTTP_REQ_POST:
		return "POST";
	case EVHTTP_REQ_PUT:
		return "PUT";
	case EVHTTP_REQ_PATCH:
		return "PATCH";
	default:
		return "DELETE";
	}
}

/* `allow`: the path's methods; NULL: no such path. */
static void refuse_method(struct evhttp_request *req, const char *allow, bool read_only)
{
	if (!allow) {
		hw_reply_error(req, HTTP_NOTFOUND, "no such path");
		return;
	}
	evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", allow);
	hw_reply_error(req, HTTP_BADMETHOD,
	               read_only ? "this address is read-only: use the control socket"
	                         : "this path does not support that method");
}

void hw_http_route(const struct hw_http_table *t, hw_http_admits *admits, bool read_only, struct evhttp_request *req,
                   void *arg)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	enum evhttp_cmd_type wanted = method == EVHTTP_REQ_HEAD ? EVHTTP_REQ_GET : method;
	char allow[64] = "", rest[REST_MAX];
	bool found = false, kept_back = false;
	for (const struct hw_http_route *r = t->routes; r < t->routes + t->n; r++) {
		if (!match(r, path, rest))
			continue;
		found = true;
		if (read_only && r->method != EVHTTP_REQ_GET) {
			kept_back |= r->method == wanted;
			continue;
		}
		if (r->method == wanted) {
			if (!admits || admits(arg, req, r))
				r->serve(arg, req, rest);
			return;
		}
		if (*allow)
			strncat(allow, ", ", sizeof(allow) - strlen(allow) - 1);
		strncat(allow, method_name(r->method), sizeof(allow) - strlen(allow) - 1);
	}
	refuse_method(req, found ? allow : NULL, kept_back);
}
