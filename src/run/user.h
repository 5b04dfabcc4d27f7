/* SPDX-License-Identifier: MIT */
/* The user that a daemon becomes for good if root has started it. */
#ifndef HW_RUN_USER_H
#define HW_RUN_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user to become. There is none if `name` is "" or if root has not started the daemon. */
struct hw_user {
	bool drop;
	uid_t uid;
	gid_t gid;
	char name[64];
};

/* Finds the user. Returns 0, or -ENOENT for an unknown user. Does nothing unless root has started the daemon. */
int hw_user_find(struct hw_user *u, const char *name);
/* Becomes the user permanently. Returns 0 or -errno. */
int hw_user_become(const struct hw_user *u);

/*
 * If root creates a file in a directory of the user, the user can redirect root to another file with a link. So the
 * functions below first try with the user's rights. Root itself acts only in a directory that the user cannot write.
 * Root then follows no link that another user owns, and no link in the last place. The user gets only files that root
 * has just created.
 */

/* Creates the directory of `path` if it is missing (only the last level), and gives it to the user. Returns 0 or
 * -errno. */
int hw_make_parent(const char *path, const struct hw_user *u);
/* Like open(), with O_CREAT. `u` NULL: there is no user to become. Returns a descriptor or -errno. */
int hw_user_open(const struct hw_user *u, const char *path, int flags, mode_t mode);

#endif
