/* SPDX-License-Identifier: MIT */
/*
 * See reload.h. The running configuration stays that of the start, because many parts borrow from it. Only [notify] is
 * replaced, because the notifier has copies of its settings. So until a restart, each reload names all changes that
 * need one.
 */
#include "tasks/reload.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <string.h>

#include "conf/conf.h"
#include "http/json.h"
#include "run/manager.h"
#include "tasks/app.h"

/* The changes of a reload. The answer has two arrays: the changes that are in force, and those that need a restart. */
struct changes {
	struct hw_tasks_app *app;
	struct hw_json *j;
	bool live;
};

static void on_change(void *arg, const char *key, enum hw_conf_change change, bool live)
{
	struct changes *c = arg;
	bool ours = strncmp(key, "notify.", 7) == 0;
	(void)change; /* there are no named sections */
	if (live != c->live ||
	    (live && !ours)) /* a key of another section that a reload applies belongs to another program */
		return;
	hw_log(c->app->log, HW_LOG_NOTICE, "reload: %s changed%s", key, live ? "" : ": restart needed");
	hw_json_item(c->j, key);
}

static void report_changes(struct hw_tasks_app *a, const struct hw_tasks_settings *to, bool live, struct hw_json *j)
{
	struct changes c = {a, j, live};
	hw_json_open_member(j, live ? "changed" : "restart_needed", '[');
	hw_conf_diff(a->conf, to, on_change, &c);
	if (hw_conf_secret_changed(a->conf->mqtt.password_file, a->life.mqtt_password))
		on_change(&c, "mqtt.password_file", HW_CONF_CHANGED, false);
	if (hw_conf_secret_changed(a->conf->redis.password_file, a->life.redis_password))
		on_change(&c, "redis.password_file", HW_CONF_CHANGED, false);
	hw_json_close(j, ']');
}

static int refuse(struct hw_tasks_app *a, const struct hw_conf_errors *errors, struct hw_json *j)
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

static int refuse_for_memory(struct hw_tasks_app *a, struct hw_json *j)
{
	hw_log(a->log, HW_LOG_ERROR, "reload refused: not enough memory; nothing was changed");
	hw_json_text(j, "error", "not enough memory; nothing was changed");
	return HTTP_SERVUNAVAIL;
}

/* Exchanges the [notify] settings of `to` and of the running configuration. */
static void swap_notify(struct hw_tasks_app *a, struct hw_tasks_settings *to)
{
	struct hw_notify_settings was = a->conf->notify;
	a->conf->notify = to->notify;
	to->notify = was;
}

int hw_tasks_reload(struct hw_tasks_app *a, struct hw_json *j)
{
	struct hw_conf_errors errors = {0};
	struct hw_tasks_settings *to = hw_conf_load_again(&hw_tasks_table, a->conf->head.path, &errors);
	int status = HTTP_OK;
	if (!to) {
		status = errors.no_memory ? refuse_for_memory(a, j) : refuse(a, &errors, j);
	} else if (hw_tasks_app_notify_by(a, &to->notify)) {
		status = refuse_for_memory(a, j);
	} else {
		report_changes(a, to, true, j);
		report_changes(a, to, false, j);
		swap_notify(a, to);
		hw_log(a->log, HW_LOG_NOTICE, "reloaded %s", a->conf->head.path);
	}
	hw_conf_errors_fini(&errors);
	hw_conf_free(to);
	return status;
}

void hw_tasks_reload_on_signal(struct hw_tasks_app *a)
{
	struct evbuffer *unread = evbuffer_new();
	struct hw_json j;
	if (!unread) {
		hw_log(a->log, HW_LOG_ERROR, "reload refused: not enough memory");
		return;
	}
	hw_manager_notify("RELOADING=1");
	hw_json_begin(&j, unread);
	(void)hw_tasks_reload(a, &j);
	hw_manager_notify("READY=1");
	evbuffer_free(unread);
}
