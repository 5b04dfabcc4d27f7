/* SPDX-License-Identifier: MIT */
/* heartwheel-history: reads the command line, becomes a daemon, and keeps the history. See heartwheel-history(8). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "history/api.h"
#include "history/settings.h"
#include "http/server.h"
#include "link/clock.h"
#include "run/loop.h"
#include "run/manager.h"
#include "run/program.h"

#define PAGE_MAX 1000 /* entries per page: a few ms of Redis' time */

struct app {
	struct hw_log *log;
	struct hw_history_settings *conf;
	struct hw_loop loop;
	struct hw_http http;
	struct hw_history_api api;
	char *redis_password, *sql_password;
};

/* --- the configuration ------------------------------------------------------------------------------------------ */

/* Checks what depends on the machine, but not on the user: files are readable, the group exists. */
static bool is_right(const char *path, const void *conf)
{
	const struct hw_history_settings *c = conf;
	const struct hw_program_file files[] = {{"history", "password_file", c->password_file},
	                                        {"history", "tls_ca", c->tls_ca},
	                                        {"redis", "password_file", c->redis.password_file}};
	bool right = hw_program_can_read(path, c, files, sizeof(files) / sizeof(*files));
	right &= hw_program_find_group(path, c, "history", c->socket_group);
	return right;
}

static struct hw_program_conf common(const void *conf)
{
	const struct hw_history_settings *c = conf;
	return (struct hw_program_conf){c->user, c->pid_file, c->log, c->log_level};
}

/* --- the daemon ------------------------------------------------------------------------------------------------- */

static void on_line(void *arg, enum hw_log_level level, const char *text)
{
	hw_log(((struct app *)arg)->log, level, "%s", text);
}

static const struct hw_importer_ops importer_ops = {on_line};

static void on_tick(void *arg)
{
	struct app *a = arg;
	struct hw_importer_view v;
	char text[200];
	hw_http_tick(&a->http);
	hw_importer_view(a->api.importer, &v);
	snprintf(text, sizeof(text), "STATUS=%s%s%lld entries read", v.sql ? "" : "the database is away, ",
	         v.redis ? "" : "Redis is away, ",
	         (long long)(v.cursor[HW_STREAM_EVENTS].added > 0 ? v.cursor[HW_STREAM_EVENTS].added : 0));
	hw_manager_notify(text);
}

static void on_stop(void *arg, int number)
{
	struct app *a = arg;
	hw_log(a->log, HW_LOG_NOTICE, "stopping on %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
	hw_manager_notify("STOPPING=1");
	hw_loop_stop(&a->loop);
}

static void on_reload(void *arg)
{
	hw_log(((struct app *)arg)->log, HW_LOG_NOTICE,
	       "SIGHUP ignored: settings of [history] change only at a restart");
}

static void on_reopen(void *arg)
{
	hw_log_reopen(((struct app *)arg)->log);
}

static const struct hw_loop_ops loop_ops = {
	.on_tick = on_tick, .on_stop = on_stop, .on_reload = on_reload, .on_reopen = on_reopen};

/* Starts the program. Also creates the directory of a SQLite file. The parent of that directory must exist. */
static int start(struct app *a, struct hw_daemon *d)
{
	const struct hw_history_settings *c = a->conf;
	unsigned page = (unsigned)c->batch < PAGE_MAX ? (unsigned)c->batch : PAGE_MAX;
	struct hw_importer_conf importer = {
		.source = {.key_prefix = c->redis.key_prefix, .task_prefix = "task:", .page = page},
		.sql = {.password = a->sql_password, .tls_ca = c->tls_ca},
		.keep_ms = c->keep_ms,
		.keep_outages_ms = c->keep_outages_ms,
		.events_max = c->redis.events_max,
		.pages = (unsigned)c->batch / page};
	importer.source.at = hw_redis_address_of(&c->redis, a->redis_password);
	(void)hw_sql_place_parse(c->database, &importer.sql.place);
	if (importer.sql.place.path[0])
		hw_make_parent(importer.sql.place.path, &d->user);
	int rc = hw_daemon_become(d);
	if (!rc)
		rc = hw_loop_start(&a->loop);
	if (rc)
		return rc;
	a->api.database = c->database;
	a->api.started_ms = hw_clock_mono().ns / HW_NS_PER_MS;
	a->api.importer = hw_importer_new(a->loop.base, &importer, &importer_ops, a);
	a->api.query_worker = hw_query_worker_new(a->loop.base, &importer.sql, hw_history_as_of, &a->api);
	return a->api.importer && a->api.query_worker ? 0 : -ENOMEM;
}

static void app_fini(struct app *a)
{
	hw_http_fini(&a->http);
	if (a->api.query_worker)
		hw_query_worker_free(a->api.query_worker);
	hw_importer_free(a->api.importer);
	hw_loop_fini(&a->loop);
	free(a->redis_password);
	free(a->sql_password);
	hw_conf_free(a->conf);
}

/* Runs from the locked pid file to the exit. Returns the exit status. */
static int serve(void *conf, struct hw_daemon *d)
{
	struct hw_history_settings *c = conf;
	struct app a = {.log = &d->log, .conf = c};
	int rc = hw_loop_init(&a.loop, &loop_ops, &a);
	hw_http_init(&a.http, a.loop.base, &hw_history_routes, &a.api);
	a.http.keeps_reserve = true;
	if (!rc)
		rc = hw_program_read_secret(d, "[redis] password_file", c->redis.password_file, &a.redis_password);
	if (!rc)
		rc = hw_program_read_secret(d, "[history] password_file", c->password_file, &a.sql_password);
	if (!rc)
		rc = hw_program_listen(d, &a.http, c->socket, c->socket_group);
	if (!rc)
		rc = start(&a, d);
	if (!rc) {
		hw_log(a.log, HW_LOG_NOTICE, "heartwheel-history " HW_VERSION " is running: database %s", c->database);
		hw_daemon_ready(d);
		rc = hw_loop_run(&a.loop);
	} else if (!d->log.failed) {
		hw_log(a.log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	}
	app_fini(&a);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct hw_program program = {
		.help = {"heartwheel-history",
	                 "Writes each device's transitions and outages to an SQL database, and serves reports on them.",
	                 "SIGUSR1 reopens the log file, SIGTERM and SIGINT stop."},
		.section = "history",
		.table = &hw_history_table,
		.conf = common,
		.is_right = is_right,
		.serve = serve};
	hw_sql_init();
	return hw_program_main(&program, argc, argv);
}
