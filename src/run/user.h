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

/* Makes the directory of `path` if it is missing (one level), owned by the user. 0 or -errno. */
int hw_make_parent(const char *path, const struct hw_user *u);

#endif
