/* SPDX-License-Identifier: MIT */
/* See background.h. */
#include "run/background.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Waits in the parent until the child is ready or has ended. */
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

int hw_background_enter(void)
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

void hw_background_ready(int fd)
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
