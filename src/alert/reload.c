/* SPDX-License-Identifier: MIT */
/* See reload.h. */
#include "alert/reload.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <string.h>

#include "alert/app.h"
#include "http/json.h"
#include "run/manager.h"

struct changes {
	struct hw_alert_app *app;
	struct hw_json *j;
	bool live;
};

static void on_change(void *arg, const char *key, enum hw_conf_change change, bool live)
{
	struct changes *c = arg;
	static const char *const words[] = {
		[HW_CONF_CHANGED] = "changed", [HW_CONF_ADDED] = "added", [HW_CONF_REMOVED] = "removed"};
	/* A key of [redis] or [mqtt] is also a key of other programs. If a reload applies the change, only these other
	 * programs report it. */
	if (live != c->live || (live && (strncmp(key, "redis.", 6) == 0 || strncmp(key, "mqtt.", 5) == 0)))
		return;
	hw_log(c->app->log, HW_LOG_NOTICE, "reload: %s %s%s", key, words[change], live ? "" : ": restart needed");
	hw_json_item(c->j, key);
}

static void report_changes(struct hw_alert_app *a, const struct hw_alert_settings *to, bool live, struct hw_json *j)
{
	struct changes c = {a, j, live};
	hw_json_open_member(j, live ? "changed" : "restart_needed", '[');
	hw_conf_diff(a->conf, to, on_change, &c);
	if (hw_conf_secret_changed(a->conf->redis.password_file, a->redis_password))
		on_change(&c, "redis.password_file", HW_CONF_CHANGED, false);
	hw_json_close(j, ']');
}

static int refuse(struct hw_alert_app *a, const struct hw_conf_errors *errors, struct hw_json *j)
{
	hw_log(a->log, HW_LOG_ERROR, "reload refused, the running configuration stays as it is: %zu wrong line%s",
	       errors->n, errors->n == 1 ? "" : "s");
	hw_json_text(j, "error", "the configuration has errors; nothing was changed");
	hw_json_open_member(j, "lines", '[');
	for (size_t i = 0; i < errors->n; i++) {
		hw_log(a->log, HW_LOG_ERROR, "%s", errors->lines[i]);
		hw_json_item(j, errors->lines[i]);
	}
	hw_json_close(j, ']');
	return HTTP_BADREQUEST;
}

static int refuse_for(struct hw_alert_app *a, int rc, const char *why, struct hw_json *j)
{
	hw_log(a->log, HW_LOG_ERROR, "reload refused, nothing was changed: %s", why);
	hw_json_text(j, "error", why);
	return rc == -ENOMEM ? HTTP_SERVUNAVAIL : HTTP_BADREQUEST;
}

/* Applies the new configuration. The first one is not freed, because the connection borrows its texts. */
static void take(struct hw_alert_app *a, struct hw_alert_settings *to)
{
	struct hw_alert_settings *was = a->conf;
	a->conf = to;
	if (was != a->first)
		hw_conf_free(was);
}

int hw_alert_reload(struct hw_alert_app *a, struct hw_json *j)
{
	struct hw_conf_errors errors = {0};
	char why[500];
	struct hw_alert_settings *to = hw_conf_load_again(&hw_alert_table, a->conf->head.path, &errors);
	int status = HTTP_OK, rc = 0;
	if (!to) {
		status = errors.no_memory ? refuse_for(a, -ENOMEM, "not enough memory", j) : refuse(a, &errors, j);
	} else if ((rc = hw_alert_app_configure(a, to, why, sizeof(why)))) {
		status = refuse_for(a, rc, why, j);
	} else {
		report_changes(a, to, true, j);
		report_changes(a, to, false, j);
		if (hw_conf_keep_restart_values(a->conf, to))
			status = refuse_for(a, -ENOMEM, "not enough memory", j);
		else
			hw_log(a->log, HW_LOG_NOTICE, "reloaded %s", a->conf->head.path);
	}
	hw_conf_errors_fini(&errors);
	if (status == HTTP_OK) {
		take(a, to);
		hw_alert_app_lint(a);
	} else {
		hw_conf_free(to);
	}
	return status;
}

void hw_alert_reload_on_signal(struct hw_alert_app *a)
{
	struct evbuffer *unread = evbuffer_new();
	struct hw_json j;
	if (!unread) {
		hw_log(a->log, HW_LOG_ERROR, "reload refused: not enough memory");
		return;
	}
	hw_manager_notify("RELOADING=1");
	hw_json_begin(&j, unread);
	(void)hw_alert_reload(a, &j);
	hw_manager_notify("READY=1");
	evbuffer_free(unread);
}
