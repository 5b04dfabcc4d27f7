/* SPDX-License-Identifier: MIT */
/* The user that a daemon started by root becomes permanently. */
#ifndef HW_RUN_USER_H
#define HW_RUN_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user to become. No user if `name` is "" or the daemon was not started as root. */
struct hw_user {
	bool drop;
	uid_t uid;
	gid_t gid;
	char name[64];
};

/* Finds the user. Returns 0, or -ENOENT for an unknown user. Does nothing unless run by root. */
int hw_user_find(struct hw_user *u, const char *name);
/* Becomes the user permanently. Returns 0 or -errno. */
int hw_user_become(const struct hw_user *u);

/*
 * If root creates a file by its path in the user's directory, the user can redirect root with a link. So the functions
 * below first try with the user's rights. Root acts only in a directory that the user cannot write. It then follows no
 * link of another user on the way, and none at the end, and gives the user only files that it created itself.
 */

/* Creates the directory of `path` if it is missing (one level), owned by the user. Returns 0 or -errno. */
int hw_make_parent(const char *path, const struct hw_user *u);
/* Like open(), with O_CREAT. `u` NULL: no user to become. Returns a descriptor or -errno. */
int hw_user_open(const struct hw_user *u, const char *path, int flags, mode_t mode);

#endif
