/* SPDX-License-Identifier: MIT */
/*
 * The keyspace listener with a server that is not Redis: whatever arrives on the subscribed connection ends that
 * connection and nothing else. The behaviour with a real Redis is in test_keyspace.py and test_keyspace_losses.py.
 */
#include <check.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../suite.h"
#include "redis/keyspace.h"

static char dir[] = "/tmp/hw-keyspace-XXXXXX";
static char path[64];

struct seen {
	struct event_base *base;
	unsigned downs;
	char why[512];
	bool up;
};

static const char *const junk[] = {
	"+OK\r\n",
	":1\r\n",
	"$3\r\nabc\r\n",
	"$-1\r\n",
	"*-1\r\n",
	"*0\r\n",
	"*1\r\n$7\r\nmessage\r\n",
	"*3\r\n:1\r\n:2\r\n:3\r\n",
	"*3\r\n$-1\r\n$1\r\na\r\n$1\r\nb\r\n",
	"*3\r\n*-1\r\n$1\r\na\r\n$1\r\nb\r\n",
	"*3\r\n$7\r\nmessage\r\n:1\r\n:1\r\n",
	"*3\r\n$7\r\nmessage\r\n$-1\r\n$1\r\nb\r\n",
	"*3\r\n*0\r\n$1\r\na\r\n$1\r\nb\r\n",
	"*3\r\n+message\r\n$1\r\na\r\n$1\r\nb\r\n",
	"*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n$1\r\nb\r\n",
	"*3\r\n$12\r\npunsubscribe\r\n$1\r\na\r\n:0\r\n",
	"*2\r\n$4\r\npong\r\n$0\r\n\r\n",
};

/* Sends `text` to each subscriber, and ":-2" for any other line, which requests a time to live. */
static void serve(int fd, const char *text)
{
	char buf[8192];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int c = accept(fd, NULL, NULL);
		if (c < 0)
			_exit(1);
		if (fork() == 0) {
			ssize_t n;
			while ((n = read(c, buf, sizeof(buf) - 1)) > 0) {
				buf[n] = '\0';
				const char *say = strstr(buf, "SUBSCRIBE") ? text
				                  : strstr(buf, "PTTL")    ? ":-2\r\n"
				                                           : "";
				if (write(c, say, strlen(say)) < 0)
					break;
			}
			_exit(0);
		}
		close(c);
	}
}

static pid_t start_server(const char *text)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		serve(fd, text);
	close(fd);
	return pid;
}

static void on_link(void *arg, bool up, const char *why)
{
	struct seen *s = arg;
	s->up |= up;
	s->downs += !up;
	snprintf(s->why, sizeof(s->why), "%s", why);
	event_base_loopbreak(s->base);
}

static void on_sight(void *arg, bool sees)
{
	(void)arg, (void)sees;
}

static void on_key(void *arg, unsigned why, const char *id, size_t id_len, int64_t ttl_ms)
{
	(void)arg, (void)why, (void)id, (void)id_len, (void)ttl_ms;
	ck_abort_msg("a look that nobody asked for");
}

static void on_loss(void *arg)
{
	(void)arg;
}

static void on_back(void *arg, const char *id, size_t id_len)
{
	(void)arg, (void)id, (void)id_len;
	ck_abort_msg("a device that nobody spoke of");
}

static void on_trouble(void *arg, const char *what)
{
	(void)arg, (void)what;
}

static const struct hw_keyspace_ops ops = {on_link, on_sight, on_key, on_loss, on_back, on_trouble};

START_TEST(what_nobody_asked_for)
{
	static const uint8_t key[16] = {1};
	static const char *const filter[] = {"a/{id}"};
	const struct hw_monitor_conf mc = {.max_devices = 10, .readers = 1, .ttl_factor = 3};
	const struct hw_group_spec group = {
		.name = "g", .heartbeat = filter, .n_heartbeat = 1, .timeout_ms = 1000, .timeout_max_ms = 1000};
	struct seen s = {.base = event_base_new()};
	struct hw_monitor *m = hw_monitor_new(&mc, &group, 1, key, (struct hw_now){{1}, 1});
	pid_t server = start_server(junk[_i]);
	const struct hw_redis_conf conf = {.at.host = "",
	                                   .at.unix_socket = path,
	                                   .at.username = "",
	                                   .at.password = "",
	                                   .key_prefix = "device:",
	                                   .node_id = "n",
	                                   .run_id = 7};
	struct hw_keyspace *ks = hw_keyspace_new(s.base, &(struct hw_keyspace_conf){.redis = &conf}, NULL, m, &ops, &s);
	ck_assert_ptr_nonnull(ks);
	hw_keyspace_loaded(ks);
	for (int turns = 0; s.downs == 0 && turns < 1000; turns++)
		event_base_loop(s.base, EVLOOP_ONCE);
	ck_assert_msg(strstr(s.why, "an answer without a request") != NULL, "%s", s.why);
	ck_assert(!s.up && !hw_keyspace_up(ks));
	hw_keyspace_free(ks);
	hw_monitor_free(m);
	event_base_free(s.base);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}
END_TEST

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(dir))
		return 1;
	Suite *s = suite_create("keyspace");
	TCase *t = tcase_create("strangers");
	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, what_nobody_asked_for, 0, (int)(sizeof(junk) / sizeof(junk[0])));
	suite_add_tcase(s, t);
	int status = suite_run(s);
	unlink(path);
	snprintf(path, sizeof(path), "%s/s", dir);
	unlink(path);
	rmdir(dir);
	return status;
}
