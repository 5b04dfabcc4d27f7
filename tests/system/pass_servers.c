/* SPDX-License-Identifier: MIT */
/* See pass_servers.h. */
#include "pass_servers.h"

#include <check.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http/json.h"
#include "http/proxy.h"
#include "http/reply.h"
#include "http/server.h"

char pass_front_path[128], pass_answerer_path[128];
pid_t pass_front_pid, pass_answerer_pid;
static char dir[64];

/* --- the answerer */

static void serve_echo(void *arg, struct evhttp_request *req, const char *rest)
{
	struct evbuffer *body = evbuffer_new();
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
	const char *type = evhttp_find_header(evhttp_request_get_input_headers(req), "Content-Type");
	(void)arg, (void)rest;
	evbuffer_add_printf(body, "%d %s accept=%s type=%s body=", (int)evhttp_request_get_command(req),
	                    evhttp_request_get_uri(req), accept ? accept : "", type ? type : "");
	evbuffer_add_buffer(body, evhttp_request_get_input_buffer(req));
	evhttp_add_header(evhttp_request_get_output_headers(req), "ETag", "\"abc\"");
	evhttp_add_header(evhttp_request_get_output_headers(req), "X-Inner", "secret");
	hw_reply_as(req, 201, "text/plain", body);
}

static void serve_asked(void *arg, struct evhttp_request *req, const char *rest)
{
	struct evkeyvalq *asked = evhttp_request_get_input_headers(req);
	const char *tag = evhttp_find_header(asked, "If-None-Match"),
		   *last = evhttp_find_header(asked, "Last-Event-ID");
	const char *cookie = evhttp_find_header(asked, "Cookie");
	struct evbuffer *body = evbuffer_new();
	(void)arg, (void)rest;
	evbuffer_add_printf(body, "%s %s %s", tag ? tag : "-", last ? last : "-", cookie ? cookie : "-");
	hw_reply_as(req, 200, "text/plain", body);
}

static void serve_big(void *arg, struct evhttp_request *req, const char *rest)
{
	static char piece[65536];
	struct evbuffer *body = evbuffer_new();
	(void)arg, (void)rest;
	memset(piece, 'b', sizeof(piece));
	for (size_t n = 0; n < PASS_BIG; n += sizeof(piece))
		evbuffer_add_reference(body, piece, sizeof(piece), NULL, NULL);
	hw_reply_as(req, 200, "text/plain", body);
}

static void serve_nothing(void *arg, struct evhttp_request *req, const char *rest)
{
	(void)arg, (void)req, (void)rest; /* never */
}

/* evhttp frees a request that still has its connection. A request that evhttp has detached from its connection is
 * freed here. */
static void on_stream_gone(struct evhttp_connection *conn, void *req)
{
	(void)conn;
	if (!evhttp_request_get_connection(req))
		evhttp_request_free(req);
}

static void serve_stream(void *arg, struct evhttp_request *req, const char *rest)
{
	struct evbuffer *body = evbuffer_new();
	(void)arg, (void)rest;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_stream_gone, req);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "text/event-stream");
	evhttp_send_reply_start(req, 200, NULL);
	evbuffer_add_printf(body, "data: 1\n\n");
	evhttp_send_reply_chunk(req, body);
	evbuffer_free(body);
}

/* Past evhttp, at once. */
static void write_raw(struct evhttp_request *req, const char *text)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	if (write(bufferevent_getfd(bev), text, strlen(text)) != (ssize_t)strlen(text))
		_exit(8);
}

