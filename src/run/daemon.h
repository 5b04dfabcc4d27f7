/* SPDX-License-Identifier: MIT */
/*
 * The steps that all our daemons have in common: pid file, log, background, giving up root's rights, readiness. In this
 * order:
 *
 * - hw_daemon_init(); then the program reads its configuration and finds the user (user.h)
 * - hw_daemon_begin() locks the pid file, opens the log, and forks into the background; then the program opens
 *   everything that needs the initial rights
 * - hw_daemon_become() becomes the user, and so loses those rights
 * - hw_daemon_ready() reports readiness to the service manager and to the parent
 * - hw_daemon_end()
 */
#ifndef HW_RUN_DAEMON_H
#define HW_RUN_DAEMON_H

#include <stdbool.h>

#include "run/log.h"
#include "run/user.h"

struct hw_daemon {
	const char *name;    /* the program's name; borrowed */
	const char *section; /* section of the configuration with pid_file, log and user; borrowed */
	struct hw_user user; /* set by the program */
	struct hw_log log;
	char *pid_file; /* owned */
	int pid_fd, ready_fd;
};

void hw_daemon_init(struct hw_daemon *d, const char *name, const char *section);
/*
 * Returns 0, or -errno after a message on stderr; -EAGAIN: another instance has locked the pid file. In the background,
 * only the child returns. The child's stderr stays open until hw_daemon_ready().
 */
int hw_daemon_begin(struct hw_daemon *d, const char *pid_file, const char *log, int log_level, bool foreground);
/* Gives a socket file to the user, and to the user's group unless the socket has a group (`group`; "": none). Returns
 * 0, or -errno after logging. */
int hw_daemon_give_socket(struct hw_daemon *d, const char *path, const char *group);
/* Becomes the user and writes the pid. Returns 0, or -errno after logging. */
int hw_daemon_become(struct hw_daemon *d);
void hw_daemon_ready(struct hw_daemon *d);
/* Removes the pid file and closes the log. */
void hw_daemon_end(struct hw_daemon *d);

#endif
