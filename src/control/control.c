/* SPDX-License-Identifier: MIT */
/*
 * The control API's server: listener, limits, routes, replies.
 *
 * Invariant: every request that evhttp hands over is answered exactly once. What bounds a client: the size of its
 * headers and body, what is read ahead of an answer, and 30 s without a byte; one answer is at most a page of 1000
 * devices.
 */
#include "control/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/json.h"
#include "control/server.h"

#define HEADERS_MAX (16 * 1024)
#define BODY_MAX    (64 * 1024)
/* evhttp wants a whole body in its input; beyond that it reads requests that have not been asked for yet. */
#define READ_AHEAD_MAX (BODY_MAX + 2 * HEADERS_MAX)
#define TIMEOUT_S      30
#define REST_MAX       (3 * HW_ID_MAX + 4) /* an id, with every byte encoded, and one more: what is longer is cut */

static void serve_reload(struct hw_control *c, struct evhttp_request *req, const char *rest);

/* A path that ends in '/' takes one more level, then `tail`; any other only itself. */
static const struct route {
	enum evhttp_cmd_type method;
	const char *method_name;
	const char *path, *tail;
	hw_handler *serve;
} routes[] = {
	{EVHTTP_REQ_GET, "GET", "/v1/status", "", hw_serve_status},
	{EVHTTP_REQ_GET, "GET", "/v1/groups", "", hw_serve_groups},
	{EVHTTP_REQ_GET, "GET", "/v1/devices", "", hw_serve_list},
	{EVHTTP_REQ_GET, "GET", "/v1/devices/", "/events", hw_serve_device_events},
	{EVHTTP_REQ_GET, "GET", "/v1/devices/", "", hw_serve_device},
	{EVHTTP_REQ_DELETE, "DELETE", "/v1/devices/", "", hw_serve_forget},
	{EVHTTP_REQ_GET, "GET", "/v1/events", "", hw_serve_events},
	{EVHTTP_REQ_GET, "GET", "/v1/transitions", "", hw_serve_transitions},
	{EVHTTP_REQ_GET, "GET", "/v1/samples", "", hw_serve_samples},
	{EVHTTP_REQ_GET, "GET", "/v1/wheel", "", hw_serve_wheel},
	{EVHTTP_REQ_POST, "POST", "/v1/reload", "", serve_reload},
	{EVHTTP_REQ_GET, "GET", "/healthz", "", hw_serve_health},
	{EVHTTP_REQ_GET, "GET", "/readyz", "", hw_serve_ready},
	{EVHTTP_REQ_GET, "GET", "/metrics", "", hw_serve_metrics},
	{EVHTTP_REQ_GET, "GET", "/", "", hw_serve_web},
	{EVHTTP_REQ_GET, "GET", "/web/", "", hw_serve_web},
};

/* --- replies */

void hw_reply_as(struct evhttp_request *req, int code, const char *content_type, struct evbuffer *body)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	/* evhttp would send the body of an answer to HEAD, and the client take it for the next answer. */
	bool head = evhttp_request_get_command(req) == EVHTTP_REQ_HEAD;
	char length[24];

	evhttp_add_header(headers, "Cache-Control", "no-store");
	if (body) {
		/* evhttp leaves the length out of an answer to CONNECT, and keeps the connection. */
		snprintf(length, sizeof(length), "%zu", evbuffer_get_length(body));
		evhttp_add_header(headers, "Content-Length", length);
		evhttp_add_header(headers, "Content-Type", content_type);
	}
	evhttp_send_reply(req, code, NULL, head ? NULL : body);
	if (body)
		evbuffer_free(body);
}

