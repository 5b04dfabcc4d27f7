/* SPDX-License-Identifier: MIT */
/*
 * Passes a message to a program on standard input. The program runs without a shell, and in a process group of its own,
 * so that it is killed together with its children. Exit status 0 means success, even if the program has not read all of
 * its input. Its standard output is discarded; its standard error is the daemon's.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "alert/send/exec.h"
#include "alert/send/note.h"

#define REAP_PAUSE_MS 2
#define REAP_TRIES    50

struct hw_exec {
	struct event_base *base; /* borrowed */
	hw_exec_done *done;
	void *arg;
	struct event *on_child, *deadline, *writable; /* `writable` exists while bytes are left to write */
	pid_t pid;                                    /* 0: no program runs */
	int in;                                       /* the program's standard input; -1: closed */
	const char *text;
	size_t left;
	int64_t timeout_ms;
	bool late;
};

static void close_input(struct hw_exec *p)
{
	if (p->writable)
		event_free(p->writable);
	p->writable = NULL;
	if (p->in >= 0)
		close(p->in);
	p->in = -1;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct hw_exec *p = arg;
	(void)what;
	ssize_t n = write(fd, p->text, p->left);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		p->text += n;
		p->left -= (size_t)n;
	}
	if (n < 0 || p->left == 0)
		close_input(p); /* the program need not read everything */
}

static void on_child(evutil_socket_t number, short what, void *arg)
{
	struct hw_exec *p = arg;
	char why[64];
	int status;
	(void)number;
	(void)what;
	if (p->pid == 0 || waitpid(p->pid, &status, WNOHANG) != p->pid)
		return;
	p->pid = 0;
	close_input(p);
	event_del(p->on_child);
	event_del(p->deadline);
	if (p->late)
		snprintf(why, sizeof(why), "it was still running after %.1f s and was killed",
		         (double)p->timeout_ms / 1000);
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "it was killed by signal %d", WTERMSIG(status));
	else
		snprintf(why, sizeof(why), "it ended with status %d", WEXITSTATUS(status));
	bool arrived = !p->late && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	p->done(p->arg, WIFEXITED(status) ? WEXITSTATUS(status) : HW_EXEC_NO_STATUS, arrived ? NULL : why);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct hw_exec *p = arg;
	(void)fd;
	(void)what;
	p->late = true;
	kill(-p->pid, SIGKILL); /* reaped by on_child() */
}

struct hw_exec *hw_exec_new(struct event_base *base, hw_exec_done *done, void *arg)
{
	struct hw_exec *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct hw_exec){.base = base, .done = done, .arg = arg, .in = -1};
	p->on_child = evsignal_new(base, SIGCHLD, on_child, p);
	p->deadline = evtimer_new(base, on_deadline, p);
	if (p->on_child && p->deadline)
		return p;
	hw_exec_free(p);
	return NULL;
}

/* Kills the program and waits for its end. Called when a receiver is removed. If this process continues, no other code
 * waits for the program. The wait is limited, because the program may hang in the kernel. */
static void end_program(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = REAP_PAUSE_MS * 1000000};
	kill(-pid, SIGKILL);
	for (int i = 0; waitpid(pid, NULL, WNOHANG) == 0 && i < REAP_TRIES; i++)
		nanosleep(&pause, NULL);
}

void hw_exec_free(struct hw_exec *p)
{
	if (!p)
		return;
	if (p->pid)
		end_program(p->pid);
	close_input(p);
	if (p->on_child)
		event_free(p->on_child);
	if (p->deadline)
		event_free(p->deadline);
	free(p);
}

/* Sets the child's descriptors: `in`, /dev/null, the daemon's standard error, and no others. */
static int file_actions(posix_spawn_file_actions_t *a, int in)
{
	int rc = posix_spawn_file_actions_adddup2(a, in, STDIN_FILENO);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(a, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
#if __GLIBC_PREREQ(2, 34)
	/* Libraries open some descriptors without O_CLOEXEC. */
	if (!rc)
		rc = posix_spawn_file_actions_addclosefrom_np(a, STDERR_FILENO + 1);
#endif
	return rc;
}

/* Sets the signals of the child: an empty signal mask and the default SIGPIPE. */
static int attributes(posix_spawnattr_t *a)
{
	sigset_t none, pipe_only;
	sigemptyset(&none);
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	int rc = posix_spawnattr_setflags(a, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!rc)
		rc = posix_spawnattr_setpgroup(a, 0);
	if (!rc)
		rc = posix_spawnattr_setsigmask(a, &none);
	return rc ? rc : posix_spawnattr_setsigdefault(a, &pipe_only);
}

#define VARIABLES_MAX 32

/* Sets the child's environment: PATH, locale and time zone. The daemon's other variables may be secret. */
static void fill_environment(char *to[VARIABLES_MAX + 3], char *variable)
{
	static const char *const passed[] = {"PATH=", "LANG=", "LC_", "TZ="};
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	size_t n = 0;
	if (!getenv("PATH"))
		to[n++] = path;
	for (char **v = environ; *v && n < VARIABLES_MAX; v++)
		for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
			if (strncmp(*v, passed[i], strlen(passed[i])) == 0)
				to[n++] = *v;
	to[n++] = variable;
	to[n] = NULL;
}

static int spawn(struct hw_exec *p, const char *path, char *variable, int in)
{
	char *argv[] = {(char *)(uintptr_t)path, NULL}, *variables[VARIABLES_MAX + 3];
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	fill_environment(variables, variable);
	int rc = posix_spawn_file_actions_init(&files);
	if (rc)
		return -rc;
	rc = posix_spawnattr_init(&attr);
	if (!rc) {
		rc = file_actions(&files, in);
		if (!rc)
			rc = attributes(&attr);
		if (!rc)
			rc = posix_spawn(&p->pid, path, &files, &attr, argv, variables);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&files);
	if (rc)
		p->pid = 0;
	return -rc;
}

int hw_exec_start(struct hw_exec *p, const char *path, const struct hw_note *note, char *variable, int64_t timeout_ms)
{
	struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	int fds[2], rc;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	p->in = fds[1];
	p->text = note->text;
	p->left = note->len;
	p->timeout_ms = timeout_ms;
	p->late = false;
	p->writable = event_new(p->base, p->in, EV_WRITE | EV_PERSIST, on_writable, p);
	/* SIGCHLD is watched before the child starts, so that the end of the child is not missed. */
	rc = p->writable && !event_add(p->writable, NULL) && !event_add(p->on_child, NULL) &&
	                     !event_add(p->deadline, &limit)
	             ? spawn(p, path, variable, fds[0])
	             : -ENOMEM;
	close(fds[0]);
	if (rc) {
		close_input(p);
		event_del(p->on_child);
		event_del(p->deadline);
	}
	return rc;
}
