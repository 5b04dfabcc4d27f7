/* SPDX-License-Identifier: MIT */
/* See show.h. */
#include "notify/show.h"

#include <event2/http.h>
#include <stdio.h>
#include <string.h>

#include "http/json.h"
#include "http/metrics.h"

#define TIMEOUT_MS 10000
#define RETRY_MS   1000

int hw_notify_configure(struct hw_notifier *n, const struct hw_notify_settings *c, const char *node_id)
{
	const struct hw_notifier_conf nc = {
		.node_id = node_id,
		.exec = c->exec,
		.webhook = c->webhook,
		.as = {[HW_NOTIFIER_EXEC] = (enum hw_notify_template)c->exec_template,
	               [HW_NOTIFIER_WEBHOOK] = (enum hw_notify_template)c->webhook_template},
		.title = c->title,
		.text = c->text,
		.mail_from = c->mail_from,
		.mail_to = c->mail_to,
		.interval_ms = c->interval_ms,
		.blind_after_ms = c->blind_after_ms,
		.timeout_ms = TIMEOUT_MS,
		.retry_ms = RETRY_MS};
	return hw_notifier_configure(n, &nc);
}

/* --- metrics ------------------------------------------------------------------ */

void hw_notify_metrics(const struct hw_notifier *n, struct evbuffer *b)
{
	const struct hw_notifier_stats *s = hw_notifier_stats(n);
	const struct {
		const char *name, *type, *help;
		const uint64_t *value;
	} families[] = {
		{"notify_sent_total", "counter", "Notifications that arrived.", s->sent},
		{"notify_failed_total", "counter", "Notifications that were dropped after their tries.", s->failed},
		{"notify_retried_total", "counter", "Tries of notifications after the first.", s->retried},
	};
	for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++) {
		hw_metric_family(b, families[f].name, families[f].type, families[f].help);
		for (int k = 0; k < HW_NOTIFIER_KINDS; k++)
			hw_metric_labelled(b, families[f].name, "kind", hw_notifier_kind_name((enum hw_notifier_kind)k),
			                   (double)families[f].value[k]);
	}
	hw_metric_family(b, "notify_waiting", "gauge", "Notifications that wait for their target.");
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++)
		hw_metric_labelled(b, "notify_waiting", "kind", hw_notifier_kind_name((enum hw_notifier_kind)k),
		                   (double)s->waiting[k]);
	hw_metric_one(b, "notify_dropped_total", "counter", "Notifications dropped because the queue was full.",
	              (double)s->dropped);
}

/* --- the API ------------------------------------------------------------------ */

/* Writes scheme, host and port; the rest of a URL may be a secret. */
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

/* The last message to a channel that has had a try. */
static const struct hw_notifier_entry *last_of(const struct hw_notifier *n, enum hw_notifier_kind kind)
{
	for (uint64_t k = hw_notifier_last(n); k > 0; k--) {
		const struct hw_notifier_entry *e = hw_notifier_entry(n, k);
		if (!e || (e->kind == kind && e->tries > 0))
			return e;
	}
	return NULL;
}

static void put_channel(struct hw_json *j, const struct hw_notifier *n, const struct hw_notify_settings *c,
                        enum hw_notifier_kind kind)
{
	const struct hw_notifier_stats *s = hw_notifier_stats(n);
	const struct hw_notifier_entry *last = last_of(n, kind);
	hw_json_open(j, '{');
	hw_json_text(j, "name", hw_notifier_kind_name(kind));
	if (kind == HW_NOTIFIER_EXEC)
		hw_json_text(j, "target", c->exec);
	else
		put_origin(j, c->webhook);
	hw_json_text(j, "template",
	             hw_notify_template_name(kind == HW_NOTIFIER_EXEC ? c->exec_template : c->webhook_template));
	hw_json_uint(j, "sent", s->sent[kind]);
	hw_json_uint(j, "failed", s->failed[kind]);
	hw_json_uint(j, "waiting", s->waiting[kind]);
	hw_json_bool(j, "failing", last && last->why[0]);
	hw_json_close(j, '}');
}

static bool is_set_up(const struct hw_notify_settings *c, enum hw_notifier_kind kind)
{
	return *(kind == HW_NOTIFIER_EXEC ? c->exec : c->webhook);
}

void hw_notify_show(const struct hw_notifier *n, const struct hw_notify_settings *c, struct hw_json *j)
{
	const struct hw_notifier_entry *e;
	hw_json_open_member(j, "channels", '[');
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++)
		if (is_set_up(c, (enum hw_notifier_kind)k))
			put_channel(j, n, c, (enum hw_notifier_kind)k);
	hw_json_close(j, ']');
	hw_json_open_member(j, "notifications", '[');
	for (uint64_t k = hw_notifier_last(n); k > 0 && (e = hw_notifier_entry(n, k)); k--)
		put_entry(j, e);
	hw_json_close(j, ']');
}

int hw_notify_test(struct hw_notifier *n, const struct hw_notify_settings *c, const char *channel, struct hw_json *j)
{
	uint64_t number;
	bool any = false;
	hw_json_open_member(j, "tests", '[');
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		const char *name = hw_notifier_kind_name((enum hw_notifier_kind)k);
		if (!is_set_up(c, (enum hw_notifier_kind)k) || (*channel && strcmp(channel, name) != 0))
			continue;
		int rc = hw_notifier_test(n, (enum hw_notifier_kind)k, &number);
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
