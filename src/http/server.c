/* SPDX-License-Identifier: MIT */
/* See server.h. Invariant: every request that evhttp passes on is answered exactly once. */
#include "http/server.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conf/file.h"
#include "http/access.h"
#include "http/capacity.h"
#include "http/origin.h"
#include "http/refusal.h"
#include "http/reply.h"
#include "http/tls.h"

#define HEADERS_MAX (16 * 1024)
#define TIMEOUT_S   HW_HTTP_TIMEOUT_S
#define ROOM_MS     50

#define HTTP_FORBIDDEN   403
#define HTTP_UNSUPPORTED 415

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Whether the request came by TLS. False for connections from before the reload that enabled TLS, and for a
 * connection that evhttp created itself because our on_connection() had no memory. */
static bool is_encrypted(struct evhttp_request *req)
{
	return bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));
}

/* Whether the client runs as this process's user or as root. Such a client has our rights in any case. */
static bool is_family(struct evhttp_request *req)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct ucred peer;
	socklen_t len = sizeof(peer);
	return getsockopt(bufferevent_getfd(bev), SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* Removes every HW_USER_HEADER of a client that is not trusted to set it. */
static void forget_user(const struct hw_http_front *front, struct evhttp_request *req)
{
	struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
	if (!evhttp_find_header(headers, HW_USER_HEADER) ||
	    (front->h->believes_family && !front->remote && is_family(req)))
		return;
	while (evhttp_remove_header(headers, HW_USER_HEADER) == 0)
		;
}

/* Writes the numeric address of this server that the client connected to; "" on a unix socket. */
static void read_local_address(struct evhttp_request *req, char *text, size_t cap)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	if (getsockname(bufferevent_getfd(bev), (struct sockaddr *)&sa, &len) != 0 || sa.ss_family == AF_UNIX ||
	    getnameinfo((struct sockaddr *)&sa, len, text, (socklen_t)cap, NULL, 0, NI_NUMERICHOST) != 0)
		*text = '\0';
}

/* Checks the header Host. A browser always sends this header, so a request without it does not come from a browser. If
 * the host is wrong, answers the request and returns false. */
static bool admit_host(struct hw_http_front *front, struct evhttp_request *req)
{
	struct hw_http *h = front->h;
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(req), "Host");
	char local[INET6_ADDRSTRLEN];
	read_local_address(req, local, sizeof(local));
	if (!host || hw_origin_is_host(host, h->names ? h->names : "", local, front->any))
		return true;
	h->foreign++;
	hw_reply_error(req, HTTP_FORBIDDEN, "the request's Host is not a name of this server: see [http] names");
	return false;
}

/*
 * Checks a request that changes something. A page of another server can make a browser send a POST with the user's
 * Basic credentials. But the browser then sends that page's Origin, and the page cannot choose this content type. A
 * PUT may have another type, which its handler checks: no form can send it. If false, the request was answered.
 */
static bool admit_writer(struct hw_http *h, struct evhttp_request *req)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
	const char *origin = evhttp_find_header(headers, "Origin"), *host = evhttp_find_header(headers, "Host");
	const char *type = evhttp_find_header(headers, "Content-Type");
	if (method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD)
		return true;
	if (origin && !hw_origin_may_write(origin, host ? host : "", h->names ? h->names : "")) {
		h->foreign++;
		hw_reply_error(req, HTTP_FORBIDDEN, "the request's Origin is not this server: see [http] names");
		return false;
	}
	if (method != EVHTTP_REQ_DELETE && method != EVHTTP_REQ_PUT && (!type || !hw_origin_is_json(type))) {
		h->foreign++;
		hw_reply_error(req, HTTP_UNSUPPORTED, "writing needs Content-Type: application/json");
		return false;
	}
	return true;
}

bool hw_http_is_local(struct evhttp_request *req)
{
	char local[INET6_ADDRSTRLEN];
	read_local_address(req, local, sizeof(local));
	return !*local;
}

