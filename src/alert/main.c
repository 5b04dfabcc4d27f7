/* SPDX-License-Identifier: MIT */
/* heartwheel-alert: reads the command line, becomes a daemon, follows the incidents. See heartwheel-alert(8). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/api/api.h"
#include "alert/app.h"
#include "alert/reload.h"
#include "conf/conf.h"
#include "run/manager.h"
#include "run/program.h"

#define STOP_MS 3000 /* limit for messages and commits that are under way */

/* --- the configuration -------------------------------------------------------------------------------------------- */

/* Checks the files of the receivers. */
static bool can_send(const char *path, const struct hw_alert_settings *c)
{
	struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS];
	size_t n = hw_alert_receivers(c, list);
	bool right = true;
	char why[400];
	const char *key;
	for (size_t k = 0; k < n; k++)
		if (hw_receiver_check_files(&list[k], &key, why, sizeof(why)) != 0) {
			fprintf(stderr, "%s:%u: key '%s': of receiver %s: %s\n", path, hw_receiver_line(&list[k], key),
			        key, list[k].name, why);
			right = false;
		}
	return right;
}

/* Checks the settings that depend on this machine: whether files can be read, and whether the socket's group exists. */
static bool is_right(const char *path, const void *conf)
{
	const struct hw_alert_settings *c = conf;
	const struct hw_program_file files[] = {{"redis", "password_file", c->redis.password_file}};
	bool right = hw_program_can_read(path, c, files, sizeof(files) / sizeof(*files));
	right &= hw_program_find_group(path, c, "alert", c->socket_group);
	return can_send(path, c) && right;
}

static struct hw_program_conf common(const void *conf)
{
	const struct hw_alert_settings *c = conf;
	return (struct hw_program_conf){c->user, c->pid_file, c->log, c->log_level};
}

static void warn_of(void *path, unsigned line, const char *text)
{
	fprintf(stderr, "%s:%u: warning: %s\n", (const char *)path, line, text);
}

static void warn(const char *path, const void *conf)
{
	struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS];
	if (hw_alert_receivers(conf, list) == 0)
		hw_conf_report_wrong(conf, path, "alert", "socket",
		                     "warning: there is no receiver: heartwheel-alert follows the incidents and sends "
		                     "nothing; add a section [receiver NAME]");
	hw_alert_lint(conf, warn_of, (void *)path);
}

/* --- the daemon --------------------------------------------------------------------------------------------------- */

static void on_tick(void *arg)
{
	struct hw_alert_app *a = arg;
	const char *other = hw_alert_holder_other(a->holder);
	char text[300];
	hw_http_tick(&a->http);
	hw_alert_app_tick(a);
	if (!hw_alert_store_is_up(a->store))
		snprintf(text, sizeof(text), "STATUS=%s",
		         a->fleet ? "waits for heartwheeld or its state file" : "Redis is away");
	else if (a->engine)
		snprintf(text, sizeof(text), "STATUS=%llu open incidents",
		         (unsigned long long)hw_incidents_count(a->engine).open);
	else
		snprintf(text, sizeof(text), "STATUS=stands by%s%s", *other ? ", the lease is held by " : "", other);
	hw_manager_notify(text);
}

static void on_stop(void *arg, int number)
{
	struct hw_alert_app *a = arg;
	if (a->stopping) {
		hw_loop_stop(&a->loop);
		return;
	}
	hw_log(a->log, HW_LOG_NOTICE, "stopping on %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
	hw_manager_notify("STOPPING=1");
	hw_alert_app_stop(a, STOP_MS);
}

static void on_reload(void *arg)
{
	hw_alert_reload_on_signal(arg);
}

static void on_reopen(void *arg)
{
	hw_log_reopen(((struct hw_alert_app *)arg)->log);
}

static const struct hw_loop_ops loop_ops = {
	.on_tick = on_tick, .on_stop = on_stop, .on_reload = on_reload, .on_reopen = on_reopen};

/* Runs from the locked pid file to the end. Returns the exit status. */
static int serve(void *conf, struct hw_daemon *d)
{
	struct hw_alert_settings *c = conf;
	struct hw_alert_app a = {.log = &d->log, .conf = c, .first = c};
	int rc = hw_loop_init(&a.loop, &loop_ops, &a);
	hw_http_init(&a.http, a.loop.base, &hw_alert_routes, &a);
	a.http.believes_family = true; /* heartwheeld passes on requests of its users */
	a.http.keeps_reserve = true;
	if (!rc)
		rc = hw_program_read_secret(d, "[redis] password_file", c->redis.password_file, &a.redis_password);
	if (!rc)
		rc = hw_program_listen(d, &a.http, c->socket, c->socket_group);
	if (!rc)
		rc = hw_daemon_become(d);
	if (!rc)
		rc = hw_loop_start(&a.loop);
	if (!rc)
		rc = hw_alert_app_start(&a);
	if (!rc) {
		hw_log(a.log, HW_LOG_NOTICE, "heartwheel-alert " HW_VERSION " is running: node '%s', receivers: %zu",
		       c->node_id, hw_senders_count(a.senders));
		hw_alert_app_lint(&a);
		hw_daemon_ready(d);
		rc = hw_loop_run(&a.loop);
	} else if (!d->log.failed && rc != -ENODATA) { /* ENODATA: the reason is logged */
		hw_log(a.log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	}
	bool failed = rc || a.failed;
	hw_alert_app_fini(&a);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct hw_program program = {
		.help = {"heartwheel-alert",
	                 "Groups what is offline into incidents, and notifies people of each: once when it begins, "
	                 "once when it ends.",
	                 "SIGHUP reloads, SIGUSR1 reopens the log file, SIGTERM and SIGINT stop."},
		.section = "alert",
		.table = &hw_alert_table,
		.reloads = true,
		.conf = common,
		.is_right = is_right,
		.warn = warn,
		.serve = serve};
	return hw_program_main(&program, argc, argv);
}
