/* SPDX-License-Identifier: MIT */
/* The control API in the test's own process. Anything unexpected ends the test. */
#include "control_server.h"

#include <check.h>
#include <errno.h>
#include <event2/buffer.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "http/json.h"

static struct hw_now op_now(void *arg)
{
	return ((struct server *)arg)->now;
}

static void op_status(void *arg, struct hw_control_status *out)
{
	*out = ((struct server *)arg)->status;
}

static enum hw_forgotten op_forget(void *arg, uint64_t ticket, const char *id, size_t len)
{
	struct server *s = arg;
	s->forgets++;
	s->ticket = ticket;
	if (s->owner && strcmp(s->owner, s->status.node) != 0)
		return *s->owner ? HW_FORGOTTEN_ASKED : HW_FORGOTTEN_UNOWNED;
	return hw_monitor_forget(s->monitor, s->now, id, len) ? HW_FORGOTTEN : HW_FORGOTTEN_UNKNOWN;
}

static int op_reload(void *arg, struct evbuffer *body)
{
	struct server *s = arg;
	evbuffer_add_printf(body, "%s", s->reload_body);
	return s->reload_code;
}

static void op_metrics(void *arg, struct evbuffer *body)
{
	(void)arg;
	evbuffer_add_printf(body, "# HELP heartwheel_more More.\n# TYPE heartwheel_more gauge\nheartwheel_more 1\n");
}

#define ALWAYS .now = op_now, .status = op_status, .forget = op_forget, .reload = op_reload, .metrics = op_metrics

static const struct hw_control_ops ops = {ALWAYS};

static int op_events_after(void *arg, struct hw_stream_id at)
{
	struct server *s = arg;
	if (s->store_fails)
		return -ENOTCONN;
	s->asked_after++;
	s->after = at;
	return 0;
}

static int op_events_last(void *arg)
{
	struct server *s = arg;
	if (s->store_fails)
		return -ENOTCONN;
	s->asked_last++;
	return 0;
}

static const struct hw_control_ops ops_with_store = {
	ALWAYS,
	.events_after = op_events_after,
	.events_last = op_events_last,
};

static void op_nodes(void *arg, struct hw_control_nodes *out)
{
	*out = ((struct server *)arg)->nodes;
}

static const char *op_owner(void *arg, const struct hw_device *d)
{
	const struct server *s = arg;
	(void)d;
	return *s->owner ? s->owner : NULL;
}

static const struct hw_control_ops ops_with_nodes = {
	ALWAYS,
	.nodes = op_nodes,
	.owner = op_owner,
};

static void start(struct server *s, bool loading, const char *key_group, const struct hw_control_ops *with)
{
	static const char *const heartbeats[] = {"nodes/{id}/heartbeat"}, *const fast[] = {"fast/{id}"};
	const struct hw_group_spec groups[] = {
		{.name = "default",
	         .heartbeat = heartbeats,
	         .n_heartbeat = 1,
	         .timeout_ms = 30000,
	         .timeout_max_ms = 86400000},
		{.name = "fast",
	         .heartbeat = fast,
	         .n_heartbeat = 1,
	         .id_prefix = "f/",
	         .timeout_ms = 2000,
	         .timeout_max_ms = 86400000},
	};
	const struct hw_monitor_conf conf = {.max_devices = 1000000,
	                                     .barrier_slow_ms = 250,
	                                     .barrier_timeout_ms = 5000,
	                                     .readers = 1,
	                                     .ttl_factor = 3,
	                                     .key_group = key_group,
	                                     .loading = loading};
	const uint8_t key[16] = "sixteen bytes..";
	*s = (struct server){.reload_code = 200, .reload_body = "{\"changed\":[],\"restart_needed\":[]}"};
	s->status = (struct hw_control_status){.node = "node \"1\"",
	                                       .version = "1.2.3",
	                                       .uptime_s = 4711,
	                                       .mqtt_up = true,
	                                       .mqtt = "up",
	                                       .redis = "off"};
	s->now = (struct hw_now){.mono = {1000 * HW_NS_PER_S}, .wall_ms = INT64_C(1700000000000)};
	signal(SIGPIPE, SIG_IGN); /* as hw_control_new() asks for */
	strcpy(s->dir, "/tmp/hw-control-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/control.sock", s->dir);
	s->base = event_base_new();
	s->monitor = hw_monitor_new(&conf, groups, 2, key, s->now);
	ck_assert_ptr_nonnull(s->monitor);
	ck_assert_int_eq(hw_control_new(&s->control, s->base, s->path, "", s->monitor, with, s), 0);
}

void server_start(struct server *s, bool loading)
{
	start(s, loading, NULL, &ops);
}

void server_start_with_keys(struct server *s)
{
	start(s, false, "default", &ops);
}

