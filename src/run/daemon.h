/* SPDX-License-Identifier: MIT */
/*
 * A daemon's life but for its work: the pid file, the log, going into the background, giving privileges up, saying that
 * it is ready. In this order:
 *
 *   hw_daemon_init()    then the program reads its configuration and finds the user (user.h)
 *   hw_daemon_begin()   locks the pid file, opens the log, leaves the foreground
 *                       then the program opens what needs the rights that it was started with
 *   hw_daemon_become()  the user; from here on without those rights
 *   hw_daemon_ready()   whoever started it goes on
 *   hw_daemon_end()
 */
#ifndef HW_RUN_DAEMON_H
#define HW_RUN_DAEMON_H

#include <stdbool.h>

#include "run/log.h"
#include "run/user.h"

struct hw_daemon {
	const char *name;    /* of the program; borrowed */
	const char *section; /* of its file, where pid_file, log and user stand; borrowed */
	struct hw_user user; /* filled in by the program */
	struct hw_log log;
	char *pid_file; /* owned */
	int pid_fd, ready_fd;
};

void hw_daemon_init(struct hw_daemon *d, const char *name, const char *section);
/*
 * 0; or -errno after saying on stderr what is wrong: -EAGAIN if another instance holds the pid file. In the background
 * only the child returns; what it says on stderr until hw_daemon_ready() is seen by whoever started it.
 */
int hw_daemon_begin(struct hw_daemon *d, const char *pid_file, const char *log, int log_level, bool foreground);
/* Gives a socket to the user, and to its group unless the socket has one (`group`, "": none). 0, or -errno after
 * logging. */
int hw_daemon_give_socket(struct hw_daemon *d, const char *path, const char *group);
/* Becomes the user and writes the pid. 0, or -errno after logging. */
int hw_daemon_become(struct hw_daemon *d);
void hw_daemon_ready(struct hw_daemon *d);
/* Removes the pid file and closes the log. */
void hw_daemon_end(struct hw_daemon *d);

#endif
