/* SPDX-License-Identifier: MIT */
/* The user that a daemon started by root becomes for good. */
#ifndef HW_RUN_USER_H
#define HW_RUN_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* A user to become; `name` "" or not started as root: none. */
struct hw_user {
	bool drop;
	uid_t uid;
	gid_t gid;
	char name[64];
};

/* Looks `name` up. 0, or -ENOENT for a user that is unknown. Does nothing unless run by root. */
int hw_user_find(struct hw_user *u, const char *name);
/* Becomes the user for good. 0 or -errno. */
int hw_user_become(const struct hw_user *u);

/*
 * What root makes by a path in a directory of the user, the user can direct elsewhere with a link. So the two functions
 * below try with the user's rights first. Only where these do not suffice, in a directory that the user cannot write,
 * root does it, follows no link, and gives to the user only what it made itself.
 */

/* Makes the directory of `path` if it is missing (one level), owned by the user. 0 or -errno. */
int hw_make_parent(const char *path, const struct hw_user *u);
/* As open(), with O_CREAT. `u` NULL: there is no user to become. A descriptor, or -errno. */
int hw_user_open(const struct hw_user *u, const char *path, int flags, mode_t mode);

#endif
