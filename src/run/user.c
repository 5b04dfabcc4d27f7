/* SPDX-License-Identifier: MIT */
/* See user.h. */
#include "run/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/parent.h"

int hw_user_find(struct hw_user *u, const char *name)
{
	memset(u, 0, sizeof(*u));
	if (!name[0] || geteuid() != 0)
		return 0;
	const struct passwd *pw = getpwnam(name);
	if (!pw)
		return -ENOENT;
	u->drop = true;
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	snprintf(u->name, sizeof(u->name), "%s", name);
	return 0;
}

int hw_user_become(const struct hw_user *u)
{
	if (!u->drop)
		return 0;
	if (initgroups(u->name, u->gid) || setgid(u->gid) || setuid(u->uid))
		return -errno;
	if (u->uid != 0 && setuid(0) == 0)
		return -EPERM; /* root's rights must not be recoverable */
	return 0;
}

/* --- with the user's rights ------------------------------------------------------------------------------------- */

/* The state to restore. */
struct rights {
	gid_t groups[NGROUPS_MAX];
	int n;
};

/* Takes the user's rights until restore(). The process must have only one thread. Returns 0, or -errno with the rights
 * unchanged. */
static int take_rights(const struct hw_user *u, struct rights *was)
{
	was->n = getgroups(NGROUPS_MAX, was->groups);
	if (was->n < 0 || initgroups(u->name, u->gid) < 0)
		return -errno;
	if (setegid(u->gid) == 0 && seteuid(u->uid) == 0)
		return 0;
	int rc = -errno;
	if (setegid(getgid()) < 0 || setgroups((size_t)was->n, was->groups) < 0)
		abort();
	return rc;
}

/* Restores root's rights. Aborts on failure, because a process with half of its rights is worse than none. */
static void restore(const struct rights *was)
{
	if (seteuid(0) < 0 || setegid(getgid()) < 0 || setgroups((size_t)was->n, was->groups) < 0)
		abort();
}

/* The directory of `path`; "" if `path` has none. */
static void directory_of(const char *path, char dir[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	if (n >= PATH_MAX)
		n = 0;
	memcpy(dir, path, n);
	dir[n] = '\0';
}

static int make_as_root(const struct hw_user *u, const char *path)
{
	const char *name;
	int above = hw_parent_open(path, &name), rc = 0;
	if (above < 0)
		return above;
	if (mkdirat(above, name, 0755) < 0) {
		rc = errno == EEXIST ? 0 : -errno;
	} else {
		int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = fd < 0 || fchown(fd, u->uid, u->gid) < 0 ? -errno : 0;
		if (fd >= 0)
			close(fd);
	}
	close(above);
	return rc;
}

int hw_make_parent(const char *path, const struct hw_user *u)
{
	char dir[PATH_MAX];
	struct rights was;
	directory_of(path, dir);
	if (!*dir)
		return 0;
	int rc = u->drop ? take_rights(u, &was) : 0;
	if (rc)
		return rc;
	rc = mkdir(dir, 0755) < 0 ? -errno : 0;
	if (u->drop)
		restore(&was);
	if (rc == 0 || rc == -EEXIST)
		return 0;
	if (rc != -EACCES || !u->drop)
		return rc;
	return make_as_root(u, dir);
}

/* Opens the file with root's rights, in a directory that the user cannot write. */
static int open_as_root(const struct hw_user *u, const char *path, int flags, mode_t mode)
{
	const char *name;
	int dir = hw_parent_open(path, &name);
	if (dir < 0)
		return dir;
	int fd = openat(dir, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	int rc = fd < 0 ? -errno : 0;
	if (rc == -EEXIST) {
		fd = openat(dir, name, flags | O_NOFOLLOW);
		rc = fd < 0 ? -errno : 0;
	} else if (rc == 0 && fchown(fd, u->uid, u->gid) < 0) {
		rc = -errno;
		close(fd);
	}
	close(dir);
	return rc ? rc : fd;
}

int hw_user_open(const struct hw_user *u, const char *path, int flags, mode_t mode)
{
	char dir[PATH_MAX];
	struct rights was;
	if (!u || !u->drop) {
		int fd = open(path, flags | O_CREAT, mode);
		return fd < 0 ? -errno : fd;
	}
	int rc = take_rights(u, &was);
	if (rc)
		return rc;
	int fd = open(path, flags | O_CREAT, mode);
	rc = fd < 0 ? -errno : fd;
	directory_of(path, dir);
	bool owns = faccessat(AT_FDCWD, *dir ? dir : "/", W_OK, AT_EACCESS) == 0;
	restore(&was);
	return rc == -EACCES && !owns ? open_as_root(u, path, flags, mode) : rc;
}
