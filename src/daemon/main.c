/* SPDX-License-Identifier: MIT */
/* heartwheeld: reads the command line, becomes a daemon, and runs the application. See heartwheeld(8). */
#include <stdint.h>
#include <stdio.h>

#include "app.h"
#include "daemon/config/lint.h"
#include "daemon/config/reload.h"
#include "daemon/loop/turn.h"
#include "http/server.h"
#include "run/program.h"

struct file {
	const char *path;
	const struct hw_settings *c;
};

static void on_wrong_safety(void *arg, const char *key, unsigned line, const char *what)
{
	const struct file *f = arg;
	if (line)
		hw_conf_report_wrong(f->c, f->path, "http", key, "%s:%u: %s", f->c->http_users, line, what);
	else
		hw_conf_report_wrong(f->c, f->path, "http", key, "%s", what);
}

/* Checks the users file, the certificate and its key: reads them as at a start, and frees them. */
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

/* Checks what depends on this machine: files must be readable, and the group must exist. Prints each error. The
 * daemon checks later, when it has become its user, whether that user may read the files. */
static bool is_right(const char *path, const void *conf)
{
	const struct hw_settings *c = conf;
	const struct hw_program_file files[] = {{"mqtt", "password_file", c->mqtt.password_file},
	                                        {"mqtt", "tls_ca", c->mqtt.tls_ca},
	                                        {"mqtt", "tls_cert", c->mqtt.tls_cert},
	                                        {"mqtt", "tls_key", c->mqtt.tls_key},
	                                        {"redis", "password_file", c->redis.password_file}};
	bool right = hw_program_can_read(path, c, files, sizeof(files) / sizeof(*files));
	right &= hw_program_find_group(path, c, "http", c->http_socket_group);
	return safety_is_right(path, c) && right;
}

/* Warns about a setting that is allowed, but probably a mistake. */
static void warn_listen(const char *path, const struct hw_settings *c)
{
	if (*c->http_listen && !*c->http_users && !hw_socket_is_local(c->http_listen))
		hw_conf_report_wrong(c, path, "http", "listen",
		                     "warning: %s is not a loopback address: anybody who can reach it reads each "
		                     "device's state%s; see users",
		                     c->http_listen, *c->http_tls_cert ? "" : ", unencrypted");
}

/* Checks the user only if the file names one, because a missing default user is not an error in the file. */
static void judge_rest(const char *path, const void *rest)
{
	const struct hw_settings *c = rest;
	struct hw_user user;
	if (hw_conf_line(c, "monitor", "user"))
		hw_program_find_user(path, c, "monitor", c->user, &user);
	is_right(path, c);
}

static struct hw_program_conf common(const void *conf)
{
	const struct hw_settings *c = conf;
	return (struct hw_program_conf){c->user, c->pid_file, c->log, c->log_level};
}

/* Runs the daemon, from the moment at which the pid file is locked, to its end. Returns the exit status. */
static int serve(void *conf, struct hw_daemon *d)
{
	const struct hw_settings *c = conf;
	struct hw_app *a = hw_app_new(&d->log, conf);
	if (!a)
		return 1;
	hw_make_parent(c->http_socket, &d->user);
	int rc = hw_app_listen(a);
	if (!rc)
		rc = hw_daemon_give_socket(d, c->http_socket, c->http_socket_group);
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
	while (a && hw_app_is_restarting(a)) {
		a = hw_app_restart(a);
		status = a ? hw_app_run(a) : 1;
	}
	hw_app_free(a);
	return status;
}

static void on_lint(void *arg, const struct hw_settings_group *g, const char *text)
{
	const char *path = arg;
	fprintf(stderr, "%s:%u: section 'group %s': warning: %s\n", path, g->line, g->name, text);
}

static void warn(const char *path, const void *conf)
{
	warn_listen(path, conf);
	hw_lint(conf, on_lint, (void *)(uintptr_t)path);
}

int main(int argc, char **argv)
{
	static const struct hw_program program = {
		.help = {"heartwheeld",
	                 "Watches the heartbeats of an MQTT device fleet and reports which devices are offline.",
	                 "SIGHUP reloads the configuration, SIGUSR1 reopens the log file, SIGTERM and SIGINT stop."},
		.section = "monitor",
		.table = &hw_settings_table,
		.reloads = true,
		.conf = common,
		.is_right = is_right,
		.judge_rest = judge_rest,
		.warn = warn,
		.serve = serve};
	return hw_program_main(&program, argc, argv);
}
