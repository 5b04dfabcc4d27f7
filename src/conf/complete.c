/* SPDX-License-Identifier: MIT */
/*
 * After the last line: defaults for what was not given, and the rules that concern more than one key. A rule is told
 * with the line of the key that has to change; nothing is concluded from a value that was refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/parse.h"
#include "conf/value.h"

static const struct hw_conf_mark *mark_of(const struct hw_conf_marks *m, const char *section, const char *key)
{
	return &m->key[hw_conf_option_find(section, key)];
}

/* A value that was refused is replaced by the default as well, so that no field is left without one. */
static void set_defaults(struct hw_conf_parse *p, bool groups, void *base, struct hw_conf_marks *marks)
{
	char why[512];

	for (size_t i = 0; i < hw_conf_n_options; i++) {
		const struct hw_conf_option *o = &hw_conf_options[i];
		int rc;
		if (hw_conf_option_in_group(o) != groups || !o->dflt || (marks->key[i].line && !marks->key[i].bad))
			continue;
		rc = hw_conf_value_set(o, o->dflt, base, why, sizeof(why));
		if (rc == -EINVAL && !marks->key[i].line)
			hw_conf_wrong(&p->errors, 0, "key", o->key, "%s", why);
		if (rc == -ENOMEM)
			p->errors.no_memory = true;
	}
}

/* The group named default has these when the file gives it none; any other must say what it listens to. */
static void add_default_heartbeats(struct hw_conf_parse *p, size_t i)
{
	static const char *const heartbeats[] = {"nodes/{id}/heartbeat", "nodes/{id}/status"};
	int at = hw_conf_option_find("group", "heartbeat");
	char why[512];

	for (size_t k = 0; k < sizeof(heartbeats) / sizeof(heartbeats[0]); k++)
		if (hw_conf_value_set(&hw_conf_options[at], heartbeats[k], &p->conf->groups[i], why, sizeof(why)))
			p->errors.no_memory = true;
}

/* The rule `holds`, unless it rests on a value that was refused. */
static void require(struct hw_conf_parse *p, bool holds, const char *section, const char *key, const char *other,
                    const char *why)
{
	const struct hw_conf_mark *k = mark_of(&p->marks, section, key), *o = mark_of(&p->marks, section, other);

	if (!holds && !k->bad && !o->bad)
		hw_conf_wrong(&p->errors, k->line ? k->line : o->line, "key", k->line ? key : other, "%s", why);
}

static bool may_be_topic(const char *text)
{
	return !strpbrk(text, "+#") && text[0] != '$' && text[0] != '/' && text[strlen(text) - 1] != '/';
}

static bool is_http_url(const char *text)
{
	size_t n = strncmp(text, "http://", 7) == 0 ? 7 : strncmp(text, "https://", 8) == 0 ? 8 : 0;

	return n && text[n] && text[n] != '/';
}

static void check_mqtt(struct hw_conf_parse *p)
{
	const struct hw_conf *c = p->conf;

	require(p, !*c->mqtt_password_file || *c->mqtt_username, "mqtt", "password_file", "username",
	        "needs a username as well: MQTT has no password without one");
	require(p, !*c->tls_cert || *c->tls_key, "mqtt", "tls_cert", "tls_key", "needs tls_key as well");
	require(p, !*c->tls_key || *c->tls_cert, "mqtt", "tls_key", "tls_cert", "needs tls_cert as well");
	require(p, !*c->tls_cert || *c->tls_ca, "mqtt", "tls_cert", "tls_ca",
	        "needs tls_ca as well: TLS is used when the broker can be checked");
	require(p, may_be_topic(c->homeassistant_prefix), "mqtt", "homeassistant_prefix", "homeassistant_prefix",
	        "must be levels of a topic: no '+' or '#', no '$' at the start, no '/' at either end");
	require(p, c->barrier_timeout_ms >= c->barrier_slow_ms, "mqtt", "barrier_timeout", "barrier_slow",
	        "barrier_timeout must not be shorter than barrier_slow");
}

static bool has_group(const struct hw_conf *c, const char *name)
{
	for (size_t i = 0; i < c->n_groups; i++)
		if (strcmp(c->groups[i].name, name) == 0)
			return true;
	return false;
}

static void check_keyspace(struct hw_conf_parse *p)
{
	const struct hw_conf *c = p->conf;
	char why[192];

	snprintf(why, sizeof(why), "there is no [group %s] in this file", c->keyspace_group);
	require(p, !c->keyspace_enabled || has_group(c, c->keyspace_group), "keyspace", "group", "enabled", why);
	require(p, !c->keyspace_enabled || c->store == HW_STORE_REDIS || mark_of(&p->marks, "store", "type")->bad,
	        "keyspace", "enabled", "configure", "needs [store] type = redis: there is no other store with keys");
}

