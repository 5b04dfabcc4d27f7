/* SPDX-License-Identifier: MIT */
/* Reloads the configuration. A reload parses the file into a new configuration. The running configuration changes only
 * if the new one has no error. */
#include "reload.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/file.h"
#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "daemon/inventory/inventory.h"
#include "daemon/loop/clock.h"
#include "daemon/observe.h"
#include "daemon/retained/old_topics.h"
#include "daemon/retained/retained.h"
#include "daemon/visibility/probes.h"
#include "daemon/visibility/visibility.h"
#include "http/json.h"
#include "http/socket.h"
#include "run/manager.h"
#include "specs.h"

/* The result of a diff, as the arrays of the answer. */
struct changes {
	struct hw_app *app;
	struct evbuffer *live, *restart;
	struct evbuffer *added, *removed; /* groups; they are in `live` too */
	bool topics;                      /* the topic of a status has changed */
	bool users;                       /* `live` contains http.users */
	struct hw_control_taken taken;
};

static void add_item(struct evbuffer *elements, const char *text)
{
	struct hw_json j;
	hw_json_append(&j, elements);
	hw_json_item(&j, text);
	(void)hw_json_end(&j);
}

static void on_change(void *arg, const char *key, enum hw_conf_change change, bool live)
{
	static const char *const what[] = {
		[HW_CONF_CHANGED] = "changed", [HW_CONF_ADDED] = "added", [HW_CONF_REMOVED] = "removed"};
	struct changes *c = arg;
	hw_log(c->app->log, HW_LOG_NOTICE, "reload: %s %s%s", key, what[change], live ? "" : ": restart needed");
	if (change == HW_CONF_ADDED)
		add_item(c->added, key);
	else if (change == HW_CONF_REMOVED)
		add_item(c->removed, key);
	add_item(live ? c->live : c->restart, key);
	c->users |= strcmp(key, "http.users") == 0;
	size_t len = strlen(key), n = sizeof(".status") - 1;
	c->topics |= live && len > n && strcmp(key + len - n, ".status") == 0;
}

/* Reports that the content of a password file has changed. If the file's name has changed, hw_conf_diff() reports
 * that. */
static void diff_secret(struct changes *c, const char *key, const char *path, const char *running)
{
	if (hw_conf_secret_changed(path, running))
		on_change(c, key, HW_CONF_CHANGED, false);
}

static void changes_fini(struct changes *c)
{
	struct evbuffer *all[] = {c->live, c->restart, c->added, c->removed};
	for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
		if (all[k])
			evbuffer_free(all[k]);
}

static void users_text(const struct hw_control_taken *t, char *text, size_t cap)
{
	snprintf(text, cap, "%s, %u stream%s closed", t->users, t->closed, t->closed == 1 ? "" : "s");
}

/* Writes the answer. Groups and users that were added or removed are included only if there are any. */
static void answer(struct changes *c, struct evbuffer *body)
{
	struct hw_json j;
	hw_json_begin(&j, body);
	hw_json_open(&j, '{');
	hw_json_array(&j, "changed", c->live);
	hw_json_array(&j, "restart_needed", c->restart);
	if (evbuffer_get_length(c->added) > 0)
		hw_json_array(&j, "added", c->added);
	if (evbuffer_get_length(c->removed) > 0)
		hw_json_array(&j, "removed", c->removed);
	if (*c->taken.users) {
		char text[sizeof(c->taken.users) + 64];
		users_text(&c->taken, text, sizeof(text));
		hw_json_text(&j, "users", text);
	}
	hw_json_close(&j, '}');
	(void)hw_json_end(&j);
}

/* `errors`: their lines, or NULL. */
static void answer_refusal(const char *error, const struct hw_conf_errors *errors, struct evbuffer *body)
{
	struct hw_json j;
	hw_json_begin(&j, body);
	hw_json_open(&j, '{');
	hw_json_text(&j, "error", error);
	hw_json_open_member(&j, "lines", '[');
	for (size_t k = 0; errors && k < errors->n; k++)
		hw_json_item(&j, errors->lines[k]);
	hw_json_close(&j, ']');
	hw_json_close(&j, '}');
	(void)hw_json_end(&j);
}