void hw_reply(struct evhttp_request *req, int code, struct evbuffer *body)
{
	hw_reply_as(req, code, "application/json", body);
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
	hw_json_close(j, '}');
	if (hw_json_end(j) < 0 || evbuffer_add(body, "\n", 1) < 0) {
		evbuffer_free(body);
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	hw_reply(req, HTTP_OK, body);
}

static void serve_reload(struct hw_control *c, struct evhttp_request *req, const char *rest)
{
	struct evbuffer *body = evbuffer_new();

	(void)rest;
	if (!body) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	int code = c->ops->reload(c->arg, body);
	evbuffer_add(body, "\n", 1);
	hw_reply(req, code, body);
}

/* --- routing */

/* Whether the path is this route's; if so `rest` is what the path has in the place of the level, still encoded. */
static bool match(const struct route *r, const char *path, char rest[REST_MAX])
{
	size_t len = strlen(r->path);

	*rest = '\0';
	if (strncmp(path, r->path, len) != 0)
		return false;
	if (r->path[len - 1] != '/' || len == 1)
		return path[len] == '\0';
	size_t level = strcspn(path + len, "/");
	if (strcmp(path + len + level, r->tail) != 0)
		return false;
	snprintf(rest, REST_MAX, "%.*s", (int)level, path + len);
	return true;
}

/* `allow`: the methods of the path, NULL if there is no such path. */
static void refuse_method(struct evhttp_request *req, const char *allow, bool read_only)
{
	if (!allow) {
		hw_reply_error(req, HTTP_NOTFOUND, "no such path");
		return;
	}
	evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", allow);
	hw_reply_error(req, HTTP_BADMETHOD,
	               read_only ? "this address is for reading alone: ask the control socket"
	                         : "this path does not have that method");
}

static void on_request(struct evhttp_request *req, void *arg)
{
	const struct hw_front *front = arg;
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	char allow[64] = "", rest[REST_MAX];
	bool found = false, read_only = false;

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!match(&routes[i], path, rest))
			continue;
		found = true;
		if (front->read_only && routes[i].method != EVHTTP_REQ_GET) {
			read_only |= routes[i].method == method;
			continue;
		}
		if (routes[i].method == method) {
			routes[i].serve(front->c, req, rest);
			return;
		}
		if (*allow)
			strncat(allow, ", ", sizeof(allow) - strlen(allow) - 1);
		strncat(allow, routes[i].method_name, sizeof(allow) - strlen(allow) - 1);
	}
	refuse_method(req, found ? allow : NULL, read_only);
}

/* --- what evhttp refuses by itself */

static void rewrite(struct evbuffer *out, const char *page)
{
	/* "100 Continue" may stand before it. */
	const char *status = strstr(page, "HTTP/1.1 100 ") == page ? strstr(page + 1, "HTTP/1.") : page;
	int code = 0;

	if (!status || sscanf(status, "HTTP/%*d.%*d %d ", &code) != 1)
		return;
	const char *why = code == HTTP_ENTITYTOOLARGE ? "the body is too large" : "not a request that is understood";
	int line = (int)strcspn(status, "\r");
	evbuffer_unfreeze(out, 1);
	evbuffer_drain(out, strlen(page));
	evbuffer_freeze(out, 1);
	evbuffer_add_printf(out,
	                    "%.*s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n"
	                    "{\"error\":\"%s\"}\n",
	                    line, status, strlen(why) + strlen("{\"error\":\"\"}\n"), why);
}

/* Copies without taking: evbuffer_copyout() will not, once the bufferevent has written and keeps its front frozen. */
static bool peek(struct evbuffer *out, size_t from, size_t n, char *to)
{
	struct evbuffer_iovec v[32];
	struct evbuffer_ptr at;

	if (evbuffer_ptr_set(out, &at, from, EVBUFFER_PTR_SET) < 0)
		return false;
	int pieces = evbuffer_peek(out, (ev_ssize_t)n, &at, v, 32);
	if (pieces < 0 || pieces > 32)
		return false;
	for (int i = 0; i < pieces && n > 0; i++) {
		size_t len = v[i].iov_len < n ? v[i].iov_len : n;
		memcpy(to, v[i].iov_base, len);
		to += len;
		n -= len;
	}
	return n == 0;
}

/*
 * What is not HTTP, or too large, evhttp answers by itself with a page of HTML, and this libevent has no hook for that.
 * All answers pass through the connection's output buffer: such a page is known by its end, with which none of ours
 * ends, and is replaced before a byte of it is written.
 */
static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
	static const char end[] = "</BODY></HTML>\n";
	const size_t end_len = sizeof(end) - 1;
	size_t len = evbuffer_get_length(out);
	char page[1024];

	(void)arg;
	if (info->n_added == 0 || len < end_len || len >= sizeof(page))
		return;
	if (!peek(out, len - end_len, end_len, page) || memcmp(page, end, end_len) != 0 || !peek(out, 0, len, page))
		return;
	page[len] = '\0';
	rewrite(out, page);
}

/* --- the listener */

/*
 * As evhttp would make it, but with a bound: evhttp goes on reading while it writes an answer, and would keep all that
 * a client pours in meanwhile.
 */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);

	(void)arg;
	if (!bev)
		return NULL; /* evhttp tries once more by itself */
	bufferevent_setwatermark(bev, EV_READ, 0, READ_AHEAD_MAX);
	evbuffer_add_cb(bufferevent_get_output(bev), on_output, NULL);
	return bev;
}

