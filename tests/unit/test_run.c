/* SPDX-License-Identifier: MIT */
/* What every daemon does: the pid file, the log, the background, the loop with its signals. */
#include <check.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
	ck_assert_uint_eq(count("one?error: two"), 1);
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
	ck_assert_uint_eq(count("no regular file; logging goes on where it was"), 1);
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