static int refuse(struct hw_app *a, struct hw_conf_errors *errors, struct evbuffer *body)
{
	hw_log(a->log, HW_LOG_ERROR, "reload refused, the running configuration stays as it is: %zu wrong line%s",
	       errors->n, errors->n == 1 ? "" : "s");
	for (size_t k = 0; k < errors->n; k++)
		hw_log(a->log, HW_LOG_ERROR, "%s", errors->lines[k]);
	answer_refusal("the configuration has errors; nothing was changed", errors, body);
	return 400;
}

/* Opens the new log, if the log setting has changed. If that fails, the old log stays open. */
static void switch_log(struct hw_app *a, const struct hw_settings *to)
{
	int rc = 0;
	if (strcmp(a->conf->log, to->log) != 0)
		rc = hw_log_open(a->log, to->log, to->log_level, NULL);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot log to %s: %s; logging continues in the old file", to->log,
		       hw_file_error(-rc));
	a->log->level = to->log_level;
}

static int apply(struct hw_app *a, struct hw_settings *to)
{
	struct hw_group_spec *specs = hw_app_group_specs(to);
	struct hw_monitor_conf mc = hw_app_monitor_conf(to, hw_app_probe_answers(a));
	hw_old_topics_reload(a, to);
	int rc = specs ? hw_monitor_reconfigure(a->monitor, hw_app_now(), &mc, specs, to->n_groups) : -ENOMEM;
	free(specs);
	if (rc)
		return rc;
	if (a->redis)
		hw_redis_reconfigured(a->redis);
	switch_log(a, to);
	if (a->conf != a->start)
		hw_conf_free(a->conf);
	a->conf = to;
	hw_app_upstream_ask(a);
	hw_app_cluster_reconfigured(a);
	hw_app_inventory_regroup(a);
	hw_app_log_blind(a, hw_app_now());
	rc = hw_app_subscribe(a, false);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot subscribe to the new topics: %s", strerror(-rc));
	return 0;
}

/* Collects the errors in the files that [http] names, as lines of the answer. */
struct wrong_lines {
	const struct hw_settings *to;
	struct hw_conf_errors *errors;
};

static void on_wrong_safety(void *arg, const char *key, unsigned line, const char *what)
{
	const struct wrong_lines *w = arg;
	struct hw_conf_errors *e = w->errors;
	char where[HW_CONF_TEXT_MAX + 16] = "";
	if (line)
		snprintf(where, sizeof(where), "%s:%u: ", w->to->http_users, line);
	char **more = realloc(e->lines, (e->n + 1) * sizeof(*more));
	if (!more)
		return;
	e->lines = more;
	if (asprintf(&more[e->n], "%s:%u: key '%s': %s%s", w->to->head.path, hw_conf_line(w->to, "http", key), key,
	             where, what) >= 0)
		e->n++;
}

/* Reads the users and the certificate again, even if their file names are unchanged. They take effect last. */
static int plan_safety(struct hw_app *a, const struct hw_settings *to, struct hw_http_plan *plan,
                       struct hw_conf_errors *errors)
{
	struct hw_http_safety safety = HW_SETTINGS_SAFETY(to);
	struct wrong_lines w = {to, errors};
	if (!*a->start->http_listen)
		return 0;
	if (*safety.users && !*safety.tls_cert && !hw_socket_is_local(a->start->http_listen)) {
		on_wrong_safety(&w, "users", 0, "listen still has the old address, which needs tls_cert; restart");
		return -EINVAL;
	}
	return hw_control_plan(a->control, &safety, plan, on_wrong_safety, &w);
}