bool hw_http_may_write(const struct hw_http *h, struct evhttp_request *req)
{
	return hw_http_is_local(req) || (h->access && hw_access_may_write(h->access, req));
}

static void on_request(struct evhttp_request *req, void *arg)
{
	struct hw_http_front *front = arg;
	struct hw_http *h = front->h;
	hw_reply_guard(req);
	if (front->remote && !admit_host(front, req))
		return;
	if (front->remote && h->encrypted && !is_encrypted(req)) {
		hw_reply_error(req, HTTP_BADREQUEST, "this address uses TLS: use https");
		return;
	}
	bool asks = front->remote && h->access;
	/* A client that is not trusted may not name a user. If the header were only ignored, the request of a remote
	 * user would look like that of a local client. */
	if (h->believes_family && !front->remote && !is_family(req) &&
	    evhttp_find_header(evhttp_request_get_input_headers(req), HW_USER_HEADER)) {
		hw_reply_error(req, HTTP_FORBIDDEN,
		               "a program that passes on requests of users must run as this daemon's user, or as root");
		return;
	}
	forget_user(front, req);
	if (asks && !hw_http_is_open(h->table, evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req))) &&
	    !hw_access_admit(h->access, req, now_ms(), time(NULL)))
		return;
	if (asks && !admit_writer(h, req))
		return;
	hw_http_route(h->table, h->admits, front->remote && !h->access, req, h->arg);
}

/* Pauses the listener. New clients wait in the queue of the listening socket. */
static void pause_front(struct hw_http_front *front, int64_t ms)
{
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	if (event_add(front->again, &tv) < 0)
		return;
	evconnlistener_disable(front->listener);
	event_del(front->pending);
}

/* Called when the clients of the address use all descriptors that they may use. Closes connections, and pauses the
 * listener until the descriptors of these connections are free. */
static void make_room(struct hw_http_front *front)
{
	front->h->crowded += hw_capacity_make_room(evconnlistener_get_fd(front->listener));
	pause_front(front, ROOM_MS);
}

static struct bufferevent *make_bev(struct event_base *base, struct hw_http_front *front)
{
	if (!front->remote || !front->h->encrypted)
		return bufferevent_socket_new(base, -1, 0);
	int64_t now = now_ms();
	struct bufferevent *bev = hw_tls_accept(front->h->tls, now);
	int64_t wait = hw_tls_wait(front->h->tls, now);
	if (wait > 0)
		pause_front(front, wait);
	return bev;
}

static size_t body_max(const struct hw_http_front *front)
{
	return !front->remote && front->h->body_max_local ? front->h->body_max_local : front->h->body_max;
}

/*
 * Creates a connection as evhttp would, but limits its input. While evhttp writes an answer, it reads on, and without a
 * limit it would buffer everything that the client sends.
 */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct hw_http_front *front = arg;
	struct bufferevent *bev = make_bev(base, arg);
	if (front->remote && hw_capacity_is_full(true))
		make_room(front);
	else if (!front->remote && front->h->keeps_reserve && hw_capacity_is_full(true))
		pause_front(front, 1000);
	if (!bev)
		return NULL;
	/* evhttp needs the whole body in the input. Requests that the client sent ahead may follow the body. */
	bufferevent_setwatermark(bev, EV_READ, 0, body_max(front) + 2 * HEADERS_MAX);
	hw_refusal_watch(bev);
	return bev;
}

/*
 * Called when a client is about to connect, before the listener's own callback. If no descriptor is free, pauses the
 * listener for a second: otherwise the listening socket would stay readable and the loop would spin. The listener's
 * error callback is not used, because it does not receive the front.
 */
