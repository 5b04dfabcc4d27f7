/* SPDX-License-Identifier: MIT */
/*
 * From a configuration to what the parts want to know, at the start and at a reload. A reload parses into a new
 * configuration, and only when nothing at all is wrong with it does anything of the running one change.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "heartwheel/topic.h"
#include "process.h"

int hw_app_template_check(const char *text, enum hw_conf_template kind, const char **why)
{
	struct hw_topic t;
	int rc = kind == HW_CONF_TEMPLATE_BATCH ? hw_topic_compile_batch(&t, text, why)
	                                        : hw_topic_compile(&t, text, kind == HW_CONF_TEMPLATE_STATUS, why);
	if (rc == 0)
		hw_topic_fini(&t);
	return rc;
}

struct hw_group_spec *hw_app_group_specs(const struct hw_conf *c)
{
	struct hw_group_spec *specs = calloc(c->n_groups, sizeof *specs);
	for (size_t k = 0; specs && k < c->n_groups; k++) {
		const struct hw_conf_group *g = &c->groups[k];
		specs[k] = (struct hw_group_spec){.name = g->name,
		                                  .heartbeat = (const char *const *)g->heartbeat,
		                                  .n_heartbeat = g->n_heartbeat,
		                                  .status = g->status,
		                                  .id_prefix = g->id_prefix,
		                                  .timeout_ms = g->timeout_ms,
		                                  .timeout_max_ms = g->timeout_max_ms,
		                                  .goodbye_delay_ms = g->goodbye_delay_ms,
		                                  .max_age_ms = g->max_age_ms,
		                                  .max_offline_rate = (unsigned)g->max_offline_rate,
		                                  .format = g->payload == HW_CONF_PAYLOAD_HOMIE ? HW_FORMAT_HOMIE
		                                                                                : HW_FORMAT_JSON,
		                                  .batch = g->batch};
	}
	return specs;
}

struct hw_monitor_conf hw_app_monitor_conf(const struct hw_conf *c)
{
	return (struct hw_monitor_conf){.max_devices = (uint32_t)c->max_devices,
	                                .forget_after_ms = c->forget_after_ms,
	                                .forget_once_after_ms = c->forget_once_after_ms,
	                                .grace_ms = c->reconnect_grace_ms,
	                                .barrier_slow_ms = c->barrier_slow_ms,
	                                .barrier_timeout_ms = c->barrier_timeout_ms,
	                                .readers = (unsigned)c->readers,
	                                .ttl_factor = (int)c->ttl_factor,
	                                .adopt_by = c->store == HW_STORE_MEMORY ? c->node_id : NULL,
	                                .loading = c->store == HW_STORE_REDIS,
	                                .key_group = c->keyspace_enabled ? c->keyspace_group : NULL};
}

/* What a diff found, as the two arrays of the answer. */
struct changes {
	struct hw_app *app;
	struct evbuffer *live, *restart;
	bool topics; /* of statuses */
};

static void add_string(struct evbuffer *b, const char *text)
{
	char quoted[1024];
	size_t n = hw_json_quote(text, strlen(text), quoted, sizeof quoted);
	if (n >= sizeof quoted)
		n = hw_json_quote(text, 128, quoted, sizeof quoted);
	if (evbuffer_get_length(b) > 0)
		evbuffer_add(b, ",", 1);
	evbuffer_add(b, quoted, n);
}

static void on_change(void *arg, const char *key, bool live)
{
	struct changes *c = arg;
	hw_log(c->app->log, HW_LOG_NOTICE, live ? "reload: %s changed" : "reload: %s changed: restart needed", key);
	add_string(live ? c->live : c->restart, key);
	size_t len = strlen(key), n = sizeof ".status" - 1;
	c->topics |= live && len > n && strcmp(key + len - n, ".status") == 0;
}

static int refuse(struct hw_app *a, struct hw_conf_errors *errors, struct evbuffer *body)
{
	hw_log(a->log, HW_LOG_ERROR, "reload refused, the running configuration stays as it is: %zu wrong line%s",
	       errors->n, errors->n == 1 ? "" : "s");
	struct evbuffer *lines = evbuffer_new();
	for (size_t k = 0; k < errors->n; k++) {
		hw_log(a->log, HW_LOG_ERROR, "%s", errors->lines[k]);
		if (lines)
			add_string(lines, errors->lines[k]);
	}
	evbuffer_add_printf(body, "{\"error\":\"the configuration has errors; nothing was changed\",\"lines\":[");
	if (lines) {
		evbuffer_add_buffer(body, lines);
		evbuffer_free(lines);
	}
	evbuffer_add(body, "]}", 2);
	return 400;
}

