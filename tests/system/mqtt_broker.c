/* SPDX-License-Identifier: MIT */
/*
 * See mqtt_broker.h. The broker is in the test's process group and dies with it; Check kills that group when a test
 * fails.
 */
#include "mqtt_broker.h"
#include "../suite.h"
#include "free_port.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <mosquitto.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77

static char base_dir[64];

int test_mqtt_main(const char *name, void (*add)(void *suite))
{
	signal(SIGPIPE, SIG_IGN); /* as the daemon does */
	if (access("/usr/sbin/mosquitto", X_OK) != 0) {
		fprintf(stderr, "skipped: no /usr/sbin/mosquitto (apt-get install mosquitto)\n");
		return SKIPPED;
	}
	snprintf(base_dir, sizeof(base_dir), "%s/hw-mqtt-XXXXXX", "/tmp");
	if (!mkdtemp(base_dir))
		return EXIT_FAILURE;
	Suite *s = suite_create(name);
	add(s);
	int status = suite_run(s);
	char command[128];
	snprintf(command, sizeof(command), "rm -rf '%s'", base_dir);
	if (system(command) != 0)
		status = EXIT_FAILURE;
	return status;
}

int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- the broker */

int bound_socket(int *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, len), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

const char *broker_file(const struct broker *b, const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", b->dir, name);
	return path;
}

