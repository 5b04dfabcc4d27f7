/* SPDX-License-Identifier: MIT */
/* Reads a password from the first line of a file. Overwrites the bytes on the stack afterwards. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/file.h"

#define SECRET_MAX 4095

/* Reads up to the end of the file. Returns the number of bytes or -errno. */
static ssize_t read_whole(int fd, char *buf, size_t cap)
{
	size_t n = 0;
	while (n < cap) {
		ssize_t got = read(fd, buf + n, cap - n);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0)
			break;
		if (got > 0)
			n += (size_t)got;
	}
	return (ssize_t)n;
}

static int cut_line(char *buf, size_t n)
{
	char *end = memchr(buf, '\n', n);
	size_t len = end ? (size_t)(end - buf) : n;
	if (len && buf[len - 1] == '\r')
		len--;
	buf[len] = '\0';
	if (len > SECRET_MAX)
		return -EFBIG;
	return strlen(buf) == len ? 0 : -EINVAL;
}

char *hw_conf_read_secret(const char *path)
{
	char buf[SECRET_MAX + 4], *secret = NULL; /* room for CR, LF and one byte that shows a longer line */
	int rc, fd = hw_file_open(path);
	ssize_t n;
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	n = read_whole(fd, buf, sizeof(buf) - 1);
	close(fd);
	rc = n < 0 ? (int)n : cut_line(buf, (size_t)n);
	if (rc == 0 && !(secret = strdup(buf)))
		rc = -ENOMEM;
	explicit_bzero(buf, sizeof(buf));
	errno = -rc;
	return secret;
}

bool hw_conf_secret_changed(const char *path, const char *running)
{
	char *now = *path ? hw_conf_read_secret(path) : NULL;
	bool changed = now && running && strcmp(now, running) != 0;
	if (now)
		explicit_bzero(now, strlen(now));
	free(now);
	return changed;
}
