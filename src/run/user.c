/* SPDX-License-Identifier: MIT */
/* See user.h. */
#include "run/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
		return -EPERM; /* it must not be possible to come back */
	return 0;
}

int hw_make_parent(const char *path, const struct hw_user *u)
{
	char dir[4096];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	if (n == 0 || n >= sizeof(dir))
		return 0;
	memcpy(dir, path, n);
	dir[n] = '\0';
	if (mkdir(dir, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (u->drop && chown(dir, u->uid, u->gid) < 0)
		return -errno;
	return 0;
}