static void check_timeouts(struct hw_conf_parse *p, struct hw_conf_group *g, const struct hw_conf_marks *marks)
{
	const struct hw_conf_mark *timeout = mark_of(marks, "group", "timeout");
	const struct hw_conf_mark *most = mark_of(marks, "group", "timeout_max");
	char is[32], least[32];

	if (timeout->bad || most->bad || g->timeout_max_ms >= g->timeout_ms)
		return;
	if (!most->line) {
		g->timeout_max_ms = g->timeout_ms;
		return;
	}
	hw_conf_wrong(&p->errors, most->line, "key", "timeout_max",
	              "%s is less than this group's timeout: give %s or more, or remove it",
	              hw_conf_duration_format(g->timeout_max_ms, is, sizeof(is)),
	              hw_conf_duration_format(g->timeout_ms, least, sizeof(least)));
}

static void check_heartbeats(struct hw_conf_parse *p, const struct hw_conf_group *g, const struct hw_conf_marks *marks)
{
	const char *wrong = NULL;

	if (!marks->heartbeat || !p->check || mark_of(marks, "group", "batch")->bad)
		return;
	for (size_t i = 0; i < g->n_heartbeat; i++) {
		int rc = p->check(g->heartbeat[i], g->batch ? HW_CONF_TEMPLATE_BATCH : HW_CONF_TEMPLATE_HEARTBEAT,
		                  &wrong);
		if (rc == -ENOMEM)
			p->errors.no_memory = true;
		else if (rc)
			hw_conf_wrong(&p->errors, marks->heartbeat[i], "key", "heartbeat", "%s",
			              wrong ? wrong : "not a topic template");
	}
}

/* A Homie device says its state itself: two that write one retained topic would overwrite each other for ever. */
static void check_payload(struct hw_conf_parse *p, const struct hw_conf_group *g, const struct hw_conf_marks *marks)
{
	static const char state[] = "/$state";
	size_t len = strlen(g->status), n = sizeof(state) - 1;

	if (g->payload != HW_CONF_PAYLOAD_HOMIE)
		return;
	if (g->batch)
		hw_conf_wrong(&p->errors, mark_of(marks, "group", "batch")->line, "key", "batch",
		              "a batch is JSON: remove batch, or payload = homie");
	if (len >= n && strcmp(g->status + len - n, state) == 0 && !mark_of(marks, "group", "status")->bad)
		hw_conf_wrong(&p->errors, mark_of(marks, "group", "status")->line, "key", "status",
		              "$state is the device's own: give another topic, such as heartwheel-homie/{id}/status");
}

static void complete_group(struct hw_conf_parse *p, size_t i)
{
	struct hw_conf_group *g = &p->conf->groups[i];
	struct hw_conf_marks *marks = p->group_marks[i];
	char section[80] = "group ";

	set_defaults(p, true, g, marks);
	if (p->errors.no_memory)
		return;
	strncat(section, g->name, sizeof(section) - strlen(section) - 1);
	bool given = mark_of(marks, "group", "heartbeat")->line;
	if (!given && strcmp(g->name, "default") == 0 && !g->batch)
		add_default_heartbeats(p, i);
	else if (!given)
		hw_conf_wrong(&p->errors, marks->section, "section", section,
		              "has no heartbeat: give at least one, such as heartbeat = nodes/{id}/heartbeat");
	check_timeouts(p, g, marks);
	check_heartbeats(p, g, marks);
	check_payload(p, g, marks);
}

static int keep_lines(struct hw_conf_parse *p)
{
	p->conf->lines = calloc(hw_conf_n_options, sizeof(*p->conf->lines));
	if (!p->conf->lines) {
		p->errors.no_memory = true;
		return -ENOMEM;
	}
	for (size_t i = 0; i < hw_conf_n_options; i++)
		p->conf->lines[i] = p->marks.key[i].line;
	return 0;
}

void hw_conf_complete(struct hw_conf_parse *p)
{
	set_defaults(p, false, p->conf, &p->marks);
	if (p->conf->n_groups == 0 && hw_conf_parse_add_group(p, "default"))
		p->errors.no_memory = true;
	if (p->errors.no_memory)
		return; /* fields may be missing */
	if (keep_lines(p))
		return;
	check_mqtt(p);
	require(p, !*p->conf->notify_webhook || is_http_url(p->conf->notify_webhook), "notify", "webhook", "webhook",
	        "must be an http:// or https:// URL");
	for (size_t i = 0; i < p->conf->n_groups; i++)
		complete_group(p, i);
	check_keyspace(p);
}
