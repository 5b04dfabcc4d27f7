/* SPDX-License-Identifier: MIT */
/* heartwheel-tasks: reads the command line, becomes a daemon, and handles the tasks. See heartwheel-tasks(8). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "conf/conf.h"
#include "link/clock.h"
#include "run/manager.h"
#include "run/program.h"
#include "tasks/api/api.h"
#include "tasks/app.h"
#include "tasks/queue/turn.h"

#define STOP_MS 3000 /* the most time for pending work, and again for the broker's acknowledgements */

/* --- the configuration -------------------------------------------------------------------------------------------- */

/* Checks the settings that depend on this machine: whether files are readable, and whether a group exists. */
static bool is_right(const char *path, const void *conf)
{
	const struct hw_tasks_settings *c = conf;
	const struct hw_program_file files[] = {{"mqtt", "password_file", c->mqtt.password_file},
	                                        {"mqtt", "tls_ca", c->mqtt.tls_ca},
	                                        {"mqtt", "tls_cert", c->mqtt.tls_cert},
	                                        {"mqtt", "tls_key", c->mqtt.tls_key},
	                                        {"redis", "password_file", c->redis.password_file}};
	bool right = hw_program_can_read(path, c, files, sizeof(files) / sizeof(*files));
	right &= hw_program_find_group(path, c, "tasks", c->socket_group);
	return right;
}

static struct hw_program_conf common(const void *conf)
{
	const struct hw_tasks_settings *c = conf;
	return (struct hw_program_conf){c->user, c->pid_file, c->log, c->log_level};
}

/* --- the daemon --------------------------------------------------------------------------------------------------- */

static void on_tick(void *arg)
{
	struct hw_tasks_app *a = arg;
	struct hw_schedule_stats s;
	char text[200];
	hw_http_tick(&a->http);
	hw_tasks_app_tick(a);
	hw_schedule_stats(a->schedule, &s);
	snprintf(text, sizeof(text), "STATUS=%s%s%zu tasks due soon",
	         hw_tasks_store_is_up(a->store) ? "" : "Redis is away, ",
	         hw_tasks_broker_publishes(a->broker) ? "" : "the broker is away, ", s.known);
	hw_manager_notify(text);
}

static void on_stop(void *arg, int number)
{
	struct hw_tasks_app *a = arg;
	if (a->life.stopping) {
		hw_loop_stop(&a->loop);
		return;
	}
	hw_log(a->log, HW_LOG_NOTICE, "stopping on %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
	hw_manager_notify("STOPPING=1");
	hw_tasks_app_stop(a, STOP_MS);
}

static void on_reload(void *arg)
{
	hw_log(((struct hw_tasks_app *)arg)->log, HW_LOG_NOTICE,
	       "SIGHUP ignored: settings of [tasks] change only at a restart");
}

static void on_reopen(void *arg)
{
	hw_log_reopen(((struct hw_tasks_app *)arg)->log);
}

static const struct hw_loop_ops loop_ops = {
	.on_tick = on_tick, .on_stop = on_stop, .on_reload = on_reload, .on_reopen = on_reopen};

/* Runs from the locked pid file to the end. Returns the exit status. */
static int serve(void *conf, struct hw_daemon *d)
{
	struct hw_tasks_settings *c = conf;
	static struct hw_tasks_app a; /* large; there is only one */
	a.log = &d->log;
	a.conf = c;
	int rc = hw_loop_init(&a.loop, &loop_ops, &a);
	hw_http_init(&a.http, a.loop.base, &hw_tasks_routes, &a);
	a.http.body_max = HW_API_BODY_MAX;
	a.http.believes_family = true; /* heartwheeld passes on requests of its users */
	a.http.keeps_reserve = true;
	if (!rc)
		rc = hw_program_read_secret(d, "[redis] password_file", c->redis.password_file, &a.life.redis_password);
	if (!rc)
		rc = hw_program_read_secret(d, "[mqtt] password_file", c->mqtt.password_file, &a.life.mqtt_password);
	if (!rc)
		rc = hw_program_listen(d, &a.http, c->socket, c->socket_group);
	if (!rc)
		rc = hw_daemon_become(d);
	if (!rc)
		rc = hw_loop_start(&a.loop);
	if (!rc)
		rc = hw_tasks_app_start(&a);
	if (!rc) {
		hw_log(a.log, HW_LOG_NOTICE, "heartwheel-tasks " HW_VERSION " is running: topics %s/%s, node '%s'",
		       c->root, c->name, c->node_id);
		hw_daemon_ready(d);
		rc = hw_loop_run(&a.loop);
	} else if (!d->log.failed) {
		hw_log(a.log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	}
	hw_tasks_app_fini(&a, STOP_MS);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void warn(const char *path, const void *conf)
{
	const struct hw_tasks_settings *c = conf;
	if (c->n_allow == 0)
		hw_conf_report_wrong(c, path, "tasks", "allow",
		                     "warning: there is no such line: no client may submit a task over MQTT");
}

int main(int argc, char **argv)
{
	static const struct hw_program program = {
		.help = {"heartwheel-tasks",
	                 "Sends commands to devices, at once or at a set time, and follows each to its end.",
	                 "SIGUSR1 reopens the log file, SIGTERM and SIGINT stop."},
		.section = "tasks",
		.table = &hw_tasks_table,
		.conf = common,
		.is_right = is_right,
		.warn = warn,
		.serve = serve};
	return hw_program_main(&program, argc, argv);
}