/* Opens another log if the setting changed. The old one stays when that fails. */
static void switch_log(struct hw_app *a, const struct hw_conf *to)
{
	int rc = 0;
	if (strcmp(a->conf->log, to->log) != 0)
		rc = hw_log_open(a->log, to->log, to->log_level);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot log to %s: %s; logging goes on where it was", to->log,
		       strerror(-rc));
	a->log->level = to->log_level;
}

static int apply(struct hw_app *a, struct hw_conf *to)
{
	struct hw_group_spec *specs = hw_app_group_specs(to);
	struct hw_monitor_conf mc = hw_app_monitor_conf(to);
	int rc = specs ? hw_monitor_reconfigure(a->monitor, hw_app_now(), &mc, specs, to->n_groups) : -ENOMEM;
	free(specs);
	if (rc)
		return rc;
	if (hw_app_configure_notifier(a, to))
		hw_log(a->log, HW_LOG_ERROR, "[notify] stays as it was: not enough memory");
	switch_log(a, to);
	if (a->conf != a->start)
		hw_conf_free(a->conf);
	a->conf = to;
	struct hw_mqtt_filter *filters;
	size_t n;
	rc = hw_app_filters(a, &filters, &n);
	for (unsigned i = 0; i < a->n_readers && !rc; i++)
		rc = hw_reader_set_filters(a->reader[i].reader, filters, n);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot subscribe to the new topics: %s", strerror(-rc));
	else
		free(filters);
	return 0;
}

/* The file, if it is right and its log can be opened; otherwise NULL, with all that is wrong. */
static struct hw_conf *load(struct hw_app *a, struct hw_conf_errors *errors)
{
	struct hw_conf *to = hw_conf_load(a->conf->path, hw_app_template_check, errors);
	int rc = to && strcmp(a->conf->log, to->log) != 0 ? hw_log_try(to->log) : 0;
	if (!rc)
		return to;
	errors->lines = calloc(1, sizeof *errors->lines);
	if (errors->lines && asprintf(&errors->lines[0], "%s:%u: key 'log': cannot log to %s: %s", to->path,
	                              hw_conf_line(to, "monitor", "log"), to->log, strerror(-rc)) >= 0)
		errors->n = 1;
	hw_conf_free(to);
	return NULL;
}

int hw_app_reload(struct hw_app *a, struct evbuffer *body)
{
	struct hw_conf_errors errors = {0};
	struct hw_conf *to = load(a, &errors);
	if (!to) {
		int status = refuse(a, &errors, body);
		hw_conf_errors_fini(&errors);
		return status;
	}
	hw_conf_errors_fini(&errors);
	struct changes c = {a, evbuffer_new(), evbuffer_new(), false};
	int status = 400;
	if (!c.live || !c.restart)
		goto memory;
	hw_conf_diff(a->conf, to, on_change, &c);
	if (hw_conf_keep_restart_values(a->conf, to) || apply(a, to))
		goto memory;
	to = NULL;
	if (c.topics)
		hw_app_republish(a, hw_app_now());
	hw_log(a->log, HW_LOG_NOTICE, "reloaded %s", a->conf->path);
	evbuffer_add_printf(body, "{\"changed\":[");
	evbuffer_add_buffer(body, c.live);
	evbuffer_add_printf(body, "],\"restart_needed\":[");
	evbuffer_add_buffer(body, c.restart);
	evbuffer_add(body, "]}", 2);
	status = 200;
	goto out;
memory:
	hw_log(a->log, HW_LOG_ERROR, "reload refused: not enough memory, or too many groups; nothing was changed");
	evbuffer_add_printf(body,
	                    "{\"error\":\"not enough memory, or too many groups; nothing was changed\",\"lines\":[]}");
out:
	if (c.live)
		evbuffer_free(c.live);
	if (c.restart)
		evbuffer_free(c.restart);
	hw_conf_free(to);
	return status;
}

void hw_app_reload_on_signal(struct hw_app *a)
{
	struct evbuffer *answer = evbuffer_new(); /* nobody reads it: the log has said it all */
	if (!answer) {
		hw_log(a->log, HW_LOG_ERROR, "reload refused: not enough memory");
		return;
	}
	hw_notify("RELOADING=1");
	hw_app_reload(a, answer);
	hw_notify("READY=1");
	evbuffer_free(answer);
}
