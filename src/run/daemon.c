/* SPDX-License-Identifier: MIT */
/* See daemon.h. Invariant: the pid file is locked before the log is opened, and until everything else is closed. */
#include "run/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/file.h"
#include "conf/parent.h"
#include "run/background.h"
#include "run/manager.h"
#include "run/pidfile.h"

void hw_daemon_init(struct hw_daemon *d, const char *name, const char *section)
{
	*d = (struct hw_daemon){.name = name, .section = section, .pid_fd = -1, .ready_fd = -1};
	hw_log_init(&d->log, name);
	d->log.starting = true;
}

static int lock_pid_file(struct hw_daemon *d)
{
	pid_t holder = 0;
	int fd = hw_make_parent(d->pid_file, &d->user);
	if (fd == 0)
		fd = hw_pidfile_lock(d->pid_file, &d->user, &holder);
	if (fd == -EAGAIN)
		fprintf(stderr, "%s: another instance is running with pid %ld (it holds %s)\n", d->name, (long)holder,
		        d->pid_file);
	else if (fd < 0)
		fprintf(stderr, "%s: cannot open the pid file %s: %s; see [%s] pid_file\n", d->name, d->pid_file,
		        hw_file_error(-fd), d->section);
	return fd;
}

static int open_log(struct hw_daemon *d, const char *where, int level)
{
	if (where[0] == '/')
		hw_make_parent(where, &d->user);
	int rc = hw_log_open(&d->log, where, level, &d->user);
	if (rc)
		fprintf(stderr, "%s: cannot log to %s: %s; see [%s] log\n", d->name, where, hw_file_error(-rc),
		        d->section);
	return rc;
}

int hw_daemon_begin(struct hw_daemon *d, const char *pid_file, const char *log, int log_level, bool foreground)
{
	d->pid_file = strdup(pid_file);
	if (!d->pid_file) {
		fprintf(stderr, "%s: out of memory\n", d->name);
		return -ENOMEM;
	}
	int rc = lock_pid_file(d);
	if (rc < 0)
		goto failed;
	d->pid_fd = rc;
	rc = open_log(d, log, log_level);
	if (rc)
		goto failed;
	if (foreground)
		return 0;
	rc = hw_background_enter();
	if (rc >= 0) {
		d->ready_fd = rc;
		return 0;
	}
	fprintf(stderr, "%s: cannot go into the background: %s\n", d->name, strerror(-rc));
failed:
	free(d->pid_file);
	d->pid_file = NULL;
	return rc;
}

/* Logs that the daemon cannot become the user. Returns -errno. */
static int cannot_be_user(struct hw_daemon *d, int rc)
{
	hw_log(&d->log, HW_LOG_ERROR, "cannot start as user '%s': %s; see [%s] user", d->user.name, strerror(-rc),
	       d->section);
	return rc;
}

/* Gives a socket file to the user, without following a link: the directories may belong to the user, who could have
 * replaced the socket or a directory by a link. */
static int give_socket(const struct hw_user *u, const char *path, gid_t gid)
{
	struct stat st;
	const char *name;
	int dir = hw_parent_open(path, &name);
	if (dir < 0)
		return dir;
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = fd < 0 ? -errno : 0;
	close(dir);
	if (rc)
		return rc;
	rc = fstat(fd, &st) < 0 ? -errno : 0;
	if (rc == 0 && (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1))
		rc = -EPERM;
	if (rc == 0 && fchownat(fd, "", u->uid, gid, AT_EMPTY_PATH) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int hw_daemon_give_socket(struct hw_daemon *d, const char *path, const char *group)
{
	int rc = d->user.drop ? give_socket(&d->user, path, *group ? (gid_t)-1 : d->user.gid) : 0;
	return rc ? cannot_be_user(d, rc) : 0;
}

int hw_daemon_become(struct hw_daemon *d)
{
	int rc = hw_user_become(&d->user);
	if (rc)
		return cannot_be_user(d, rc);
	rc = hw_pidfile_write(d->pid_fd);
	if (rc)
		hw_log(&d->log, HW_LOG_ERROR, "cannot write the pid file %s: %s; see [%s] pid_file", d->pid_file,
		       strerror(-rc), d->section);
	return rc;
}

void hw_daemon_ready(struct hw_daemon *d)
{
	hw_manager_notify("READY=1");
	d->log.starting = false;
	hw_background_ready(d->ready_fd);
	d->ready_fd = -1;
}

void hw_daemon_end(struct hw_daemon *d)
{
	if (d->pid_file)
		hw_pidfile_remove(d->pid_file, d->pid_fd);
	free(d->pid_file);
	d->pid_file = NULL;
	d->pid_fd = -1;
	hw_log_close(&d->log);
}
