/* SPDX-License-Identifier: MIT */
/* What every daemon does: the pid file, the log, the background, the loop with its signals. */
#include <check.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../suite.h"
#include "run/background.h"
#include "run/daemon.h"
#include "run/log.h"
#include "run/loop.h"
#include "run/pidfile.h"
#include "run/user.h"

static char dir[64], path[128];

static void setup(void)
{
	strcpy(dir, "/tmp/hw-run.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sub/file", dir);
}

static void teardown(void)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static size_t contents(char *buf, size_t cap)
{
	int fd = open(path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ssize_t n = read(fd, buf, cap - 1);
	close(fd);
	ck_assert_int_ge(n, 0);
	buf[n] = '\0';
	return (size_t)n;
}

/* --- the pid file */

START_TEST(a_pid_file_is_held_by_one)
{
	const struct hw_user nobody = {0};
	char text[64], pid[64];
	pid_t holder = 0;
	ck_assert_int_eq(hw_make_parent(path, &nobody), 0);
	ck_assert_int_eq(hw_make_parent(path, &nobody), 0);
	int fd = hw_pidfile_lock(path, &nobody, &holder);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(hw_pidfile_lock(path, &nobody, &holder), -EAGAIN);
	ck_assert_int_eq(holder, 0);
	ck_assert_int_eq(hw_pidfile_write(fd), 0);
	ck_assert_int_eq(hw_pidfile_lock(path, &nobody, &holder), -EAGAIN);
	ck_assert_int_eq(holder, getpid());
	contents(text, sizeof(text));
	snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	ck_assert_str_eq(text, pid);
	hw_pidfile_remove(path, fd);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_pid_file_is_no_link)
{
	const struct hw_user nobody = {0};
	char target[128];
	pid_t holder;
	hw_make_parent(path, &nobody);
	snprintf(target, sizeof(target), "%s/target", dir);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(hw_pidfile_lock(path, &nobody, &holder), -ELOOP);
}
END_TEST

/* --- the log */

static void log_to_file(struct hw_log *l, int level)
{
	const struct hw_user nobody = {0};
	hw_make_parent(path, &nobody);
	hw_log_init(l, "test");
	ck_assert_int_eq(hw_log_open(l, path, level, NULL), 0);
}

static unsigned count(const char *what)
{
	char text[8192];
	unsigned n = 0;
	contents(text, sizeof(text));
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

START_TEST(less_than_the_level_is_not_written)
{
	struct hw_log l;
	log_to_file(&l, HW_LOG_NOTICE);
	hw_log(&l, HW_LOG_INFO, "low");
	hw_log(&l, HW_LOG_NOTICE, "high");
	hw_log_close(&l);
	ck_assert_uint_eq(count("low"), 0);
	ck_assert_uint_eq(count(" notice: high\n"), 1);
}
END_TEST

START_TEST(a_line_forges_no_other)
{
	struct hw_log l;
	log_to_file(&l, HW_LOG_DEBUG);
	hw_log(&l, HW_LOG_ERROR, "%s", "one\nerror: two");
	hw_log_close(&l);
	ck_assert_uint_eq(count("\n"), 1);
	ck_assert_uint_eq(count("one\\u000aerror: two"), 1);
}
END_TEST

/* CSI, a new line and a change of direction as characters, CSI as a byte; a letter stays. */
START_TEST(a_line_does_nothing_to_a_terminal)
{
	struct hw_log l;
	log_to_file(&l, HW_LOG_DEBUG);
	hw_log(&l, HW_LOG_ERROR, "%s", "x\302\23331m\302\205\u202e\u2066\u2028 \233 \u00e9\177\033.");
	hw_log_limited(&l, 0, HW_LOG_ERROR, "%s", "y\302\233.");
	hw_log_close(&l);
	ck_assert_uint_eq(count("x\\u009b31m\\u0085\\u202e\\u2066\\u2028 \\x9b \u00e9\\u007f\\u001b.\n"), 1);
	ck_assert_uint_eq(count("y\\u009b.\n"), 1);
}
END_TEST

/* Logs `lines` lines to stderr while it is `fd`. */
static void log_to(struct hw_log *l, int fd, int lines)
{
	int was = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	for (int i = 0; i < lines; i++)
		hw_log(l, HW_LOG_NOTICE, "%0300d", i);
	dup2(was, STDERR_FILENO);
	close(was);
}

START_TEST(a_pipe_that_is_not_read_holds_nothing_up)
{
	struct hw_log l;
	int ends[2];
	char text[65536], end[64];
	hw_log_init(&l, "test");
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
	log_to(&l, ends[1], 100);
	ck_assert_uint_ge(l.left_out, 80);
	ck_assert_uint_lt(l.left_out, 100);
	snprintf(end, sizeof(end), "warning: left out %llu log lines", (unsigned long long)l.left_out);
	ck_assert_int_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_gt(read(ends[0], text, sizeof(text)), 0);
	ck_assert_int_eq(fcntl(ends[1], F_SETPIPE_SZ, 65536), 65536);
	log_to(&l, ends[1], 1);
	ck_assert_uint_eq(l.left_out, 0);
	ssize_t n = read(ends[0], text, sizeof(text) - 1);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	ck_assert_ptr_nonnull(strstr(text, end));
	ck_assert_ptr_nonnull(strstr(text, "notice: 000"));
	close(ends[0]);
	close(ends[1]);
}
END_TEST

START_TEST(a_terminal_that_is_not_read_holds_nothing_up)
{
	struct hw_log l;
	int reader, terminal;
	hw_log_init(&l, "test");
	ck_assert_int_eq(openpty(&reader, &terminal, NULL, NULL, NULL), 0);
	log_to(&l, terminal, 1000);
	ck_assert_uint_gt(l.left_out, 0);
	close(reader);
	close(terminal);
}
END_TEST

static int bind_syslog(int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/log", dir);
	unlink(address.sun_path);
	int fd = socket(AF_UNIX, type, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* The next line as syslog gets it, without its time. */
static const char *next_syslog(int fd)
{
	static char text[4096];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	if (n < 0)
		return NULL;
	text[n] = '\0';
	ck_assert_int_gt(n, 20);
	ck_assert_mem_eq(text, "<29>", 4);
	ck_assert_int_eq(text[4 + 15], ' '); /* Nov 27 16:43:56 */
	return text + 4 + 16;
}

START_TEST(a_syslog_that_is_not_read_holds_nothing_up)
{
	struct hw_log l;
	char where[96], want[128];
	const char *line, *last = NULL;
	snprintf(where, sizeof(where), "%s/log", dir);
	hw_log_init(&l, "test");
	l.syslog_path = where;
	int fd = bind_syslog(SOCK_DGRAM);
	ck_assert_int_eq(hw_log_open(&l, "syslog", HW_LOG_DEBUG, NULL), 0);
	for (int i = 0; i < 5000; i++)
		hw_log(&l, HW_LOG_NOTICE, "line %d", i);
	ck_assert_uint_gt(l.left_out, 0);
	snprintf(want, sizeof(want), "test[%ld]: line 0", (long)getpid());
	ck_assert_str_eq(next_syslog(fd), want);
	while (next_syslog(fd))
		;
	snprintf(want, sizeof(want), "test[%ld]: left out %llu log lines", (long)getpid(),
	         (unsigned long long)l.left_out);
	hw_log(&l, HW_LOG_NOTICE, "after");
	char warning[4096];
	ssize_t n = recv(fd, warning, sizeof(warning) - 1, MSG_DONTWAIT);
	ck_assert_int_gt(n, 20);
	warning[n] = '\0';
	ck_assert_mem_eq(warning, "<28>", 4);
	ck_assert_mem_eq(warning + 20, want, strlen(want));
	while ((line = next_syslog(fd)))
		last = line;
	ck_assert_ptr_nonnull(last);
	ck_assert_ptr_nonnull(strstr(last, "]: after"));
	close(fd);
	hw_log_close(&l);
}
END_TEST

/* A reader of syslog that reads one line each time that the log waits. */
static int slow_fd = -1;

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (slow_fd >= 0 && ms > 0)
		ck_assert_ptr_nonnull(next_syslog(slow_fd));
	return __real_poll(fds, n, ms);
}

/* The socket holds net.unix.max_dgram_qlen lines, 10 without systemd. */
START_TEST(a_syslog_that_is_only_slow_gets_each_line)
{
	enum { LINES = 25 }; /* 15 of them must wait, if the socket holds 10 */
	struct hw_log l;
	char where[96];
	const char *line, *last = NULL;
	snprintf(where, sizeof(where), "%s/log", dir);
	hw_log_init(&l, "test");
	l.syslog_path = where;
	int fd = bind_syslog(SOCK_DGRAM);
	ck_assert_int_eq(hw_log_open(&l, "syslog", HW_LOG_DEBUG, NULL), 0);
	slow_fd = fd;
	for (int i = 0; i < LINES; i++)
		hw_log(&l, HW_LOG_NOTICE, "line %d", i);
	slow_fd = -1;
	ck_assert_uint_eq(l.left_out, 0);
	while ((line = next_syslog(fd)))
		last = line;
	ck_assert_ptr_nonnull(last);
	ck_assert_ptr_nonnull(strstr(last, "]: line 24"));
	close(fd);
	hw_log_close(&l);
}
END_TEST

START_TEST(a_syslog_that_starts_again_gets_the_next_line)
{
	struct hw_log l;
	char where[96];
	snprintf(where, sizeof(where), "%s/log", dir);
	hw_log_init(&l, "test");
	l.syslog_path = where;
	ck_assert_int_eq(hw_log_open(&l, "syslog", HW_LOG_DEBUG, NULL), 0);
	for (int i = 0; i < 2; i++) {
		int fd = bind_syslog(SOCK_DGRAM);
		hw_log(&l, HW_LOG_NOTICE, "line %d", i);
		ck_assert_ptr_nonnull(strstr(next_syslog(fd), i ? "]: line 1" : "]: line 0"));
		close(fd);
	}
	int fd = bind_syslog(SOCK_STREAM);
	ck_assert_int_eq(listen(fd, 1), 0);
	hw_log(&l, HW_LOG_NOTICE, "line 2");
	int stream = accept(fd, NULL, NULL);
	ck_assert_ptr_nonnull(strstr(next_syslog(stream), "]: line 2"));
	close(stream);
	close(fd);
	hw_log(&l, HW_LOG_NOTICE, "no daemon is there");
	ck_assert_uint_eq(l.left_out, 1);
	hw_log_close(&l);
}
END_TEST

START_TEST(repeats_of_a_kind_are_held_back)
{
	struct hw_log l;
	log_to_file(&l, HW_LOG_DEBUG);
	for (int i = 0; i < 100; i++)
		hw_log_limited(&l, HW_LOG_KINDS - 1, HW_LOG_ERROR, "same");
	hw_log_limited(&l, 0, HW_LOG_ERROR, "same");
	ck_assert_uint_eq(count("same"), 2);
	hw_log_limited(&l, HW_LOG_KINDS - 1, HW_LOG_ERROR, "news");
	hw_log_close(&l);
	ck_assert_uint_eq(count("news (99 like it since)"), 1);
}
END_TEST

START_TEST(what_differs_each_time_is_held_back_too)
{
	struct hw_log l;
	log_to_file(&l, HW_LOG_DEBUG);
	for (int i = 0; i < 1000; i++)
		hw_log_limited(&l, 3, HW_LOG_ERROR, "refused: number %d", i);
	hw_log_limited(&l, 4, HW_LOG_ERROR, "refused: another kind");
	for (int i = 0; i < 100; i++)
		hw_log_limited(&l, 5, HW_LOG_ERROR, i % 2 ? "in turns: one" : "in turns: the other");
	hw_log_limited(&l, 5, HW_LOG_ERROR, "in turns: and news");
	hw_log_close(&l);
	ck_assert_uint_eq(count("refused: number"), HW_LOG_NEWS);
	ck_assert_uint_eq(count("refused: another kind"), 1);
	ck_assert_uint_eq(count("in turns: "), 3);
	ck_assert_uint_eq(count("in turns: and news (98 like it since)"), 1);
	ck_assert_uint_eq(l.limit[3].held, 1000 - HW_LOG_NEWS);
}
END_TEST

START_TEST(a_log_that_was_moved_is_opened_anew)
{
	struct hw_log l;
	char moved[160];
	log_to_file(&l, HW_LOG_DEBUG);
	hw_log(&l, HW_LOG_ERROR, "before");
	snprintf(moved, sizeof(moved), "%s.1", path);
	ck_assert_int_eq(rename(path, moved), 0);
	ck_assert_int_eq(hw_log_reopen(&l), 0);
	hw_log(&l, HW_LOG_ERROR, "after");
	hw_log_close(&l);
	ck_assert_uint_eq(count("before"), 0);
	ck_assert_uint_eq(count("after"), 1);
}
END_TEST

START_TEST(a_log_is_no_fifo)
{
	const struct hw_user nobody = {0};
	struct hw_log l;
	char moved[160];
	hw_log_init(&l, "test");
	hw_make_parent(path, &nobody);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	for (int reader = -1, i = 0; i < 2; i++, reader = open(path, O_RDONLY | O_NONBLOCK)) {
		ck_assert(i == 0 || reader >= 0);
		ck_assert_int_eq(hw_log_open(&l, path, HW_LOG_DEBUG, &nobody), -EMEDIUMTYPE);
		ck_assert_int_eq(hw_log_try(path), -EMEDIUMTYPE);
	}
	ck_assert_int_eq(hw_log_open(&l, "/dev/null", HW_LOG_DEBUG, &nobody), 0);
	hw_log_close(&l);
	ck_assert_int_eq(unlink(path), 0);
	log_to_file(&l, HW_LOG_DEBUG);
	snprintf(moved, sizeof(moved), "%s.1", path);
	ck_assert_int_eq(rename(path, moved), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(hw_log_reopen(&l), -EMEDIUMTYPE);
	hw_log_close(&l);
	ck_assert_int_eq(rename(moved, path), 0);
	ck_assert_uint_eq(count("not a regular file; logging continues in the old file"), 1);
}
END_TEST

START_TEST(a_log_goes_to_the_own_pipe)
{
	struct hw_log l;
	int pipe_of[2], was = dup(STDERR_FILENO);
	ck_assert_int_eq(pipe(pipe_of), 0);
	ck_assert_int_ge(dup2(pipe_of[1], STDERR_FILENO), 0);
	hw_log_init(&l, "test");
	int rc = hw_log_open(&l, "/dev/stderr", HW_LOG_DEBUG, NULL);
	dup2(was, STDERR_FILENO);
	ck_assert_int_eq(rc, 0);
	hw_log_close(&l);
}
END_TEST

START_TEST(a_pid_file_is_no_fifo)
{
	const struct hw_user nobody = {0};
	pid_t holder;
	hw_make_parent(path, &nobody);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(hw_pidfile_lock(path, &nobody, &holder), -EMEDIUMTYPE);
}
END_TEST

/* --- the background */

/* What the foreground's process exits with, when its child does `child` and exits with `status`. */
static int foreground(bool ready, int status)
{
	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int fd = hw_background_enter();
		if (fd >= 0 && ready)
			hw_background_ready(fd);
		_exit(fd < 0 ? 99 : status);
	}
	int got;
	ck_assert_int_eq(waitpid(pid, &got, 0), pid);
	ck_assert(WIFEXITED(got));
	return WEXITSTATUS(got);
}

START_TEST(the_foreground_ends_when_the_child_is_ready_or_gone)
{
	ck_assert_int_eq(foreground(true, 7), 0);
	ck_assert_int_eq(foreground(false, 7), 7);
	ck_assert_int_eq(foreground(false, 0), 1);
}
END_TEST

START_TEST(a_daemon_begins_and_ends)
{
	struct hw_daemon d, other;
	hw_daemon_init(&d, "test", "section");
	ck_assert_int_eq(hw_daemon_begin(&d, path, "stderr", HW_LOG_INFO, true), 0);
	ck_assert_uint_eq(count("\n"), 0);
	hw_daemon_init(&other, "test", "section");
	ck_assert_int_eq(hw_daemon_begin(&other, path, "stderr", HW_LOG_INFO, true), -EAGAIN);
	ck_assert_int_eq(hw_daemon_become(&d), 0);
	ck_assert_uint_eq(count("\n"), 1);
	ck_assert(d.log.starting);
	hw_daemon_ready(&d);
	ck_assert(!d.log.starting);
	hw_daemon_end(&d);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* --- the loop */

struct seen {
	struct hw_loop loop;
	unsigned ticks, reloads, reopens, turns, turned;
	int stopped_by;
};

static void on_tick(void *arg)
{
	struct seen *s = arg;
	switch (++s->ticks) {
	case 1:
		raise(SIGHUP);
		break;
	case 2:
		raise(SIGUSR1);
		break;
	default:
		raise(SIGINT);
	}
}

static void on_stop(void *arg, int number)
{
	struct seen *s = arg;
	s->stopped_by = number;
	hw_loop_stop(&s->loop);
}

static void on_reload(void *arg)
{
	((struct seen *)arg)->reloads++;
}

static void on_reopen(void *arg)
{
	((struct seen *)arg)->reopens++;
}

static void on_turn(void *arg)
{
	((struct seen *)arg)->turns++;
}

static void on_turned(void *arg, double cpu_s)
{
	ck_assert(cpu_s >= 0);
	((struct seen *)arg)->turned++;
}

START_TEST(the_loop_ticks_and_hears_signals)
{
	static const struct hw_loop_ops ops = {on_tick, on_stop, on_reload, on_reopen, on_turn, on_turned};
	struct seen s = {0};
	ck_assert_int_eq(hw_loop_init(&s.loop, &ops, &s), 0);
	ck_assert_int_eq(hw_loop_start(&s.loop), 0);
	hw_loop_tick_every(&s.loop, 1);
	ck_assert_int_eq(hw_loop_run(&s.loop), 0);
	ck_assert_int_eq(s.stopped_by, SIGINT);
	ck_assert_uint_ge(s.ticks, 3);
	ck_assert_uint_eq(s.reloads, 1);
	ck_assert_uint_eq(s.reopens, 1);
	ck_assert_uint_ge(s.turns, 3);
	ck_assert_uint_eq(s.turns, s.turned);
	hw_loop_fini(&s.loop);
	hw_loop_fini(&s.loop);
}
END_TEST

/* libevent calls this again and again: the input stands at its bound, and nothing is taken. */
static void on_full(struct bufferevent *bev, void *arg)
{
	struct seen *s = arg;
	(void)bev;
	if (s->turns >= 5 || ++s->ticks >= 10000)
		hw_loop_stop(&s->loop);
	else if (s->ticks % 10 == 0)
		hw_loop_end_turn(&s->loop);
}

START_TEST(a_turn_ends_while_a_callback_stays_active)
{
	static const struct hw_loop_ops ops = {.on_turn = on_turn, .on_turned = on_turned};
	struct seen s = {0};
	struct bufferevent *pair[2];
	ck_assert_int_eq(hw_loop_init(&s.loop, &ops, &s), 0);
	ck_assert_int_eq(bufferevent_pair_new(s.loop.base, 0, pair), 0);
	bufferevent_setcb(pair[1], on_full, NULL, NULL, &s);
	bufferevent_setwatermark(pair[1], EV_READ, 0, 4);
	bufferevent_enable(pair[1], EV_READ);
	ck_assert_int_eq(bufferevent_write(pair[0], "12345678", 8), 0);
	ck_assert_int_eq(hw_loop_run(&s.loop), 0);
	ck_assert_uint_eq(s.turns, 5);
	ck_assert_uint_eq(s.turned, 5);
	bufferevent_free(pair[0]);
	bufferevent_free(pair[1]);
	event_base_loop(s.loop.base, EVLOOP_NONBLOCK); /* the callback that is still active holds the pair */
	hw_loop_fini(&s.loop);
}
END_TEST

START_TEST(an_unknown_user_is_an_error_for_root)
{
	struct hw_user u;
	ck_assert_int_eq(hw_user_find(&u, "no-such-user-here"), geteuid() == 0 ? -ENOENT : 0);
	ck_assert(!u.drop);
	ck_assert_int_eq(hw_user_find(&u, ""), 0);
	ck_assert_int_eq(hw_user_become(&u), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("run");
	TCase *tc = tcase_create("run");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_pid_file_is_held_by_one);
	tcase_add_test(tc, a_pid_file_is_no_link);
	tcase_add_test(tc, less_than_the_level_is_not_written);
	tcase_add_test(tc, a_line_forges_no_other);
	tcase_add_test(tc, a_line_does_nothing_to_a_terminal);
	tcase_add_test(tc, a_pipe_that_is_not_read_holds_nothing_up);
	tcase_add_test(tc, a_terminal_that_is_not_read_holds_nothing_up);
	tcase_add_test(tc, a_syslog_that_is_not_read_holds_nothing_up);
	tcase_add_test(tc, a_syslog_that_is_only_slow_gets_each_line);
	tcase_add_test(tc, a_syslog_that_starts_again_gets_the_next_line);
	tcase_add_test(tc, repeats_of_a_kind_are_held_back);
	tcase_add_test(tc, what_differs_each_time_is_held_back_too);
	tcase_add_test(tc, a_log_that_was_moved_is_opened_anew);
	tcase_add_test(tc, a_log_is_no_fifo);
	tcase_add_test(tc, a_log_goes_to_the_own_pipe);
	tcase_add_test(tc, a_pid_file_is_no_fifo);
	tcase_add_test(tc, the_foreground_ends_when_the_child_is_ready_or_gone);
	tcase_add_test(tc, a_daemon_begins_and_ends);
	tcase_add_test(tc, the_loop_ticks_and_hears_signals);
	tcase_add_test(tc, a_turn_ends_while_a_callback_stays_active);
	tcase_add_test(tc, an_unknown_user_is_an_error_for_root);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
