/* SPDX-License-Identifier: MIT */
/*
 * See proxy.h. A request is one transfer. The transfer ends when the answer is complete, when either side disconnects,
 * when the other daemon is silent for too long, or when the user has lost the right to the answer
 * (hw_proxy_break_off()). Only end() frees a transfer. libcurl does not allow removing a transfer in its callbacks, so
 * on_header() and on_body() do not call end().
 */
#include "http/proxy.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "http/access.h"
#include "http/multi.h"
#include "http/reply.h"
#include "http/server.h"

struct hw_proxy {
	struct event_base *base; /* borrowed */
	struct hw_multi multi;
	char *name, *socket; /* owned */
	long patience_ms;
	struct hw_proxy_stats stats;
	struct transfer *first; /* open transfers; owned */
};

struct transfer {
	struct hw_proxy *p;
	struct transfer *next, **prev;
	struct evhttp_request *req;
	CURL *easy;
	struct curl_slist *headers;
	struct event *patience;
	bool remote; /* it came by [http] listen */
	bool begun;  /* the head of the answer was sent */
	bool paused; /* the client does not read */
};

static const char *const there[] = {"Accept", "Content-Type", "If-None-Match", "Last-Event-ID", HW_USER_HEADER};
static const char *const back[] = {
	"Content-Type",    "Content-Length",  "Content-Disposition", "ETag",
	"Allow",           "Cache-Control",   "Retry-After",         "Content-Security-Policy",
	"Heartwheel-Next", "Heartwheel-As-Of"};

static void end(struct transfer *t)
{
	if (t->p) {
		hw_multi_remove(&t->p->multi, t->easy);
		t->p->stats.now--;
		*t->prev = t->next;
		if (t->next)
			t->next->prev = t->prev;
	}
	if (t->easy)
		curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	if (t->patience)
		event_free(t->patience);
	free(t);
}

/* --- the client ------------------------------------------------------------------------------------------------- */

/* Called when the client has disconnected or has read nothing for too long, or when the server stops. */
static void on_close(struct evhttp_connection *conn, void *arg)
{
	struct transfer *t = arg;
	struct evhttp_request *req = t->req;
	(void)conn;
	end(t);
	/* evhttp frees a request that still has its connection. A request that evhttp has detached from its
	 * connection is freed here. */
	if (!evhttp_request_get_connection(req))
		evhttp_request_free(req);
}

static struct evhttp_connection *client(const struct transfer *t)
{
	return evhttp_request_get_connection(t->req);
}

/* Leaves the request to evhttp, and ends the transfer. */
static void let_go(struct transfer *t)
{
	if (client(t)) {
		evhttp_connection_set_closecb(client(t), NULL, NULL);
		evhttp_connection_set_timeout(client(t), HW_HTTP_TIMEOUT_S);
	}
	end(t);
}

static void clear(struct evkeyvalq *headers)
{
	for (size_t i = 0; i < sizeof(back) / sizeof(*back); i++)
		while (evhttp_remove_header(headers, back[i]) == 0)
			;
}

/* Called when the other daemon has failed. If the answer has already begun, the connection is closed, so that the
 * client notices the failure. */
static void fail(struct transfer *t, const char *why)
{
	struct evhttp_request *req = t->req;
	char text[256];
	t->p->stats.failed++;
	if (t->begun) {
		evhttp_connection_free(client(t)); /* on_close() ends the transfer */
		return;
	}
	snprintf(text, sizeof(text), "%s %s", t->p->name, why);
	let_go(t);
	clear(evhttp_request_get_output_headers(req));
	hw_reply_guard(req);
	hw_reply_error(req, HTTP_SERVUNAVAIL, text);
}

static void begin(struct transfer *t)
{
	struct evkeyvalq *asked = evhttp_request_get_input_headers(t->req);
	long status = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	t->begun = true;
	/* HTTP/1.0 has no chunks. Without a length, the end of the connection ends the answer, even if keep-alive was
	 * requested. */
	if (t->req->major == 1 && t->req->minor == 0)
		evhttp_remove_header(asked, "Connection");
	evhttp_send_reply_start(t->req, (int)status, NULL);
	/* A client may send nothing while it reads. */
	struct timeval patience = {HW_HTTP_TIMEOUT_S, 0};
	bufferevent_set_timeouts(evhttp_connection_get_bufferevent(client(t)), NULL, &patience);
}

static size_t waiting(const struct transfer *t)
{
	return evbuffer_get_length(bufferevent_get_output(evhttp_connection_get_bufferevent(client(t))));
}

/* --- the other program ------------------------------------------------------------------------------------------ */