/*
 * Somebody connects. Without a descriptor for him the listening socket stays readable and the loop would spin: stop
 * listening for a second. (This runs before the listener's own callback; its error callback is not told whose it is.)
 */
static void on_pending(evutil_socket_t fd, short what, void *arg)
{
	struct hw_front *front = arg;
	struct timeval second = {1, 0};
	int spare = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* as much as accept() takes */

	(void)fd;
	(void)what;
	if (spare >= 0) {
		close(spare);
		return;
	}
	if (event_add(front->again, &second) < 0)
		return;
	evconnlistener_disable(front->listener);
	event_del(front->pending);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	struct hw_front *front = arg;
	struct timeval second = {1, 0};

	(void)fd;
	(void)what;
	if (evconnlistener_enable(front->listener) < 0 || event_add(front->pending, NULL) < 0)
		event_add(front->again, &second);
}

static int start_http(struct hw_front *front)
{
	front->http = evhttp_new(front->c->base);
	if (!front->http)
		return -ENOMEM;
	evhttp_set_max_headers_size(front->http, HEADERS_MAX);
	evhttp_set_max_body_size(front->http, BODY_MAX);
	/* A body that is too large is read and thrown away: a client that is still sending would not see the answer. */
	evhttp_set_flags(front->http, EVHTTP_SERVER_LINGERING_CLOSE);
	evhttp_set_timeout(front->http, TIMEOUT_S);
	evhttp_set_allowed_methods(front->http, 0xffff); /* on_request() refuses, in JSON */
	evhttp_set_bevcb(front->http, on_connection, front);
	evhttp_set_gencb(front->http, on_request, front);
	return 0;
}

/* Serves a listening socket, which it owns in any case. */
static int start_front(struct hw_front *front, int fd)
{
	const unsigned flags = LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE;
	int rc = start_http(front);

	front->listener = rc == 0 ? evconnlistener_new(front->c->base, NULL, NULL, flags, 0, fd) : NULL;
	if (!front->listener) {
		close(fd);
		return -ENOMEM;
	}
	if (!evhttp_bind_listener(front->http, front->listener)) {
		evconnlistener_free(front->listener);
		return -ENOMEM;
	}
	front->pending = event_new(front->c->base, fd, EV_READ | EV_PERSIST, on_pending, front);
	front->again = event_new(front->c->base, -1, 0, on_again, front);
	if (!front->pending || !front->again || event_add(front->pending, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static void stop_front(struct hw_front *front)
{
	/* Before the descriptor that it watches is closed. */
	if (front->pending)
		event_free(front->pending);
	if (front->again)
		event_free(front->again);
	if (front->http)
		evhttp_free(front->http);
	*front = (struct hw_front){.c = front->c};
}

static int make_parts(struct hw_control *c)
{
	c->pager = hw_pager_new(c);
	c->hub = hw_hub_new(c);
	c->history = hw_history_new();
	c->samples = hw_samples_new();
	return c->pager && c->hub && c->history && c->samples ? 0 : -ENOMEM;
}

int hw_control_new(struct hw_control **out, struct event_base *base, const char *path, const char *group,
                   const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg)
{
	struct hw_control *c = calloc(1, sizeof(*c));

	*out = NULL;
	if (!c)
		return -ENOMEM;
	*c = (struct hw_control){.base = base, .monitor = m, .ops = ops, .arg = arg};
	c->local.c = c->remote.c = c;
	c->remote.read_only = true;
	int rc = hw_socket_listen(&c->socket, path, group);
	if (rc == 0)
		rc = make_parts(c);
	if (rc == 0) {
		int fd = c->socket.fd;
		c->socket.fd = -1;
		rc = start_front(&c->local, fd);
	}
	if (rc < 0) {
		hw_control_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

int hw_control_listen(struct hw_control *c, const char *address, bool *local)
{
	int fd = hw_socket_listen_tcp(address, local);
	if (fd < 0)
		return fd;
	int rc = start_front(&c->remote, fd);
	if (rc < 0)
		stop_front(&c->remote);
	return rc;
}

void hw_control_free(struct hw_control *c)
{
	if (!c)
		return;
	stop_front(&c->remote);
	stop_front(&c->local);
	hw_pager_free(c->pager);
	hw_hub_free(c->hub);
	hw_history_free(c->history);
	hw_samples_free(c->samples);
	hw_socket_fini(&c->socket);
	free(c);
}
