/* SPDX-License-Identifier: MIT */
/* The pid file, which holds a daemon of a name to one instance. */
#ifndef HW_RUN_PIDFILE_H
#define HW_RUN_PIDFILE_H

#include <sys/types.h>

#include "run/user.h"

/*
 * Opens and locks a pid file without writing into it. Returns a descriptor that holds the lock (also through fork); or
 * -EAGAIN with *holder, the pid of the instance that has it (0 if unknown); or -errno.
 */
int hw_pidfile_lock(const char *path, const struct hw_user *u, pid_t *holder);
/* Writes this process's pid. 0 or -errno. */
int hw_pidfile_write(int fd);
/* Removes it, and lets the lock go; does nothing if `fd` is negative. */
void hw_pidfile_remove(const char *path, int fd);

#endif
