/* SPDX-License-Identifier: MIT */
/* Opens the directory in which root creates a file, if directories on the path may belong to other users. */
#ifndef HW_CONF_PARENT_H
#define HW_CONF_PARENT_H

/*
 * Opens the directory of `path`, and points *name to the last element in `path`. Each directory is opened relative to
 * its parent. A link is followed only if root owns it, so that the owner of a directory cannot redirect root. Returns a
 * descriptor (O_PATH) that the caller closes, or -errno: -ELOOP for another user's link, -EINVAL if `path` ends with a
 * slash.
 */
int hw_parent_open(const char *path, const char **name);

#endif
