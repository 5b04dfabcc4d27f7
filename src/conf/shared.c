/* SPDX-License-Identifier: MIT */
/* See shared.h. */
#include "conf/shared.h"

#include <string.h>

#include "conf/hosts.h"

const struct hw_conf_choice hw_conf_protocols[] = {{"5", 5}, {"3.1.1", 311}, {NULL, 0}};
const struct hw_conf_choice hw_conf_stores[] = {{"redis", HW_STORE_REDIS}, {"memory", HW_STORE_MEMORY}, {NULL, 0}};

bool hw_conf_is_url(const char *text)
{
	size_t n = strncmp(text, "http://", 7) == 0 ? 7 : strncmp(text, "https://", 8) == 0 ? 8 : 0;
	return n && text[n] && text[n] != '/';
}

static bool may_be_topic(const char *text)
{
	return !strpbrk(text, "+#") && text[0] != '$' && text[0] != '/' && text[strlen(text) - 1] != '/';
}

void hw_conf_judge_mqtt(struct hw_conf_draft *d, const struct hw_conf_mqtt *c)
{
	hw_conf_draft_require(d, !*c->password_file || *c->username, "mqtt", "password_file", "username",
	                      "needs username as well: MQTT has no password without a username");
	hw_conf_draft_require(d, !*c->tls_cert || *c->tls_key, "mqtt", "tls_cert", "tls_key", "needs tls_key as well");
	hw_conf_draft_require(d, !*c->tls_key || *c->tls_cert, "mqtt", "tls_key", "tls_cert", "needs tls_cert as well");
	hw_conf_draft_require(d, !*c->tls_cert || *c->tls_ca, "mqtt", "tls_cert", "tls_ca",
	                      "needs tls_ca as well: TLS is used only when the broker's certificate can be checked");
	hw_conf_draft_require(
		d, may_be_topic(c->homeassistant_prefix), "mqtt", "homeassistant_prefix", "homeassistant_prefix",
		"must be one or more levels of a topic: no '+' or '#', no '$' at the start, no '/' at either end");
	hw_conf_draft_require(d, c->barrier_timeout_ms >= c->barrier_slow_ms, "mqtt", "barrier_timeout", "barrier_slow",
	                      "barrier_timeout must not be shorter than barrier_slow");
}

void hw_conf_judge_redis(struct hw_conf_draft *d, const struct hw_conf_redis *c)
{
	struct hw_hosts list;
	char why[160] = "";
	if (*c->sentinels && hw_hosts_parse(&list, c->sentinels, why, sizeof(why)) != 0)
		hw_conf_draft_require(d, false, "redis", "sentinels", "sentinels", why);
	hw_conf_draft_require(d, !*c->sentinels || *c->master, "redis", "sentinels", "master",
	                      "needs master as well: the name that the Sentinels use for the master");
	hw_conf_draft_require(d, !*c->master || *c->sentinels, "redis", "master", "sentinels",
	                      "needs sentinels as well: the servers that know the master");
	hw_conf_draft_require(d, !*c->sentinels || !*c->unix_socket, "redis", "sentinels", "unix_socket",
	                      "with sentinels the master is reached by its address: remove unix_socket, or sentinels");
}