static void on_pending(evutil_socket_t fd, short what, void *arg)
{
	struct hw_http_front *front = arg;
	(void)fd;
	(void)what;
	if (front->remote && hw_capacity_is_full(true))
		make_room(front);
	else if (!front->remote && hw_capacity_is_full(front->h->keeps_reserve))
		pause_front(front, 1000);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	struct hw_http_front *front = arg;
	struct timeval second = {1, 0};
	(void)fd;
	(void)what;
	if (!front->remote && hw_capacity_is_full(front->h->keeps_reserve)) { /* the listener would accept one more */
		front->unarmed = event_add(front->again, &second) != 0;
		return;
	}
	if (evconnlistener_enable(front->listener) < 0 || event_add(front->pending, NULL) < 0)
		front->unarmed = event_add(front->again, &second) != 0;
}

static void tick(struct hw_http_front *front)
{
	if (front->unarmed)
		event_active(front->again, EV_TIMEOUT, 0);
	front->unarmed = false;
}

void hw_http_tick(struct hw_http *h)
{
	tick(&h->local);
	tick(&h->remote);
	if (h->tls)
		hw_tls_tick(h->tls, now_ms());
}

static int start_http(struct hw_http_front *front)
{
	front->http = evhttp_new(front->h->base);
	if (!front->http)
		return -ENOMEM;
	evhttp_set_max_headers_size(front->http, HEADERS_MAX);
	evhttp_set_max_body_size(front->http, (ev_ssize_t)body_max(front));
	/* If a body is too large, the server reads it to its end and discards it. A client that is still sending would
	 * not read the answer. */
	evhttp_set_flags(front->http, EVHTTP_SERVER_LINGERING_CLOSE);
	evhttp_set_timeout(front->http, TIMEOUT_S);
	evhttp_set_allowed_methods(front->http, 0xffff); /* on_request() refuses methods, in JSON */
	evhttp_set_bevcb(front->http, on_connection, front);
	evhttp_set_gencb(front->http, on_request, front);
	return 0;
}

