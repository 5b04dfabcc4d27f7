/* SPDX-License-Identifier: MIT */
/* heartwheeld: reads the command line, becomes a daemon, runs the application. See heartwheeld(8). */
#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "control/socket.h"
#include "process.h"

enum { EXIT_USAGE = 2 };

struct options {
	const char *conf;
	bool foreground, test, verbose;
};

static void usage(FILE *to)
{
	fputs("usage: heartwheeld [-c FILE] [-f] [-t] [-v] [-V] [-h]\n"
	      "\n"
	      "Watches the heartbeats of an MQTT device fleet and says which devices have fallen silent.\n"
	      "\n"
	      "  -c, --config FILE   configuration (default " HW_SYSCONFDIR "/monitor.conf)\n"
	      "  -f, --foreground    stay in the foreground\n"
	      "  -t, --test          check the configuration and exit\n"
	      "  -v, --verbose       log everything, whatever log_level says\n"
	      "  -V, --version       print the version and exit\n"
	      "  -h, --help          print this and exit\n"
	      "\n"
	      "Signals: SIGHUP reloads the configuration, SIGUSR1 reopens the log file, SIGTERM and SIGINT stop.\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage or configuration. See heartwheeld(8), monitor.conf(5).\n",
	      to);
}

/* Fills in the options, or exits. */
static void parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"config", required_argument, NULL, 'c'},
	                                      {"foreground", no_argument, NULL, 'f'},
	                                      {"test", no_argument, NULL, 't'},
	                                      {"verbose", no_argument, NULL, 'v'},
	                                      {"version", no_argument, NULL, 'V'},
	                                      {"help", no_argument, NULL, 'h'},
	                                      {NULL, 0, NULL, 0}};
	int c;
	while ((c = getopt_long(argc, argv, "c:ftvVh", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->conf = optarg;
			break;
		case 'f':
			o->foreground = true;
			break;
		case 't':
			o->test = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'V':
			puts("heartwheeld " HW_VERSION);
			exit(0);
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(EXIT_USAGE);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "heartwheeld: unexpected argument '%s'\n", argv[optind]);
		usage(stderr);
		exit(EXIT_USAGE);
	}
}

__attribute__((format(printf, 5, 6))) static void
say_wrong(const char *path, const struct hw_conf *c, const char *section, const char *key, const char *format, ...)
{
	unsigned where = hw_conf_line(c, section, key);
	va_list args;
	if (where)
		fprintf(stderr, "%s:%u: key '%s': ", path, where, key);
	else
		fprintf(stderr, "%s: key '%s': ", path, key);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static bool user_is_right(const char *path, const struct hw_conf *c, struct hw_user *user)
{
	if (hw_user_find(user, c->user) == 0)
		return true;
	say_wrong(path, c, "monitor", "user",
	          "there is no user '%s'; make it (useradd --system %s), or leave the value empty to stay root",
	          c->user, c->user);
	return false;
}

/*
 * What else the configuration names and only this machine can tell: readable files, a group. Says so of each that is
 * wrong. Whether the user may read the files, too, is found once we are that user.
 */
static bool machine_is_right(const char *path, const struct hw_conf *c)
{
	const struct {
		const char *section, *key, *path;
	} files[] = {{"mqtt", "password_file", c->mqtt_password_file},
	             {"mqtt", "tls_ca", c->tls_ca},
	             {"mqtt", "tls_cert", c->tls_cert},
	             {"mqtt", "tls_key", c->tls_key},
	             {"redis", "password_file", c->redis_password_file}};
	gid_t group;
	bool right = true;
	for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
		if (!*files[k].path || access(files[k].path, R_OK) == 0)
			continue;
		say_wrong(path, c, files[k].section, files[k].key, "cannot read %s: %s", files[k].path,
		          strerror(errno));
		right = false;
	}
	if (*c->http_socket_group && hw_socket_group(c->http_socket_group, &group)) {
		say_wrong(path, c, "http", "socket_group", "there is no group '%s'", c->http_socket_group);
		right = false;
	}
	return right;
}

/* Says all that is wrong with the file, also of those values that could be read. */
static _Noreturn void refuse(const char *path, struct hw_conf_errors *errors)
{
	struct hw_user user;
	for (size_t k = 0; k < errors->n; k++)
		fprintf(stderr, "%s\n", errors->lines[k]);
	if (errors->rest && hw_conf_line(errors->rest, "monitor", "user"))
		user_is_right(path, errors->rest, &user);
	if (errors->rest)
		machine_is_right(path, errors->rest);
	hw_conf_errors_fini(errors);
	exit(EXIT_USAGE);
}

/* A reload has to find the file also from the directory of a daemon. */
static int make_absolute(char **path)
{
	char *dir, *whole;
	if (**path == '/')
		return 0;
	dir = getcwd(NULL, 0);
	if (!dir)
		return -errno;
	int n = asprintf(&whole, "%s/%s", dir, *path);
	free(dir);
	if (n < 0)
		return -ENOMEM;
	free(*path);
	*path = whole;
	return 0;
}