static void be_patient(struct transfer *t)
{
	struct timeval tv = {t->p->patience_ms / 1000, t->p->patience_ms % 1000 * 1000};
	(void)event_add(t->patience, &tv); /* on failure the client's end ends the transfer */
}

static void on_drained(struct evhttp_connection *conn, void *arg)
{
	struct transfer *t = arg;
	(void)conn;
	if (!t->paused)
		return;
	t->paused = false;
	be_patient(t);
	curl_easy_pause(t->easy, CURLPAUSE_CONT);
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	struct evkeyvalq *headers = evhttp_request_get_output_headers(t->req);
	char value[1024];
	(void)size;
	if (n > 5 && strncmp(line, "HTTP/", 5) == 0)
		clear(headers); /* drop headers of an interim answer */
	for (size_t i = 0; i < sizeof(back) / sizeof(*back); i++) {
		size_t len = strlen(back[i]);
		if (n <= len || line[len] != ':' || strncasecmp(line, back[i], len) != 0)
			continue;
		const char *from = line + len + 1, *to = line + n;
		while (from < to && (*from == ' ' || *from == '\t'))
			from++;
		while (to > from && (to[-1] == '\r' || to[-1] == '\n' || to[-1] == ' '))
			to--;
		if ((size_t)(to - from) < sizeof(value)) {
			snprintf(value, sizeof(value), "%.*s", (int)(to - from), from);
			evhttp_add_header(headers, back[i], value);
		}
	}
	return n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	(void)size;
	if (t->begun && waiting(t) > HW_PROXY_WAITING) {
		t->paused = true;
		event_del(t->patience);
		return CURL_WRITEFUNC_PAUSE;
	}
	struct evbuffer *body = evbuffer_new();
	if (!body || evbuffer_add(body, bytes, n) < 0) {
		if (body)
			evbuffer_free(body);
		return 0; /* makes libcurl end the transfer */
	}
	if (!t->begun)
		begin(t);
	evhttp_send_reply_chunk_with_cb(t->req, body, on_drained, t);
	evbuffer_free(body);
	be_patient(t);
	return n;
}

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	fail(arg, "does not answer");
}

/* The answer is complete. */
static void finish(struct transfer *t)
{
	struct evhttp_request *req = t->req;
	bool begun = t->begun;
	long status = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	t->p->stats.passed++;
	let_go(t);
	if (begun)
		evhttp_send_reply_end(req);
	else
		evhttp_send_reply(req, (int)status, NULL, NULL);
}

static void on_done(void *arg, CURL *easy, CURLcode code)
{
	struct transfer *t;
	(void)arg;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
	if (code == CURLE_OK)
		finish(t);
	else
		fail(t, code == CURLE_COULDNT_CONNECT ? "is not running" : "ended its answer too early");
}

/* --- passing on ------------------------------------------------------------------------------------------------- */

static int add_headers(struct transfer *t)
{
	struct evkeyvalq *asked = evhttp_request_get_input_headers(t->req);
	char line[2048];
	t->headers = curl_slist_append(NULL, "Expect:");
	for (size_t i = 0; t->headers && i < sizeof(there) / sizeof(*there); i++) {
		const char *value = evhttp_find_header(asked, there[i]);
		/* "NAME:" without a value removes a header that libcurl would add itself. */
		int n = snprintf(line, sizeof(line), value && *value ? "%s: %s" : "%s:", there[i], value);
		if (n >= (int)sizeof(line))
			continue;
		struct curl_slist *more = curl_slist_append(t->headers, line);
		if (!more)
			return -ENOMEM;
		t->headers = more;
	}
	return t->headers ? 0 : -ENOMEM;
}

static const char *method_name(const struct evhttp_request *req)
{
	switch (evhttp_request_get_command(req)) {
	case EVHTTP_REQ_HEAD:
		return "HEAD";
	case EVHTTP_REQ_POST:
		return "POST";
	case EVHTTP_REQ_PUT:
		return "PUT";
	case EVHTTP_REQ_PATCH:
		return "PATCH";
	case EVHTTP_REQ_DELETE:
		return "DELETE";
	default:
		return "GET";
	}
}

/* Passes the body to libcurl, which reads it directly from the request's buffer, without a copy. */
static int add_body(struct transfer *t)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(t->req);
	size_t len = evbuffer_get_length(in);
	if (len == 0)
		return 0;
	const char *bytes = (const char *)evbuffer_pullup(in, -1);
	if (!bytes || curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len) ||
	    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, bytes))
		return -ENOMEM;
	return 0;
}