static void take_safety(struct hw_app *a, struct changes *c, struct hw_http_plan *plan, bool had_users)
{
	char text[sizeof(c->taken.users) + 64];
	if (!*a->start->http_listen)
		return;
	c->taken = hw_control_take(a->control, plan);
	if (*c->taken.users) {
		if (!c->users)
			add_item(c->live, "http.users");
		users_text(&c->taken, text, sizeof(text));
		hw_log(a->log, HW_LOG_NOTICE, "reload: [http] users: %s", text);
	}
	if (!*a->conf->http_users && had_users && !hw_socket_is_local(a->start->http_listen))
		hw_log(a->log, HW_LOG_WARNING,
		       "%s is not a loopback address: from now on anybody who can reach it reads each device's state; "
		       "see [http] users",
		       a->start->http_listen);
}

/* Loads the file. Returns NULL and reports all errors if the file is wrong or its log cannot be opened. The caller
 * must free the plan in any case. */
static struct hw_settings *load(struct hw_app *a, struct hw_http_plan *plan, struct hw_conf_errors *errors)
{
	struct hw_settings *to = hw_conf_load_again(&hw_settings_table, a->conf->head.path, errors);
	int rc = to && strcmp(a->conf->log, to->log) != 0 ? hw_log_try(to->log) : 0;
	if (!rc && to && plan_safety(a, to, plan, errors)) {
		hw_conf_free(to);
		return NULL;
	}
	if (!rc)
		return to;
	errors->lines = calloc(1, sizeof(*errors->lines));
	if (errors->lines && asprintf(&errors->lines[0], "%s:%u: key 'log': cannot log to %s: %s", to->head.path,
	                              hw_conf_line(to, "monitor", "log"), to->log, hw_file_error(-rc)) >= 0)
		errors->n = 1;
	hw_conf_free(to);
	return NULL;
}

int hw_app_reload(struct hw_app *a, struct evbuffer *body)
{
	struct hw_conf_errors errors = {0};
	struct hw_http_plan plan = {0};
	struct hw_settings *to = load(a, &plan, &errors);
	bool had_users = *a->conf->http_users != '\0';
	if (!to) {
		hw_http_plan_fini(&plan);
		int status = refuse(a, &errors, body);
		hw_conf_errors_fini(&errors);
		return status;
	}
	hw_conf_errors_fini(&errors);
	struct changes c = {a, evbuffer_new(), evbuffer_new(), evbuffer_new(), evbuffer_new(), .topics = false};
	int status = 400;
	if (!c.live || !c.restart || !c.added || !c.removed)
		goto memory;
	hw_conf_diff(a->conf, to, on_change, &c);
	diff_secret(&c, "mqtt.password_file", a->start->mqtt.password_file, a->life.mqtt_password);
	diff_secret(&c, "redis.password_file", a->start->redis.password_file, a->life.redis_password);
	if (hw_conf_keep_restart_values(a->conf, to) || apply(a, to))
		goto memory;
	to = NULL;
	take_safety(a, &c, &plan, had_users);
	if (c.topics)
		hw_app_republish(a, hw_app_now());
	hw_log(a->log, HW_LOG_NOTICE, "reloaded %s", a->conf->head.path);
	answer(&c, body);
	status = 200;
	goto out;
memory:
	hw_log(a->log, HW_LOG_ERROR, "reload refused: not enough memory, or too many groups; nothing was changed");
	answer_refusal("not enough memory, or too many groups; nothing was changed", NULL, body);
out:
	hw_http_plan_fini(&plan);
	changes_fini(&c);
	hw_conf_free(to);
	return status;
}

void hw_app_reload_on_signal(struct hw_app *a)
{
	struct evbuffer *answer = evbuffer_new(); /* not sent anywhere: the log has the result */
	if (!answer) {
		hw_log(a->log, HW_LOG_ERROR, "reload refused: not enough memory");
		return;
	}
	hw_manager_notify("RELOADING=1");
	hw_app_reload(a, answer);
	hw_manager_notify("READY=1");
	evbuffer_free(answer);
}
