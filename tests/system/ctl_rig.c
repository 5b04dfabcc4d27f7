/* SPDX-License-Identifier: MIT */
#include "ctl_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../suite.h"

struct server s;
char ctl_program[4096];
char out[1 << 20], err[65536];

void rig_set_up(void)
{
	server_start(&s, false);
	server_see(&s);
	/* heartwheelctl uses the machine's wall clock. */
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	s.now.wall_ms = (int64_t)t.tv_sec * 1000;
}

void rig_tear_down(void)
{
	server_stop(&s);
}

bool drain(int fd, char *text, size_t cap)
{
	size_t n = strlen(text);
	ssize_t got = read(fd, text + n, cap - 1 - n);
	if (got > 0)
		text[n + (size_t)got] = '\0';
	return got > 0 || (got < 0 && errno == EAGAIN);
}

/* Waits for the program with the loop turning; its exit status. */
static int await(pid_t pid, int out_fd, int err_fd)
{
	long long since = clock_ms();
	bool out_open = true, err_open = err_fd >= 0;
	int status;
	*out = *err = '\0';
	fcntl(out_fd, F_SETFL, O_NONBLOCK);
	if (err_fd >= 0)
		fcntl(err_fd, F_SETFL, O_NONBLOCK);
	while (out_open || err_open) {
		struct pollfd p[2] = {{.fd = out_open ? out_fd : -1, .events = POLLIN},
		                      {.fd = err_open ? err_fd : -1, .events = POLLIN}};
		server_turn(&s);
		poll(p, 2, 1);
		out_open = out_open && drain(out_fd, out, sizeof(out));
		err_open = err_open && drain(err_fd, err, sizeof(err));
		ck_assert(!too_late(since));
	}
	close(out_fd);
	if (err_fd >= 0)
		close(err_fd);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "died by signal %d: %s", WTERMSIG(status), err);
	return WEXITSTATUS(status);
}

int ctl_in(const char *locale, const char *args)
{
	int o[2], e[2];
	char command[8192];
	ck_assert_int_eq(pipe2(o, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(e, O_CLOEXEC), 0);
	snprintf(command, sizeof(command), "LC_ALL=%s exec '%s' -s '%s' %s", locale, ctl_program, s.path, args);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(o[1], 1);
		dup2(e[1], 2);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(o[1]);
	close(e[1]);
	return await(pid, o[0], e[0]);
}

int ctl(const char *args)
{
	return ctl_in("C.UTF-8", args);
}

int ctl_on_terminal(const char *args, int columns, const char *locale)
{
	char command[8192];
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
	ck_assert_int_ge(terminal, 0);
	ck_assert_int_eq(grantpt(terminal), 0);
	ck_assert_int_eq(unlockpt(terminal), 0);
	int inner = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(inner, 0);
	ck_assert_int_eq(ioctl(inner, TIOCSWINSZ, &size), 0);
	snprintf(command, sizeof(command), "LC_ALL=%s exec '%s' -s '%s' %s", locale, ctl_program, s.path, args);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(inner, 1);
		dup2(inner, 2);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(inner);
	return await(pid, terminal, -1);
}

void transition(const char *id, enum hw_state state, enum hw_reason reason)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	int64_t now_ms = (int64_t)t.tv_sec * 1000;
	hw_control_event(s.control, &(struct hw_event){.id = id,
	                                               .id_len = strlen(id),
	                                               .group = "fast",
	                                               .group_len = 4,
	                                               .state = state,
	                                               .reason = reason,
	                                               .time_ms = now_ms - 5000,
	                                               .last_seen_ms = now_ms - 7000,
	                                               .seq = 1});
}

int ctl_run(Suite *suite)
{
	const char *named = getenv("HW_CTL"), *build = getenv("HW_BUILDDIR");
	snprintf(ctl_program, sizeof(ctl_program), "%s%s",
	         named   ? named
	         : build ? build
	                 : ".",
	         named ? "" : "/heartwheelctl");
	if (access(ctl_program, X_OK) == 0)
		return suite_run(suite);
	fprintf(stderr, "%s is not there\n", ctl_program);
	return 77;
}
