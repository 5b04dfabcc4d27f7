/* SPDX-License-Identifier: MIT */
/* See process.h. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HW_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

int hw_user_find(struct hw_user *u, const char *name)
{
	memset(u, 0, sizeof *u);
	if (!name[0] || geteuid() != 0)
		return 0;
	const struct passwd *pw = getpwnam(name);
	if (!pw)
		return -ENOENT;
	u->drop = true;
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	snprintf(u->name, sizeof u->name, "%s", name);
	return 0;
}

int hw_user_become(const struct hw_user *u)
{
	if (!u->drop)
		return 0;
	if (initgroups(u->name, u->gid) || setgid(u->gid) || setuid(u->uid))
		return -errno;
	if (u->uid != 0 && setuid(0) == 0)
		return -EPERM; /* it must not be possible to come back */
	return 0;
}

int hw_make_parent(const char *path, const struct hw_user *u)
{
	char dir[4096];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	if (n == 0 || n >= sizeof dir)
		return 0;
	memcpy(dir, path, n);
	dir[n] = '\0';
	if (mkdir(dir, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (u->drop && chown(dir, u->uid, u->gid) < 0)
		return -errno;
	return 0;
}

int hw_pidfile_lock(const char *path, const struct hw_user *u, pid_t *holder)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int error = errno;
		char text[32] = "";
		ssize_t n = pread(fd, text, sizeof text - 1, 0);
		*holder = n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
		close(fd);
		return error == EWOULDBLOCK ? -EAGAIN : -error;
	}
	if (u->drop && fchown(fd, u->uid, u->gid) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int hw_pidfile_write(int fd)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) < 0)
		return -errno;
	return pwrite(fd, text, (size_t)n, 0) == n ? 0 : -EIO;
}

void hw_pidfile_remove(const char *path, int fd)
{
	if (fd < 0)
		return;
	/* Removed before the lock goes, so that nobody locks a file that is about to vanish. Where the directory is not
	 * ours, an empty file stays. */
	if (unlink(path) < 0 && ftruncate(fd, 0) < 0)
		(void)errno;
	close(fd);
}

/* The parent: waits until the child is ready or gone. */
static _Noreturn void wait_for_child(pid_t child, int fd)
{
	char ready;
	ssize_t n;
	do
		n = read(fd, &ready, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		_exit(0);
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
}

int hw_daemonize(void)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid_t child = fork();
	if (child < 0) {
		int error = errno;
		close(fds[0]);
		close(fds[1]);
		return -error;
	}
	if (child > 0) {
		close(fds[1]);
		wait_for_child(child, fds[0]);
	}
	close(fds[0]);
	if (setsid() < 0)
		return -errno;
	return fds[1];
}

void hw_daemon_ready(int fd)
{
	if (fd < 0)
		return;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		if (null > STDERR_FILENO)
			close(null);
	}
	if (chdir("/") < 0)
		(void)errno;
	ssize_t n = write(fd, "r", 1);
	(void)n;
	close(fd);
}

void hw_notify(const char *state)
{
#ifdef HW_HAVE_SYSTEMD
	sd_notify(0, state);
#else
	(void)state;
#endif
}

long hw_watchdog_ms(void)
{
#ifdef HW_HAVE_SYSTEMD
	uint64_t usec = 0;
	if (sd_watchdog_enabled(0, &usec) > 0)
		return (long)(usec / 1000 / 2);
#endif
	return 0;
}
