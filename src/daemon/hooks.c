/* SPDX-License-Identifier: MIT */
/* The notifier's place in the daemon: its configuration, what it has to complain of, and what the API is told of it. */
#include "hooks.h"

#include <errno.h>
#include <event2/http.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "http/json.h"

#define TIMEOUT_MS 10000
#define RETRY_MS   1000

int hw_app_configure_notifier(struct hw_app *a, const struct hw_settings *c)
{
	struct hw_notifier_conf nc = {
		.node_id = c->node_id,
		.exec = c->notify_exec,
		.webhook = c->notify_webhook,
		.as = {[HW_NOTIFIER_EXEC] = (enum hw_notify_template)c->notify_exec_template,
	               [HW_NOTIFIER_WEBHOOK] = (enum hw_notify_template)c->notify_webhook_template},
		.title = c->notify_title,
		.text = c->notify_text,
		.mail_from = c->notify_mail_from,
		.mail_to = c->notify_mail_to,
		.interval_ms = c->notify_interval_ms,
		.timeout_ms = TIMEOUT_MS,
		.retry_ms = RETRY_MS};
	/* Not an error: it may be put there later. */
	if (c->notify_exec[0] && access(c->notify_exec, X_OK))
		hw_log(a->log, HW_LOG_WARNING, "[notify] exec = %s cannot be run: %s", c->notify_exec, strerror(errno));
	return hw_notifier_configure(a->notifier, &nc);
}

void hw_app_notify_trouble(void *arg, enum hw_notifier_kind kind, const char *text)
{
	struct hw_app *a = arg;
	/* The URL may hold a secret: it is not logged. */
	hw_log_limited(a->log, HW_LIMIT_NOTIFY, HW_LOG_WARNING, "[notify] %s: %s", hw_notifier_kind_name(kind), text);
}

/* --- the API ------------------------------------------------------------------ */

/* Scheme, host and port: what else there is of a URL may be a secret. */
static void put_origin(struct hw_json *j, const char *url)
{
	char text[300];
	const char *host = strstr(url, "://") + 3, *end = host + strcspn(host, "/?#");
	for (const char *at = host; at < end; at++)
		if (*at == '@')
			host = at + 1;
	snprintf(text, sizeof(text), "%.*s%.*s", (int)(strstr(url, "://") + 3 - url), url, (int)(end - host), host);
	hw_json_text(j, "target", text);
}

static void put_result(struct hw_json *j, const struct hw_notifier_entry *e)
{
	hw_json_text(j, "result", hw_notifier_result_name(e->result));
	hw_json_uint(j, "tries", e->tries);
	if (e->code >= 0)
		hw_json_int(j, e->kind == HW_NOTIFIER_EXEC ? "exit_status" : "http_status", e->code);
	hw_json_text(j, "error", e->why[0] ? e->why : NULL);
	if (e->ended_ms)
		hw_json_int(j, "ended_ms", e->ended_ms);
}

static void put_entry(struct hw_json *j, const struct hw_notifier_entry *e)
{
	hw_json_open(j, '{');
	hw_json_uint(j, "number", e->number);
	hw_json_text(j, "channel", hw_notifier_kind_name(e->kind));
	hw_json_int(j, "time_ms", e->at_ms);
	hw_json_text(j, "about", e->about);
	hw_json_bool(j, "test", e->test);
	put_result(j, e);
	hw_json_close(j, '}');
}

/* The last message to a channel that arrived or did not, or is tried anew. */
static const struct hw_notifier_entry *last_of(const struct hw_notifier *n, enum hw_notifier_kind kind)
{
	for (uint64_t k = hw_notifier_last(n); k > 0; k--) {
		const struct hw_notifier_entry *e = hw_notifier_entry(n, k);
		if (!e || (e->kind == kind && e->tries > 0))
			return e;
	}
	return NULL;
}

static void put_channel(struct hw_json *j, const struct hw_app *a, enum hw_notifier_kind kind)
{
	const struct hw_settings *c = a->conf;
	const struct hw_notifier_stats *s = hw_notifier_stats(a->notifier);
	const struct hw_notifier_entry *last = last_of(a->notifier, kind);
	hw_json_open(j, '{');
	hw_json_text(j, "name", hw_notifier_kind_name(kind));
	if (kind == HW_NOTIFIER_EXEC)
		hw_json_text(j, "target", c->notify_exec);
	else
		put_origin(j, c->notify_webhook);
	hw_json_text(j, "template",
	             hw_settings_template_name(kind == HW_NOTIFIER_EXEC ? c->notify_exec_template
	                                                                : c->notify_webhook_template));
	hw_json_uint(j, "sent", s->sent[kind]);
	hw_json_uint(j, "failed", s->failed[kind]);
	hw_json_uint(j, "waiting", s->waiting[kind]);
	hw_json_bool(j, "failing", last && last->why[0]);
	hw_json_close(j, '}');
}

static bool is_set_up(const struct hw_app *a, enum hw_notifier_kind kind)
{
	return *(kind == HW_NOTIFIER_EXEC ? a->conf->notify_exec : a->conf->notify_webhook);
}

void hw_app_show_notify(void *arg, struct hw_json *j)
{
	const struct hw_app *a = arg;
	const struct hw_notifier *n = a->notifier;
	const struct hw_notifier_entry *e;
	hw_json_key(j, "channels");
	hw_json_open(j, '[');
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++)
		if (is_set_up(a, (enum hw_notifier_kind)k))
			put_channel(j, a, (enum hw_notifier_kind)k);
	hw_json_close(j, ']');
	hw_json_key(j, "notifications");
	hw_json_open(j, '[');
	for (uint64_t k = hw_notifier_last(n); k > 0 && (e = hw_notifier_entry(n, k)); k--)
		put_entry(j, e);
	hw_json_close(j, ']');
}

int hw_app_test_notify(void *arg, const char *channel, struct hw_json *j)
{
	struct hw_app *a = arg;
	uint64_t number;
	bool any = false;
	hw_json_key(j, "tests");
	hw_json_open(j, '[');
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		const char *name = hw_notifier_kind_name((enum hw_notifier_kind)k);
		if (!is_set_up(a, (enum hw_notifier_kind)k) || (*channel && strcmp(channel, name) != 0))
			continue;
		int rc = hw_notifier_test(a->notifier, (enum hw_notifier_kind)k, &number);
		any = true;
		hw_json_open(j, '{');
		hw_json_text(j, "channel", name);
		if (rc == 0)
			hw_json_uint(j, "number", number);
		else
			hw_json_text(j, "error", rc == -EBUSY ? "its queue is full" : strerror(-rc));
		hw_json_close(j, '}');
	}
	hw_json_close(j, ']');
	return any ? HTTP_OK : HTTP_NOTFOUND;
}