/* Serves a listening socket and owns it in any case. */
static int start_front(struct hw_http_front *front, int fd)
{
	const unsigned flags = LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE;
	int rc = start_http(front);
	front->any = hw_socket_is_any(fd);
	front->listener = rc == 0 ? evconnlistener_new(front->h->base, NULL, NULL, flags, 0, fd) : NULL;
	if (!front->listener) {
		close(fd);
		return -ENOMEM;
	}
	if (!evhttp_bind_listener(front->http, front->listener)) {
		evconnlistener_free(front->listener);
		return -ENOMEM;
	}
	front->pending = event_new(front->h->base, fd, EV_READ | EV_PERSIST, on_pending, front);
	front->again = event_new(front->h->base, -1, 0, on_again, front);
	if (!front->pending || !front->again || event_add(front->pending, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static void stop_front(struct hw_http_front *front)
{
	/* before its descriptor is closed */
	if (front->pending)
		event_free(front->pending);
	if (front->again)
		event_free(front->again);
	if (front->http)
		evhttp_free(front->http);
	*front = (struct hw_http_front){.h = front->h, .remote = front->remote};
}

void hw_http_init(struct hw_http *h, struct event_base *base, const struct hw_http_table *table, void *arg)
{
	*h = (struct hw_http){
		.base = base, .table = table, .arg = arg, .body_max = HW_HTTP_BODY_MAX, .socket = {.fd = -1}};
	h->local.h = h->remote.h = h;
	h->remote.remote = true;
}

int hw_http_listen(struct hw_http *h, const char *path, const char *group)
{
	int rc = hw_socket_listen(&h->socket, path, group);
	if (rc < 0)
		return rc;
	int fd = h->socket.fd;
	h->socket.fd = -1;
	return start_front(&h->local, fd);
}

int hw_http_listen_tcp(struct hw_http *h, const char *address, bool *local)
{
	int fd = hw_socket_listen_tcp(address, local);
	if (fd < 0)
		return fd;
	int rc = start_front(&h->remote, fd);
	if (rc < 0)
		stop_front(&h->remote);
	return rc;
}

static void free_access(struct hw_access *a)
{
	if (a)
		hw_accounts_fini(&a->accounts);
	free(a);
}

static int second(const struct hw_http_front *front)
{
	int fd = front->http ? fcntl(evconnlistener_get_fd(front->listener), F_DUPFD_CLOEXEC, 0) : -1;
	return fd < 0 && front->http ? -errno : fd;
}

int hw_http_keep(struct hw_http *h, struct hw_http_kept *out)
{
	*out = (struct hw_http_kept){.socket = h->socket, .remote = second(&h->remote)};
	out->socket.fd = second(&h->local);
	h->socket = (struct hw_socket){.fd = -1};
	out->access = h->access;
	out->names = h->names;
	out->tls = h->tls;
	out->encrypted = h->encrypted;
	h->access = NULL;
	h->names = NULL;
	h->tls = NULL;
	h->encrypted = false;
	int rc = out->socket.fd < 0 ? out->socket.fd : out->remote < -1 ? out->remote : 0;
	if (rc < 0)
		hw_http_kept_fini(out);
	return rc;
}

int hw_http_resume(struct hw_http *h, struct hw_http_kept *kept)
{
	int fd = kept->socket.fd, remote = kept->remote;
	h->socket = kept->socket;
	h->socket.fd = -1;
	h->access = kept->access;
	h->names = kept->names;
	h->tls = kept->tls;
	h->encrypted = kept->encrypted;
	if (h->tls)
		hw_tls_rebase(h->tls, h->base);
	*kept = (struct hw_http_kept){.socket = {.fd = -1}, .remote = -1};
	int rc = start_front(&h->local, fd);
	if (rc < 0 && remote >= 0)
		close(remote);
	return rc < 0 || remote < 0 ? rc : start_front(&h->remote, remote);
}

void hw_http_kept_fini(struct hw_http_kept *kept)
{
	if (kept->remote >= 0)
		close(kept->remote);
	hw_socket_fini(&kept->socket);
	kept->remote = -1;
	hw_tls_free(kept->tls);
	free_access(kept->access);
	free(kept->names);
	kept->names = NULL;
	kept->tls = NULL;
	kept->access = NULL;
}

/* --- users and TLS ---------------------------------------------------------------------------------------------- */

struct attempt {
	hw_http_wrong *wrong;
	void *arg;
};

static void on_wrong_line(void *arg, unsigned line, const char *what)
{
	const struct attempt *t = arg;
	t->wrong(t->arg, "users", line, what);
}

/* *out is NULL if no users are configured. */
static int load_users(struct hw_access **out, const char *path, const char *proxies, struct attempt *t)
{
	*out = NULL;
	if (!*path)
		return 0;
	struct hw_access *a = calloc(1, sizeof(*a));
	int rc = a ? hw_accounts_load(&a->accounts, path, on_wrong_line, t) : -ENOMEM;
	if (rc == 0 && hw_proxies_parse(&a->proxies, proxies ? proxies : ""))
		a->proxies.n = 0; /* the configuration check has reported this list */
	if (rc == 0)
		*out = a;
	else
		free(a);
	if (rc && rc != -EINVAL)
		t->wrong(t->arg, "users", 0, hw_file_error(-rc));
	return rc;
}

/* Replaces the users; attempts and counters stay. */
static void set_users(struct hw_http *h, struct hw_access *a)
{
	struct hw_access *old = h->access;
	if (a && old) {
		hw_accounts_fini(&old->accounts);
		old->accounts = a->accounts;
		old->proxies = a->proxies;
		free(a);
		return;
	}
	h->access = a;
	free_access(old);
}

static int load_tls(struct hw_http *h, const struct hw_http_safety *s, struct hw_http_plan *p, struct attempt *t)
{
	char why[512];
	if (!*s->tls_cert)
		return 0;
	int rc = hw_tls_read(&p->files, s->tls_cert, s->tls_key, why, sizeof(why));
	if (rc == 0 && !h->tls && !(p->tls = hw_tls_new(h->base))) {
		rc = -ENOMEM;
		snprintf(why, sizeof(why), "not enough memory");
	}
	if (rc)
		t->wrong(t->arg, "tls_cert", 0, why);
	return rc;
}

int hw_http_plan(struct hw_http *h, const struct hw_http_safety *s, struct hw_http_plan *out, hw_http_wrong *wrong,
                 void *arg)
{
	struct attempt t = {wrong, arg};
	*out = (struct hw_http_plan){0};
	int rc = load_users(&out->access, s->users, s->trusted_proxies, &t), tls = load_tls(h, s, out, &t);
	out->names = strdup(s->names ? s->names : "");
	if (!rc && !out->names)
		rc = -ENOMEM;
	return rc ? rc : tls;
}

/* Existing connections keep their settings. */
void hw_http_take(struct hw_http *h, struct hw_http_plan *p, char *users, size_t cap)
{
	hw_accounts_diff(h->access ? &h->access->accounts : NULL, p->access ? &p->access->accounts : NULL, users, cap);
	set_users(h, p->access);
	free(h->names);
	h->names = p->names;
	h->encrypted = p->files != NULL;
	if (p->tls)
		h->tls = p->tls;
	if (p->files)
		hw_tls_take(h->tls, p->files);
	*p = (struct hw_http_plan){0};
}

void hw_http_plan_fini(struct hw_http_plan *p)
{
	free_access(p->access);
	free(p->names);
	hw_tls_free(p->tls);
	hw_tls_discard(p->files);
	*p = (struct hw_http_plan){0};
}

bool hw_http_still_admits(const struct hw_http *h, struct evhttp_request *req)
{
	char local[INET6_ADDRSTRLEN];
	read_local_address(req, local, sizeof(local));
	if (!h->access || !*local)
		return true;
	return hw_http_is_open(h->table, evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req))) ||
	       hw_access_still_admits(h->access, req, time(NULL));
}

bool hw_http_api_token_expired(struct hw_http *h)
{
	int64_t now = time(NULL);
	if (!h->access)
		return false;
	bool expired = hw_accounts_expire(&h->access->accounts, h->access->expired_s, now);
	h->access->expired_s = now;
	return expired;
}

int hw_http_secure(struct hw_http *h, const struct hw_http_safety *s, hw_http_wrong *wrong, void *arg)
{
	struct hw_http_plan p;
	char users[64];
	int rc = hw_http_plan(h, s, &p, wrong, arg);
	if (rc == 0)
		hw_http_take(h, &p, users, sizeof(users));
	hw_http_plan_fini(&p);
	return rc;
}

struct hw_http_refused hw_http_refused(const struct hw_http *h)
{
	struct hw_http_refused r = {.foreign = h->foreign, .crowded = h->crowded, .last_closed = ""};
	if (h->access) {
		const struct hw_access_stats *s = &h->access->stats;
		r = (struct hw_http_refused){.foreign = h->foreign,
		                             .crowded = h->crowded,
		                             .without = s->without,
		                             .wrong = s->wrong,
		                             .closed = s->closed,
		                             .may_not = s->may_not,
		                             .closings = h->access->closings,
		                             .last_closed = h->access->last_closed};
	}
	if (h->tls) {
		r.handshakes_cut = hw_tls_stats(h->tls)->cut;
		r.handshakes = hw_tls_stats(h->tls)->done;
	}
	return r;
}

void hw_http_fini(struct hw_http *h)
{
	stop_front(&h->remote);
	stop_front(&h->local);
	hw_socket_fini(&h->socket);
	hw_tls_free(h->tls);
	free_access(h->access);
	free(h->names);
	h->names = NULL;
	h->tls = NULL;
	h->access = NULL;
}
