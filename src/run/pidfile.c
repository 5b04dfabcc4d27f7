/* SPDX-License-Identifier: MIT */
/* See pidfile.h. The lock is a flock(): the kernel releases it when the process ends, and a child shares it. */
#include "run/pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "heartwheel/print.h"

/* If a daemon is killed between fork() and execve() of a program, the forked process keeps the lock until its
 * execve(). So if the process in the pid file no longer exists, the start waits up to one second for the lock. */
#define TRIES   50
#define WAIT_NS 20000000

/* Locks the file. Returns -EAGAIN if another process has the lock, and the pid that the file names in *holder. */
static int take(int fd, pid_t *holder)
{
	char text[32] = "";
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	int error = errno;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	*holder = n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
	return error == EWOULDBLOCK ? -EAGAIN : -error;
}

int hw_pidfile_lock(const char *path, const struct hw_user *u, pid_t *holder)
{
	int fd = hw_user_open(u, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return fd;
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EMEDIUMTYPE;
	}
	int rc = take(fd, holder);
	for (int n = 0; n < TRIES && rc == -EAGAIN && *holder > 0 && kill(*holder, 0) < 0 && errno == ESRCH; n++) {
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
		rc = take(fd, holder);
	}
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

int hw_pidfile_write(int fd)
{
	char text[32];
	size_t n = hw_print(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) < 0)
		return -errno;
	return pwrite(fd, text, n, 0) == (ssize_t)n ? 0 : -EIO;
}

void hw_pidfile_remove(const char *path, int fd)
{
	if (fd < 0)
		return;
	/* The file is removed before the lock is released. Otherwise another process could lock a file that is then
	 * removed. If the directory belongs to another user, an empty file stays. */
	if (unlink(path) < 0 && ftruncate(fd, 0) < 0)
		(void)errno;
	close(fd);
}