void server_start_with_store(struct server *s)
{
	start(s, false, NULL, &ops_with_store);
}

void server_start_with_nodes(struct server *s)
{
	start(s, false, NULL, &ops_with_nodes);
	s->owner = s->status.node = "a";
	s->nodes = (struct hw_control_nodes){
		.mode = "mirror",
		.name = "heartwheel",
		.lease_ms = 5000,
		.n = 3,
		.at = {{.node = "a",
	                .self = true,
	                .state = "ready",
	                .json = "{\"mode\":\"mirror\",\"name\":\"heartwheel\",\"version\":\"1.2.3\",\"config\":\"c0\"}",
	                .since_ms = s->now.wall_ms - 60000,
	                .owns = 131},
	               {.node = "b",
	                .state = "blind",
	                .json = "{\"mode\":\"mirror\",\"name\":\"heartwheel\",\"version\":\"1.2.4\",\"config\":\"c1\","
	                        "\"blind_cause\":\"link\",\"devices\":3,\"online\":2,\"offline\":1,\"owed\":0,"
	                        "\"listen\":\"127.0.0.1:8731\"}",
	                .since_ms = s->now.wall_ms - 3600000,
	                .owns = 125},
	               {.node = "c", .lost = true, .state = "lost", .json = "{}", .since_ms = s->now.wall_ms - 133000}},
		.member = true,
		.partitions = 256,
		.owned = 131,
		.takeovers_clean = 7,
		.takeovers_unclean = 131,
		.evictions = 1,
		.fenced_redis = 2,
		.fenced_broker = 3,
		.peer_messages = 9,
		.stream_lag_ms = 250,
		.takeover_s = .125};
}

void server_stop(struct server *s)
{
	hw_control_free(s->control); /* perhaps by the test already */
	hw_monitor_free(s->monitor);
	event_base_free(s->base);
	ck_assert_int_eq(rmdir(s->dir), 0); /* the socket is gone */
}

