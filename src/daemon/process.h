/* SPDX-License-Identifier: MIT */
/* What makes a process a daemon: the pid file, going into the background, giving up privileges, telling the service
 * manager. */
#ifndef HW_PROCESS_H
#define HW_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
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

/*
 * Opens and locks a pid file without writing into it. Returns a descriptor that holds the lock (also through fork); or
 * -EAGAIN with *holder, the pid of the instance that has it (0 if unknown); or -errno.
 */
int hw_pidfile_lock(const char *path, const struct hw_user *u, pid_t *holder);
/* Writes this process's pid. 0 or -errno. */
int hw_pidfile_write(int fd);
void hw_pidfile_remove(const char *path, int fd);

/*
 * Forks into the background. The parent never returns: it waits for hw_daemon_ready() and exits 0, or exits with what
 * the child exits with. Returns the child's end of the pipe, or -errno.
 */
int hw_daemonize(void);
/* Lets the parent go; `fd` from hw_daemonize(). Detaches stdin, stdout and stderr. */
void hw_daemon_ready(int fd);

/* sd_notify(3): no-ops without libsystemd or a service manager. `state` such as "READY=1". */
void hw_notify(const char *state);
/* How often the watchdog wants to be fed, in ms; 0: never. */
long hw_watchdog_ms(void);

#endif