void broker_write(const struct broker *b, const char *name, const char *text)
{
	FILE *f = fopen(broker_file(b, name), "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

void broker_shell(const struct broker *b, const char *format, ...)
{
	char command[1024];
	int n = snprintf(command, sizeof(command), "cd '%s' && ", b->dir);
	va_list args;
	va_start(args, format);
	vsnprintf(command + n, sizeof(command) - (size_t)n, format, args);
	va_end(args);
	ck_assert_msg(system(command) == 0, "failed: %s", command);
}

void broker_init(struct broker *b, const char *extra)
{
	char text[2048];
	*b = (struct broker){.port = free_port()};
	snprintf(b->dir, sizeof(b->dir), "%s/broker-%d-%d", base_dir, (int)getpid(), b->port);
	ck_assert_int_eq(mkdir(b->dir, 0755), 0);
	snprintf(text, sizeof(text),
	         "user root\nlistener %d 127.0.0.1\nlog_dest file %s/log\nlog_type notice\nlog_type warning\nlog_type "
	         "error\nmax_queued_messages 0\n%s\n",
	         b->port, b->dir, extra);
	broker_write(b, "conf", text);
}

static bool answers(int port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	close(fd);
	return ok;
}

void broker_start(struct broker *b)
{
	const char *conf = broker_file(b, "conf");
	b->pid = fork();
	ck_assert_int_ge(b->pid, 0);
	if (b->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int out = open(broker_file(b, "out"), O_WRONLY | O_CREAT | O_APPEND, 0644);
		dup2(out, 1);
		dup2(out, 2);
		execl("/usr/sbin/mosquitto", "mosquitto", "-c", conf, (char *)NULL);
		_exit(127);
	}
	int64_t until = now_ms() + PATIENCE;
	while (!answers(b->port)) {
		ck_assert_msg(waitpid(b->pid, NULL, WNOHANG) == 0, "mosquitto does not run: see %s", b->dir);
		ck_assert_msg(now_ms() < until, "mosquitto does not answer");
		poll(NULL, 0, 5);
	}
}

void broker_stop(struct broker *b, int signal)
{
	kill(b->pid, SIGCONT);
	kill(b->pid, signal);
	ck_assert_int_eq(waitpid(b->pid, NULL, 0), b->pid);
	b->pid = 0;
}

unsigned broker_logged(const struct broker *b, const char *text)
{
	char line[1024];
	unsigned n = 0;
	FILE *f = fopen(broker_file(b, "log"), "r");
	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return n;
}

/* The most that waits unread in the socket of any client of the broker. */
static unsigned long most_unread(const struct broker *b)
{
	char line[512];
	unsigned long most = 0;
	FILE *f = fopen("/proc/net/tcp", "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned port;
		unsigned long unread;
		if (sscanf(line, " %*u: %*8x:%*4x %*8x:%4x %*x %*8x:%8lx", &port, &unread) == 2 &&
		    (int)port == b->port && unread > most)
			most = unread;
	}
	fclose(f);
	return most;
}

void broker_blocked(const struct broker *b)
{
	unsigned long before = 0, now = most_unread(b);
	int64_t until = now_ms() + PATIENCE;
	for (int same = 0; same < 20; same = now && now == before ? same + 1 : 0) {
		ck_assert_msg(now_ms() < until, "the broker is never blocked");
		poll(NULL, 0, 20);
		before = now;
		now = most_unread(b);
	}
}

struct hw_mqtt_conf conf_for(const struct broker *b, int protocol, int qos, const char *client_id)
{
	return (struct hw_mqtt_conf){.host = "127.0.0.1",
	                             .port = b->port,
	                             .protocol = protocol,
	                             .keepalive_s = 30,
	                             .username = "",
	                             .password = "",
	                             .tls_ca = "",
	                             .tls_cert = "",
	                             .tls_key = "",
	                             .client_id = client_id,
	                             .barrier_topic = "heartwheel/t/barrier",
	                             .qos = qos};
}

/* --- a plain client */

struct peer {
	struct mosquitto *m;
	atomic_uint taken;
	unsigned said;
};

static void on_taken(struct mosquitto *m, void *arg, int mid)
{
	struct peer *p = arg;
	(void)m;
	(void)mid;
	atomic_fetch_add(&p->taken, 1);
}

struct peer *peer_new(const struct broker *b)
{
	struct peer *p = calloc(1, sizeof(*p));
	ck_assert_ptr_nonnull(p);
	mosquitto_lib_init();
	p->m = mosquitto_new(NULL, true, p);
	ck_assert_ptr_nonnull(p->m);
	mosquitto_publish_callback_set(p->m, on_taken);
	mosquitto_max_inflight_messages_set(p->m, 1000);
	ck_assert_int_eq(mosquitto_connect(p->m, "127.0.0.1", b->port, 60), MOSQ_ERR_SUCCESS);
	ck_assert_int_eq(mosquitto_loop_start(p->m), MOSQ_ERR_SUCCESS);
	return p;
}

void peer_free(struct peer *p)
{
	mosquitto_disconnect(p->m);
	mosquitto_loop_stop(p->m, false);
	mosquitto_destroy(p->m);
	free(p);
}

void peer_publish(struct peer *p, const char *topic, const void *payload, size_t len, int qos, bool retain)
{
	ck_assert_int_eq(mosquitto_publish(p->m, NULL, topic, (int)len, payload, qos, retain), MOSQ_ERR_SUCCESS);
	p->said++;
	while (p->said - atomic_load(&p->taken) > 500) /* the library's queue is slow when it is long */
		poll(NULL, 0, 1);
}

void peer_say(struct peer *p, const char *topic, const char *text)
{
	peer_publish(p, topic, text, strlen(text), 1, false);
	peer_settle(p);
}

void peer_settle(struct peer *p)
{
	int64_t until = now_ms() + PATIENCE;
	while (atomic_load(&p->taken) < p->said) {
		ck_assert_msg(now_ms() < until, "the broker does not take what is published");
		poll(NULL, 0, 1);
	}
}

/* --- readers */

static void wait_readable(int fd, int64_t until)
{
	int64_t left = until - now_ms();
	struct pollfd p = {fd, POLLIN, 0};
	poll(&p, 1, left > 0 ? (int)left : 0);
}

bool reader_next(struct hw_reader *r, struct hw_reader_event *ev, int ms)
{
	int64_t until = now_ms() + ms;
	hw_reader_release(r);
	while (!hw_reader_take(r, ev)) {
		if (!hw_reader_rest(r))
			continue;
		if (now_ms() >= until)
			return false;
		wait_readable(hw_reader_fd(r), until);
	}
	return true;
}

struct hw_reader_event reader_await(struct hw_reader *r, enum hw_reader_event_kind kind)
{
	struct hw_reader_event ev = {.kind = kind};
	int64_t until = now_ms() + PATIENCE;
	do
		ck_assert_msg(reader_next(r, &ev, (int)(until - now_ms())), "event %d did not come", (int)kind);
	while (ev.kind != kind);
	return ev;
}

struct hw_reader_event reader_expect(struct hw_reader *r, const char *topic, const char *text)
{
	struct hw_reader_event ev;
	ck_assert_msg(reader_next(r, &ev, PATIENCE), "'%s' on %s did not come", text, topic);
	ck_assert_msg(ev.kind == HW_READER_MESSAGE, "event %d '%s' instead of '%s'", (int)ev.kind, ev.text, text);
	ck_assert_uint_eq(ev.topic_len, strlen(topic));
	ck_assert_int_eq(memcmp(ev.topic, topic, ev.topic_len), 0);
	ck_assert_msg(ev.payload_len == strlen(text) && memcmp(ev.payload, text, ev.payload_len) == 0,
	              "'%.*s' instead of '%s'", (int)ev.payload_len, (const char *)ev.payload, text);
	return ev;
}

struct hw_reader *reader_up(const struct hw_mqtt_conf *conf, const char *filter, bool replay)
{
	struct hw_mqtt_filter f = {.filter = filter, .replay = replay};
	struct hw_reader *r;
	struct hw_reader_event ev;
	ck_assert_int_eq(hw_reader_start(&r, conf, &f, 1, NULL, 0, 500), 0);
	ck_assert(reader_next(r, &ev, PATIENCE));
	ck_assert_msg(ev.kind == HW_READER_UP, "event %d '%s' instead of UP", (int)ev.kind, ev.text);
	return r;
}

/* --- publishers */

bool publisher_next(struct hw_publisher *p, struct hw_publisher_event *ev, int ms)
{
	int64_t until = now_ms() + ms;
	while (!hw_publisher_take(p, ev)) {
		if (now_ms() >= until)
			return false;
		wait_readable(hw_publisher_fd(p), until);
	}
	return true;
}

struct hw_publisher_event publisher_await(struct hw_publisher *p, enum hw_publisher_event_kind kind)
{
	struct hw_publisher_event ev;
	ck_assert_msg(publisher_next(p, &ev, PATIENCE), "event %d did not come", (int)kind);
	ck_assert_msg(ev.kind == kind, "event %d '%s' instead of %d", (int)ev.kind, ev.text, (int)kind);
	return ev;
}

struct hw_publisher *publisher_up(const struct hw_mqtt_conf *conf)
{
	struct hw_publisher *p;
	ck_assert_int_eq(hw_publisher_start(&p, conf, "heartwheel/t/status", "gone", 4), 0);
	publisher_await(p, HW_PUBLISHER_UP);
	return p;
}

bool publisher_retain(struct hw_publisher *p, const char *topic, const void *payload, size_t len, uint64_t publish_id)
{
	uint64_t subject = 1; /* all messages on one topic have one subject */
	for (const char *c = topic; *c; c++)
		subject = subject * 31 + (unsigned char)*c;
	return hw_publisher_publish(p, &(struct hw_publication){.topic = topic,
	                                                        .payload = payload,
	                                                        .len = len,
	                                                        .retain = true,
	                                                        .qos = 1,
	                                                        .publish_id = publish_id,
	                                                        .subject = subject});
}

int socket_to(int port)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in a;
		socklen_t len = sizeof(a);
		if (getpeername(fd, (struct sockaddr *)&a, &len) == 0 && a.sin_family == AF_INET &&
		    ntohs(a.sin_port) == port)
			return fd;
	}
	ck_abort_msg("not connected");
	return -1;
}
