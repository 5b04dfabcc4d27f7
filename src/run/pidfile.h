/* SPDX-License-Identifier: MIT */
/* The pid file, which allows a single instance. */
#ifndef HW_RUN_PIDFILE_H
#define HW_RUN_PIDFILE_H

#include <sys/types.h>

#include "run/user.h"

/*
 * Opens and locks a pid file, without writing. Returns a descriptor that keeps the lock, also after fork(). Returns
 * -EAGAIN if another instance has the lock, and its pid in *holder (0: unknown); or another -errno.
 */
int hw_pidfile_lock(const char *path, const struct hw_user *u, pid_t *holder);
/* Writes this process's pid. Returns 0 or -errno. */
int hw_pidfile_write(int fd);
/* Removes the file and releases the lock. Does nothing if `fd` is negative. */
void hw_pidfile_remove(const char *path, int fd);

#endif