/* Reads the configuration and finds the user, or exits after saying what is wrong. */
static struct hw_conf *load(const struct options *o, struct hw_user *user)
{
	struct hw_conf_errors errors = {0};
	struct hw_conf *c = hw_conf_load(o->conf, hw_app_template_check, &errors);
	if (!c && errors.no_memory) {
		fprintf(stderr, "heartwheeld: cannot read %s: out of memory\n", o->conf);
		exit(EXIT_FAILURE);
	}
	if (!c)
		refuse(o->conf, &errors);
	hw_conf_errors_fini(&errors);
	bool right = user_is_right(o->conf, c, user);
	if (!machine_is_right(o->conf, c) || !right) {
		hw_conf_free(c);
		exit(EXIT_USAGE);
	}
	int rc = make_absolute(&c->path);
	if (rc) {
		fprintf(stderr, "heartwheeld: cannot tell where %s is: %s\n", o->conf, strerror(-rc));
		hw_conf_free(c);
		exit(EXIT_FAILURE);
	}
	return c;
}

/* Locks the pid file, or says why not. */
static int lock_pid_file(const struct hw_conf *c, const struct hw_user *user)
{
	pid_t holder = 0;
	int fd = hw_make_parent(c->pid_file, user);
	if (fd == 0)
		fd = hw_pidfile_lock(c->pid_file, user, &holder);
	if (fd == -EAGAIN)
		fprintf(stderr, "heartwheeld: another instance is running with pid %ld (it holds %s)\n", (long)holder,
		        c->pid_file);
	else if (fd < 0)
		fprintf(stderr, "heartwheeld: cannot open the pid file %s: %s; see [monitor] pid_file\n", c->pid_file,
		        strerror(-fd));
	return fd;
}

static int open_log(struct hw_log *log, const struct hw_conf *c, const struct options *o, const struct hw_user *user)
{
	const char *where = c->log;
	if (where[0] == '/')
		hw_make_parent(where, user);
	int rc = hw_log_open(log, where, o->verbose ? HW_LOG_DEBUG : c->log_level);
	if (rc)
		fprintf(stderr, "heartwheeld: cannot log to %s: %s; see [monitor] log\n", where, strerror(-rc));
	else if (log->fd >= 0 && user->drop && fchown(log->fd, user->uid, user->gid))
		fprintf(stderr, "heartwheeld: cannot give %s to user %s: %s\n", where, user->name, strerror(errno));
	return rc;
}

/* Gives the control socket and itself to the user. The socket's group is the user's, unless the file names one. */
static int become(const struct hw_conf *c, const struct hw_user *user, struct hw_log *log)
{
	int rc = 0;
	if (user->drop && chown(c->http_socket, user->uid, c->http_socket_group[0] ? (gid_t)-1 : user->gid))
		rc = -errno;
	if (!rc)
		rc = hw_user_become(user);
	if (rc)
		hw_log(log, HW_LOG_ERROR, "cannot start as user '%s': %s; see [monitor] user", user->name,
		       strerror(-rc));
	return rc;
}

static int write_pid(const struct hw_conf *c, int fd, struct hw_log *log)
{
	int rc = hw_pidfile_write(fd);
	if (rc)
		hw_log(log, HW_LOG_ERROR, "cannot write the pid file %s: %s; see [monitor] pid_file", c->pid_file,
		       strerror(-rc));
	return rc;
}

/* From the locked pid file to the end. Returns the exit status. */
static int serve(struct hw_conf *c, const struct options *o, const struct hw_user *user, struct hw_log *log, int pid_fd,
                 int ready)
{
	struct hw_app *a = hw_app_new(log, c);
	if (!a)
		return 1;
	hw_make_parent(c->http_socket, user);
	int rc = hw_app_listen(a);
	if (!rc)
		rc = become(c, user, log);
	if (!rc)
		rc = write_pid(c, pid_fd, log);
	if (!rc)
		rc = hw_app_start(a);
	if (rc) {
		hw_app_free(a);
		return 1;
	}
	hw_notify("READY=1");
	log->starting = false;
	if (!o->foreground)
		hw_daemon_ready(ready);
	int status = hw_app_run(a);
	hw_app_free(a);
	return status;
}

/* What libevent only warns of, its callers are told too; it would say it to standard error, each time. */
static void on_libevent(int severity, const char *text)
{
	if (severity >= EVENT_LOG_ERR)
		fprintf(stderr, "heartwheeld: libevent: %s\n", text);
}

int main(int argc, char **argv)
{
	struct options o = {.conf = HW_SYSCONFDIR "/monitor.conf"};
	struct hw_user user;
	struct hw_log log;
	int ready = -1;
	parse(argc, argv, &o);
	signal(SIGPIPE, SIG_IGN);
	event_set_log_callback(on_libevent);
	hw_log_init(&log);
	log.starting = true;
	struct hw_conf *c = load(&o, &user);
	if (o.test) {
		printf("%s: ok\n", o.conf);
		hw_conf_free(c);
		return 0;
	}
	int pid_fd = lock_pid_file(c, &user);
	if (pid_fd < 0 || open_log(&log, c, &o, &user)) {
		hw_conf_free(c);
		return 1;
	}
	if (!o.foreground && (ready = hw_daemonize()) < 0) {
		fprintf(stderr, "heartwheeld: cannot go into the background: %s\n", strerror(-ready));
		hw_conf_free(c);
		return 1;
	}
	char *pid_file = strdup(c->pid_file);
	int status = serve(c, &o, &user, &log, pid_fd, ready);
	if (pid_file)
		hw_pidfile_remove(pid_file, pid_fd);
	free(pid_file);
	hw_log_close(&log);
	return status;
}
