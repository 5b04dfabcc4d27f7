/* SPDX-License-Identifier: MIT */
/* Opens the directory of a file that root creates, where directories on the path may belong to other users. */
#ifndef HW_CONF_PARENT_H
#define HW_CONF_PARENT_H

/*
 * Opens the directory of `path`, and sets *name to the last element, inside `path`. Each directory is opened relative
 * to its parent. A link is followed only if root owns it, so that a directory's owner cannot redirect root. Returns a
 * descriptor (O_PATH) that the caller closes, or -errno: -ELOOP for another user's link, -EINVAL if `path` ends with a
 * slash.
 */
int hw_parent_open(const char *path, const char **name);

#endif
