/* SPDX-License-Identifier: MIT */
/* heartwheel-tasks: reads the command line, becomes a daemon, carries tasks. See heartwheel-tasks(8). */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "conf/conf.h"
#include "link/clock.h"
#include "run/daemon.h"
#include "run/manager.h"
#include "run/options.h"
#include "tasks/api.h"
#include "tasks/app.h"
#include "tasks/turn.h"

#define STOP_MS 3000 /* for what is on its way, and again for the broker's acknowledgements */

static const struct hw_options_help help = {
	"heartwheel-tasks", "Carries commands to devices, at once or at a set time, and follows each to its end.",
	"SIGUSR1 reopens the log file, SIGTERM and SIGINT stop."};

/* --- the configuration -------------------------------------------------------------------------------------------- */

/* What only this machine can tell: a user, readable files, a group. */
static bool machine_is_right(const char *path, const struct hw_tasks_settings *c, struct hw_user *user)
{
	const struct {
		const char *section, *key, *path;
	} files[] = {{"mqtt", "password_file", c->mqtt.password_file},
	             {"mqtt", "tls_ca", c->mqtt.tls_ca},
	             {"mqtt", "tls_cert", c->mqtt.tls_cert},
	             {"mqtt", "tls_key", c->mqtt.tls_key},
	             {"redis", "password_file", c->redis.password_file}};
	gid_t group;
	bool right = hw_user_find(user, c->user) == 0;
	if (!right)
		hw_conf_say_wrong(
			c, path, "tasks", "user",
			"there is no user '%s'; make it (useradd --system %s), or leave the value empty to stay root",
			c->user, c->user);
	for (size_t k = 0; k < sizeof(files) / sizeof(*files); k++) {
		if (!*files[k].path || access(files[k].path, R_OK) == 0)
			continue;
		hw_conf_say_wrong(c, path, files[k].section, files[k].key, "cannot read %s: %s", files[k].path,
		                  strerror(errno));
		right = false;
	}
	if (*c->socket_group && hw_socket_group(c->socket_group, &group)) {
		hw_conf_say_wrong(c, path, "tasks", "socket_group", "there is no group '%s'", c->socket_group);
		right = false;
	}
	return right;
}

/* Reads the configuration and finds the user, or exits after saying what is wrong. */
static struct hw_tasks_settings *load(const struct hw_options *o, struct hw_user *user)
{
	struct hw_conf_errors errors = {0};
	struct hw_tasks_settings *c = hw_conf_load(&hw_tasks_table, o->conf, &errors);
	if (!c && errors.no_memory) {
		fprintf(stderr, "heartwheel-tasks: cannot read %s: out of memory\n", o->conf);
		exit(EXIT_FAILURE);
	}
	for (size_t k = 0; !c && k < errors.n; k++)
		fprintf(stderr, "%s\n", errors.lines[k]);
	hw_conf_errors_fini(&errors);
	if (!c || !machine_is_right(o->conf, c, user))
		exit(HW_EXIT_USAGE);
	return c;
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
	hw_manager_tell(text);
}

static void on_stop(void *arg, int number)
{
	struct hw_tasks_app *a = arg;
	if (a->stopping) {
		hw_loop_stop(&a->loop);
		return;
	}
	hw_log(a->log, HW_LOG_NOTICE, "stopping on %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
	hw_manager_tell("STOPPING=1");
	hw_tasks_app_stop(a, STOP_MS);
}

static void on_reload(void *arg)
{
	hw_log(((struct hw_tasks_app *)arg)->log, HW_LOG_NOTICE,
	       "SIGHUP: nothing of [tasks] changes without a restart");
}

static void on_reopen(void *arg)
{
	struct hw_tasks_app *a = arg;
	int rc = hw_log_reopen(a->log);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot reopen %s: %s; logging goes on where it was", a->conf->log,
		       strerror(-rc));
	else
		hw_log(a->log, HW_LOG_NOTICE, "log reopened");
}

static const struct hw_loop_ops loop_ops = {
	.on_tick = on_tick, .on_stop = on_stop, .on_reload = on_reload, .on_reopen = on_reopen};

/* A password from its file. 0, or -errno after logging. */
static int read_secret(struct hw_tasks_app *a, const char *key, const char *path, char **out)
{
	*out = *path ? hw_conf_read_secret(path) : strdup("");
	if (*out)
		return 0;
	int error = errno;
	hw_log(a->log, HW_LOG_ERROR, "cannot read %s %s: %s", key, path, strerror(error));
	return error ? -error : -EIO;
}

static int listen_local(struct hw_tasks_app *a, struct hw_daemon *d)
{
	const struct hw_tasks_settings *c = a->conf;
	hw_make_parent(c->socket, &d->user);
	int rc = hw_http_listen(&a->http, c->socket, c->socket_group);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot open the socket %s: %s; see [tasks] socket and socket_group",
		       c->socket, rc == -EADDRINUSE ? "another process answers on it" : strerror(-rc));
	else if (d->user.drop && chown(c->socket, d->user.uid, *c->socket_group ? (gid_t)-1 : d->user.gid) != 0)
		rc = -errno;
	return rc;
}

/* From the locked pid file to the end. Returns the exit status. */
static int serve(struct hw_tasks_settings *c, struct hw_daemon *d)
{
	static struct hw_tasks_app a; /* large; there is one */
	a.log = &d->log;
	a.conf = c;
	int rc = hw_loop_init(&a.loop, &loop_ops, &a);
	hw_http_init(&a.http, a.loop.base, &hw_tasks_routes, &a);
	a.http.body_max = HW_API_BODY_MAX;
	a.http.believes_family = true; /* heartwheeld passes on what its users ask */
	if (!rc)
		rc = read_secret(&a, "[redis] password_file", c->redis.password_file, &a.redis_password);
	if (!rc)
		rc = read_secret(&a, "[mqtt] password_file", c->mqtt.password_file, &a.mqtt_password);
	if (!rc)
		rc = listen_local(&a, d);
	if (!rc)
		rc = hw_daemon_become(d);
	if (!rc)
		rc = hw_loop_start(&a.loop);
	if (!rc)
		rc = hw_tasks_app_start(&a);
	if (!rc) {
		hw_log(a.log, HW_LOG_NOTICE, "heartwheel-tasks " HW_VERSION " serves %s/%s as %s", c->root, c->name,
		       c->node_id);
		hw_daemon_ready(d);
		rc = hw_loop_run(&a.loop);
	} else {
		hw_log(a.log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	}
	hw_tasks_app_fini(&a, STOP_MS);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The whole of -t, once the file has been read. */
static void tell_test(const struct hw_tasks_settings *c, const struct hw_options *o)
{
	if (c->n_allow == 0)
		hw_conf_say_wrong(c, o->conf, "tasks", "allow",
		                  "warning: there is none: nobody may submit a task over MQTT");
	if (o->verbose) {
		hw_conf_print(c, stdout);
		hw_conf_print_foreign(c, stdout);
	}
	printf("%s: ok\n", o->conf);
}

static void on_libevent(int severity, const char *text)
{
	if (severity >= EVENT_LOG_ERR)
		fprintf(stderr, "heartwheel-tasks: libevent: %s\n", text);
}

int main(int argc, char **argv)
{
	struct hw_options o;
	struct hw_daemon d;
	hw_options_parse(argc, argv, &help, &o);
	signal(SIGPIPE, SIG_IGN);
	event_set_log_callback(on_libevent);
	hw_daemon_init(&d, "heartwheel-tasks", "tasks");
	struct hw_tasks_settings *c = load(&o, &d.user);
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
