/* SPDX-License-Identifier: MIT */
/* heartwheeld: reads the command line, becomes a daemon, runs the application. See heartwheeld(8). */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "conf/conf.h"
#include "http/server.h"
#include "lint.h"
#include "reload.h"
#include "run/daemon.h"
#include "run/options.h"
#include "turn.h"

static const struct hw_options_help help = {
	"heartwheeld", "Watches the heartbeats of an MQTT device fleet and says which devices have fallen silent.",
	"SIGHUP reloads the configuration, SIGUSR1 reopens the log file, SIGTERM and SIGINT stop."};

static bool user_is_right(const char *path, const struct hw_settings *c, struct hw_user *user)
{
	if (hw_user_find(user, c->user) == 0)
		return true;
	hw_conf_say_wrong(c, path, "monitor", "user",
	                  "there is no user '%s'; make it (useradd --system %s), or leave the value empty to stay root",
	                  c->user, c->user);
	return false;
}

struct file {
	const char *path;
	const struct hw_settings *c;
};

static void on_wrong_safety(void *arg, const char *key, unsigned line, const char *what)
{
	const struct file *f = arg;
	if (line)
		hw_conf_say_wrong(f->c, f->path, "http", key, "%s:%u: %s", f->c->http_users, line, what);
	else
		hw_conf_say_wrong(f->c, f->path, "http", key, "%s", what);
}

/* The users, the certificate and its key: read as they will be, and let go. */
static bool safety_is_right(const char *path, const struct hw_settings *c)
{
	struct file f = {path, c};
	struct hw_http_safety safety = HW_SETTINGS_SAFETY(c);
	struct hw_http tried;
	hw_http_init(&tried, NULL, NULL, NULL);
	int rc = hw_http_secure(&tried, &safety, on_wrong_safety, &f);
	hw_http_fini(&tried);
	return rc == 0;
}

/*
 * What else the configuration names and only this machine can tell: readable files, a group. Says so of each that is
 * wrong. Whether the user may read the files, too, is found once we are that user.
 */
static bool machine_is_right(const char *path, const struct hw_settings *c)
{
	const struct {
		const char *section, *key, *path;
	} files[] = {{"mqtt", "password_file", c->mqtt.password_file},
	             {"mqtt", "tls_ca", c->mqtt.tls_ca},
	             {"mqtt", "tls_cert", c->mqtt.tls_cert},
	             {"mqtt", "tls_key", c->mqtt.tls_key},
	             {"redis", "password_file", c->redis.password_file}};
	gid_t group;
	bool right = true;
	for (size_t k = 0; k < sizeof(files) / sizeof(*files); k++) {
		if (!*files[k].path || access(files[k].path, R_OK) == 0)
			continue;
		hw_conf_say_wrong(c, path, files[k].section, files[k].key, "cannot read %s: %s", files[k].path,
		                  strerror(errno));
		right = false;
	}
	if (*c->http_socket_group && hw_socket_group(c->http_socket_group, &group)) {
		hw_conf_say_wrong(c, path, "http", "socket_group", "there is no group '%s'", c->http_socket_group);
		right = false;
	}
	return safety_is_right(path, c) && right;
}

/* What is allowed and hardly meant. */
static void warn_listen(const char *path, const struct hw_settings *c)
{
	if (*c->http_listen && !*c->http_users && !hw_socket_is_local(c->http_listen))
		hw_conf_say_wrong(
			c, path, "http", "listen",
			"warning: %s is not a loopback address: whoever reaches it can read every device's state%s; "
			"see users",
			c->http_listen, *c->http_tls_cert ? "" : ", unencrypted");
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
	exit(HW_EXIT_USAGE);
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
static struct hw_settings *load(const struct hw_options *o, struct hw_user *user)
{
	struct hw_conf_errors errors = {0};
	struct hw_settings *c = hw_conf_load(&hw_settings_table, o->conf, &errors);
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
		exit(HW_EXIT_USAGE);
	}
	int rc = make_absolute(&c->head.path);
	if (rc) {
		fprintf(stderr, "heartwheeld: cannot tell where %s is: %s\n", o->conf, strerror(-rc));
		hw_conf_free(c);
		exit(EXIT_FAILURE);
	}
	return c;
}

/* The control socket's group is the user's, unless the file names one. */
static int give_socket(const struct hw_settings *c, struct hw_daemon *d)
{
	if (!d->user.drop || chown(c->http_socket, d->user.uid, c->http_socket_group[0] ? (gid_t)-1 : d->user.gid) == 0)
		return 0;
	int rc = -errno;
	hw_log(&d->log, HW_LOG_ERROR, "cannot start as user '%s': %s; see [monitor] user", d->user.name, strerror(-rc));
	return rc;
}

/* From the locked pid file to the end. Returns the exit status. */
static int serve(struct hw_settings *c, struct hw_daemon *d)
{
	struct hw_app *a = hw_app_new(&d->log, c);
	if (!a)
		return 1;
	hw_make_parent(c->http_socket, &d->user);
	int rc = hw_app_listen(a);
	if (!rc)
		rc = give_socket(c, d);
	if (!rc)
		rc = hw_daemon_become(d);
	if (!rc)
		rc = hw_app_start(a);
	if (rc) {
		hw_app_free(a);
		return 1;
	}
	hw_daemon_ready(d);
	int status = hw_app_run(a);
	while (a && hw_app_is_anew(a)) {
		a = hw_app_anew(a);
		status = a ? hw_app_run(a) : 1;
	}
	hw_app_free(a);
	return status;
}

static void warn(void *arg, const struct hw_settings_group *g, const char *text)
{
	const char *path = arg;
	fprintf(stderr, "%s:%u: section 'group %s': warning: %s\n", path, g->line, g->name, text);
}

/* The whole of -t, once the file has been read. With -v also what is in force, presets and defaults as their lines. */
static void tell_test(const struct hw_settings *c, const struct hw_options *o)
{
	warn_listen(o->conf, c);
	hw_lint(c, warn, (void *)(uintptr_t)o->conf);
	if (o->verbose) {
		hw_conf_print(c, stdout);
		hw_conf_print_foreign(c, stdout);
	}
	printf("%s: ok\n", o->conf);
}

/* What libevent only warns of, its callers are told too; it would say it to standard error, each time. */
static void on_libevent(int severity, const char *text)
{
	if (severity >= EVENT_LOG_ERR)
		fprintf(stderr, "heartwheeld: libevent: %s\n", text);
}

int main(int argc, char **argv)
{
	struct hw_options o;
	struct hw_daemon d;
	hw_options_parse(argc, argv, &help, &o);
	signal(SIGPIPE, SIG_IGN);
	event_set_log_callback(on_libevent);
	hw_daemon_init(&d, "heartwheeld", "monitor");
	struct hw_settings *c = load(&o, &d.user);
	if (o.test) {
		tell_test(c, &o);
		hw_conf_free(c);
		return 0;
	}
	int rc = hw_daemon_begin(&d, c->pid_file, c->log, o.verbose ? HW_LOG_DEBUG : c->log_level, o.foreground);
	if (rc) {
		hw_conf_free(c);
		return 1;
	}
	int status = serve(c, &d);
	hw_daemon_end(&d);
	return status;
}