static void serve_broken(void *arg, struct evhttp_request *req, const char *rest)
{
	(void)arg, (void)rest;
	write_raw(req, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\nthe beginning\r\n");
	_exit(0);
}

static void serve_interim(void *arg, struct evhttp_request *req, const char *rest)
{
	(void)arg, (void)rest;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_stream_gone, req);
	write_raw(req, "HTTP/1.1 100 Continue\r\nETag: \"old\"\r\n\r\n"
	               "HTTP/1.1 200 OK\r\nETag: \"new\"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
}

static const struct hw_http_route answerer_routes[] = {
	{EVHTTP_REQ_GET, "/v1/echo", NULL, serve_echo},     {EVHTTP_REQ_POST, "/v1/echo", NULL, serve_echo},
	{EVHTTP_REQ_DELETE, "/v1/echo", NULL, serve_echo},  {EVHTTP_REQ_GET, "/v1/big", "", serve_big},
	{EVHTTP_REQ_GET, "/v1/asked", "", serve_asked},     {EVHTTP_REQ_GET, "/v1/nothing", "", serve_nothing},
	{EVHTTP_REQ_GET, "/v1/stream", "", serve_stream},   {EVHTTP_REQ_GET, "/v1/broken", "", serve_broken},
	{EVHTTP_REQ_GET, "/v1/interim", "", serve_interim}, {EVHTTP_REQ_POST, "/v1/nothing", "", serve_nothing},
};
const struct hw_http_table pass_answerer = {answerer_routes, sizeof(answerer_routes) / sizeof(*answerer_routes), NULL};

/* --- the front */

static void serve_pass(void *arg, struct evhttp_request *req, const char *rest)
{
	(void)rest;
	hw_proxy_forward(arg, req);
}

static long rss_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		pages = -1;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void serve_stats(void *arg, struct evhttp_request *req, const char *rest)
{
	const struct hw_proxy_stats *s = hw_proxy_stats(arg);
	struct evbuffer *body = evbuffer_new();
	(void)rest;
	evbuffer_add_printf(body, "%u %llu %llu %llu %ld", s->now, (unsigned long long)s->passed,
	                    (unsigned long long)s->failed, (unsigned long long)s->refused, rss_kib());
	hw_reply_as(req, 200, "text/plain", body);
}

static const struct hw_http_route front_routes[] = {
	{EVHTTP_REQ_GET, "/v1", NULL, serve_pass},
	{EVHTTP_REQ_POST, "/v1", NULL, serve_pass},
	{EVHTTP_REQ_DELETE, "/v1", NULL, serve_pass},
	{EVHTTP_REQ_GET, "/stats", "", serve_stats},
};
static const struct hw_http_table front_table = {front_routes, sizeof(front_routes) / sizeof(*front_routes), NULL};

/* --- the processes */

static void on_term(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	event_base_loopbreak(arg);
}

/* A server that leaks, or frees twice, exits with another status than 0 under sanitizers and valgrind. */
static _Noreturn void run_server(const char *path, const struct hw_http_table *table, bool passes)
{
	struct event_base *base = event_base_new();
	struct hw_proxy *p = passes ? hw_proxy_new(base, "the answerer", pass_answerer_path, PASS_PATIENCE_MS) : NULL;
	struct event *term = evsignal_new(base, SIGTERM, on_term, base);
	struct hw_http h;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	event_add(term, NULL);
	hw_http_init(&h, base, table, p);
	if (hw_http_listen(&h, path, "") < 0)
		_exit(9);
	event_base_dispatch(base);
	hw_http_fini(&h);
	hw_proxy_free(p);
	event_free(term);
	event_base_free(base);
	exit(0);
}

int pass_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool answers(const char *path)
{
	int fd = pass_connect(path);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

pid_t pass_start(const char *path, const struct hw_http_table *table, bool passes)
{
	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		run_server(path, table, passes);
	for (int i = 0; !answers(path); i++) {
		ck_assert_int_lt(i, 20000);
		poll(NULL, 0, 1);
	}
	return pid;
}

void pass_stop(pid_t *pid)
{
	int status = 0;
	if (*pid <= 0)
		return;
	kill(*pid, SIGTERM);
	waitpid(*pid, &status, 0);
	*pid = 0;
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

void pass_setup(void)
{
	strcpy(dir, "/tmp/hw-pass.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(pass_front_path, sizeof(pass_front_path), "%s/front", dir);
	snprintf(pass_answerer_path, sizeof(pass_answerer_path), "%s/answerer", dir);
	pass_answerer_pid = pass_start(pass_answerer_path, &pass_answerer, false);
	pass_front_pid = pass_start(pass_front_path, &front_table, true);
}

void pass_teardown(void)
{
	char command[128];
	pass_stop(&pass_front_pid);
	pass_stop(&pass_answerer_pid);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}