static int set_up(struct transfer *t)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(t->req);
	const char *path = evhttp_uri_get_path(uri), *query = evhttp_uri_get_query(uri);
	bool head = evhttp_request_get_command(t->req) == EVHTTP_REQ_HEAD;
	if (hw_multi_set_path(t->easy, path && *path ? path : "/", query) || add_headers(t) || add_body(t) ||
	    curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, method_name(t->req)))
		return -ENOMEM;
	curl_easy_setopt(t->easy, CURLOPT_NOBODY, head ? 1L : 0L);
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	return 0;
}

static struct transfer *transfer_new(struct hw_proxy *p, struct evhttp_request *req)
{
	struct transfer *t = calloc(1, sizeof(*t));
	struct timeval tv = {p->patience_ms / 1000, p->patience_ms % 1000 * 1000};
	if (!t)
		return NULL;
	t->p = p;
	t->req = req;
	t->remote = !hw_http_is_local(req);
	p->stats.now++;
	t->next = p->first;
	t->prev = &p->first;
	if (t->next)
		t->next->prev = &t->next;
	p->first = t;
	t->easy = hw_multi_inward(p->socket);
	t->patience = evtimer_new(p->base, on_patience, t);
	if (t->easy && t->patience && set_up(t) == 0 && event_add(t->patience, &tv) == 0 &&
	    hw_multi_add(&p->multi, t->easy) == 0)
		return t;
	end(t);
	return NULL;
}

static bool is_read(struct evhttp_request *req)
{
	return evhttp_request_get_command(req) == EVHTTP_REQ_GET;
}

static const char *user_of(struct evhttp_request *req)
{
	const char *user = evhttp_find_header(evhttp_request_get_input_headers(req), HW_USER_HEADER);
	return user ? user : "";
}

/* Whether too many transfers are open for another GET. A GET may last for hours, so GETs may not use all transfers.
 * Some are reserved for requests that change something, some for the unix socket, and some for other users. */
static bool is_too_much(const struct hw_proxy *p, struct evhttp_request *req)
{
	unsigned remote = 0, same = 0;
	const char *user = user_of(req);
	if (!is_read(req))
		return p->stats.now >= HW_PROXY_MAX;
	if (p->stats.now >= HW_PROXY_READS_MAX)
		return true;
	for (const struct transfer *t = p->first; t; t = t->next)
		if (t->remote && is_read(t->req)) {
			remote++;
			same += *user && strcmp(user_of(t->req), user) == 0;
		}
	return !hw_http_is_local(req) && (remote >= HW_PROXY_HTTP_MAX || same >= HW_PROXY_USER_MAX);
}

void hw_proxy_forward(struct hw_proxy *p, struct evhttp_request *req)
{
	if (is_too_much(p, req)) {
		p->stats.refused++;
		hw_reply_error(req, HTTP_SERVUNAVAIL, "too many requests are under way");
		return;
	}
	struct transfer *t = transfer_new(p, req);
	if (!t) {
		p->stats.failed++;
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	evhttp_connection_set_closecb(client(t), on_close, t);
}

/*
 * Closes connections of clients that have lost their rights, if the answer has begun or the request is a GET, which may
 * last long. Other requests end soon, and may already have changed something.
 */
unsigned hw_proxy_break_off(struct hw_proxy *p, bool (*keeps)(const void *arg, struct evhttp_request *req),
                            const void *arg)
{
	unsigned n = 0;
	for (struct transfer *t = p->first, *next; t; t = next) {
		next = t->next;
		bool lasts = t->begun || evhttp_request_get_command(t->req) == EVHTTP_REQ_GET;
		if (!lasts || !client(t) || keeps(arg, t->req))
			continue;
		n++;
		evhttp_connection_free(client(t)); /* on_close() ends the transfer */
	}
	return n;
}

bool hw_proxy_is_there(const struct hw_proxy *p)
{
	return access(p->socket, F_OK) == 0;
}

const struct hw_proxy_stats *hw_proxy_stats(const struct hw_proxy *p)
{
	return &p->stats;
}

struct hw_proxy *hw_proxy_new(struct event_base *base, const char *name, const char *socket, long patience_ms)
{
	struct hw_proxy *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->base = base;
	p->patience_ms = patience_ms;
	p->name = strdup(name);
	p->socket = strdup(socket);
	if (p->name && p->socket && hw_multi_init(&p->multi, base, on_done, p) == 0)
		return p;
	hw_proxy_free(p);
	return NULL;
}

void hw_proxy_free(struct hw_proxy *p)
{
	if (!p)
		return;
	hw_multi_fini(&p->multi);
	free(p->name);
	free(p->socket);
	free(p);
}
