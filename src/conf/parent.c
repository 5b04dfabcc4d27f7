/* SPDX-License-Identifier: MIT */
/* See parent.h. Walks along the path as path_resolution(7) describes. A buffer contains the rest of the path. */
#include "conf/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40

/* Replaces *dir with a descriptor of `start`. Returns 0 or -errno. */
static int go(int *dir, const char *start)
{
	int fd = openat(*dir, start, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (*dir >= 0)
		close(*dir);
	*dir = fd;
	return 0;
}

/* Puts the target of the link `name` before the rest of the path. */
static int follow(int *dir, const char *name, const struct stat *link, char rest[PATH_MAX])
{
	char target[PATH_MAX], joined[2 * PATH_MAX];
	if (link->st_uid != 0)
		return -ELOOP;
	ssize_t n = readlinkat(*dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	snprintf(joined, sizeof(joined), "%s/%s", target, rest);
	if (strlen(joined) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(rest, joined, strlen(joined) + 1);
	return *rest == '/' ? go(dir, "/") : 0;
}

/* Takes the first element off the rest. */
static int step(int *dir, char rest[PATH_MAX], int *links)
{
	char name[PATH_MAX];
	struct stat st;
	char *from = rest + strspn(rest, "/");
	size_t n = strcspn(from, "/");
	memcpy(name, from, n);
	name[n] = '\0';
	memmove(rest, from + n, strlen(from + n) + 1);
	if (!*name)
		return 0;
	if (fstatat(*dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return go(dir, name);
	return ++*links > LINKS_MAX ? -ELOOP : follow(dir, name, &st, rest);
}

int hw_parent_open(const char *path, const char **name)
{
	char rest[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	int dir = AT_FDCWD, links = 0;
	*name = slash ? slash + 1 : path;
	if (!**name)
		return -EINVAL;
	if (n >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(rest, path, n);
	rest[n] = '\0';
	int rc = go(&dir, *path == '/' ? "/" : ".");
	while (rc == 0 && *rest)
		rc = step(&dir, rest, &links);
	if (rc == 0)
		return dir;
	if (dir >= 0)
		close(dir);
	return rc;
}