void server_turn(struct server *s)
{
	event_base_loop(s->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

void server_core(struct server *s)
{
	struct hw_out out;
	unsigned budget = 1000000;
	while (hw_monitor_next(s->monitor, s->now, &budget, &out))
		if (out.kind == HW_OUT_BARRIER)
			hw_monitor_barrier(s->monitor, s->now, 0, out.barrier);
}

void server_see(struct server *s)
{
	hw_monitor_link(s->monitor, s->now, 0, true);
	hw_monitor_publisher(s->monitor, s->now, true);
	server_core(s);
	for (int i = 0; i < 10 && hw_blind_now(hw_monitor_blind(s->monitor)); i++) {
		s->now.mono.ns += HW_NS_PER_S;
		s->now.wall_ms += 1000;
		server_core(s);
	}
	ck_assert(!hw_blind_now(hw_monitor_blind(s->monitor)));
}

void server_key(struct server *s, const char *id, int64_t ttl_ms)
{
	hw_monitor_key(s->monitor, s->now, HW_KEY_WRITTEN, id, strlen(id), ttl_ms);
	server_core(s);
}

void server_beat(struct server *s, unsigned group, const char *id, const char *payload)
{
	struct hw_payload p;
	hw_payload_decode(&p, payload ? payload : "", payload ? strlen(payload) : 0);
	hw_monitor_heartbeat(s->monitor, s->now, (uint16_t)group, id, strlen(id), &p);
	hw_payload_fini(&p);
	server_core(s);
}

void server_forget(struct server *s, const char *id)
{
	struct hw_registry *r = hw_monitor_registry(s->monitor);
	uint32_t index = hw_registry_find(r, id, strlen(id));
	ck_assert_uint_ne(index, HW_NIL);
	struct hw_ref ref = hw_registry_ref(r, index);
	ck_assert(hw_monitor_forget(s->monitor, s->now, id, strlen(id)));
	server_core(s);
	hw_monitor_reap(s->monitor, ref);
	ck_assert_uint_eq(hw_registry_find(r, id, strlen(id)), HW_NIL);
}

long long clock_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool too_late(long long since)
{
	return clock_ms() - since > 30000;
}

int client_connect(const struct server *s)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(fd, 0);
	strcpy(sa.sun_path, s->path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void wait_a_little(int fd, short what)
{
	struct pollfd p = {.fd = fd, .events = what};
	poll(&p, 1, 1);
}

bool client_send(struct server *s, int fd, const char *bytes, size_t n)
{
	long long since = clock_ms();
	while (n > 0) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
		if (sent > 0) {
			bytes += sent;
			n -= (size_t)sent;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			return false;
		} else {
			ck_assert_int_eq(errno, EAGAIN);
			wait_a_little(fd, POLLOUT);
		}
		server_turn(s);
		ck_assert(!too_late(since));
	}
	return true;
}

/* The body of a complete chunked answer: its end in the input; NULL if more must come. */
static char *unchunk(char *in, char *out, size_t *len)
{
	*len = 0;
	for (;;) {
		char *line = strstr(in, "\r\n"), *end;
		if (!line)
			return NULL;
		size_t n = strtoul(in, &end, 16);
		ck_assert_ptr_eq(end, line);
		if (strlen(line) < 2 + n + 2)
			return NULL;
		memcpy(out + *len, line + 2, n);
		*len += n;
		in = line + 2 + n;
		ck_assert(memcmp(in, "\r\n", 2) == 0);
		in += 2;
		if (n == 0)
			return in;
	}
}

/* Whether `text` begins with a complete answer, which is then parsed. */
static bool take_apart(const char *text, bool closed, struct reply *r)
{
	const char *body = strstr(text, "\r\n\r\n");
	char code[4] = "";
	if (!body)
		return false;
	free(r->head);
	free(r->body);
	free(r->rest);
	r->head = strndup(text, (size_t)(body - text) + 2);
	r->body = strdup(body + 4);
	r->body_len = strlen(r->body);
	r->rest = NULL;
	ck_assert_int_eq(sscanf(text, "HTTP/1.%*d %3[0-9] ", code), 1);
	r->code = atoi(code);
	const char *length = strcasestr(r->head, "\r\nContent-Length:");
	if (strcasestr(r->head, "\r\nTransfer-Encoding: chunked")) {
		char *copy = strdup(r->body), *end = unchunk(copy, r->body, &r->body_len);
		r->rest = end ? strdup(end) : NULL;
		free(copy);
	} else if (length || r->code == 204 || r->code == 100) {
		size_t n = length ? strtoul(length + 17, NULL, 10) : 0;
		if (r->body_len >= n) {
			r->rest = strdup(r->body + n);
			r->body_len = n;
		}
	} else if (closed) {
		r->rest = strdup("");
	}
	if (r->rest)
		r->body[r->body_len] = '\0';
	else
		r->code = 0;
	return r->rest != NULL;
}

/* Receives until `enough` returns true or the server closes. The text is on the heap. */
static char *receive(struct server *s, int fd, const char *already, bool *closed,
                     bool (*enough)(const char *text, struct reply *r), struct reply *r)
{
	long long since = clock_ms();
	size_t n = already ? strlen(already) : 0;
	char *text = calloc(1, n + 1), bytes[65536];
	if (already)
		memcpy(text, already, n);
	*closed = false;
	while (!enough(text, r) && !*closed) {
		server_turn(s);
		ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
		if (got > 0) {
			text = realloc(text, n + (size_t)got + 1);
			memcpy(text + n, bytes, (size_t)got);
			n += (size_t)got;
			text[n] = '\0';
		} else if (got == 0 || errno != EAGAIN) {
			*closed = true;
		} else {
			wait_a_little(fd, POLLIN);
		}
		ck_assert(!too_late(since));
	}
	return text;
}

static bool whole(const char *text, struct reply *r)
{
	return take_apart(text, false, r);
}

void client_read(struct server *s, int fd, const char *already, struct reply *r)
{
	bool closed;
	*r = (struct reply){0};
	char *text = receive(s, fd, already, &closed, whole, r);
	if (closed && !r->rest)
		take_apart(text, true, r);
	free(text);
}

static bool never(const char *text, struct reply *r)
{
	(void)text;
	(void)r;
	return false;
}

void client_read_all(struct server *s, int fd, struct reply *r)
{
	bool closed;
	*r = (struct reply){0};
	char *text = receive(s, fd, NULL, &closed, never, r), *body = strstr(text, "\r\n\r\n");
	ck_assert_ptr_nonnull(body);
	ck_assert_int_eq(sscanf(text, "HTTP/1.%*d %d ", &r->code), 1);
	r->head = strndup(text, (size_t)(body - text) + 2);
	r->body = strdup(body + 4);
	r->body_len = strlen(r->body);
	r->rest = strdup("");
	free(text);
}

void reply_fini(struct reply *r)
{
	free(r->head);
	free(r->body);
	free(r->rest);
	*r = (struct reply){0};
}

bool ask(struct server *s, const char *method, const char *target, const char *more, struct reply *r)
{
	int fd = client_connect(s);
	char *text;
	int n = asprintf(&text, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s%s", method, target,
	                 more ? more : "", more && strstr(more, "\r\n\r\n") ? "" : "\r\n");
	ck_assert_int_gt(n, 0);
	bool sent = client_send(s, fd, text, (size_t)n);
	client_read(s, fd, NULL, r);
	free(text);
	close(fd);
	return sent;
}

int get(struct server *s, const char *target, struct reply *r)
{
	ask(s, "GET", target, NULL, r);
	return r->code;
}
