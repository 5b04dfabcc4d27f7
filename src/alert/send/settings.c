/* SPDX-License-Identifier: MIT */
/* See settings.h. An error in a section is reported with the line of the key that must be changed, and with the
 * remedy. */
#include "alert/send/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alert/send/secret.h"
#include "conf/shared.h"

const struct hw_conf_choice hw_receiver_types[] = {{"exec", HW_RECEIVER_EXEC},
                                                   {"webhook", HW_RECEIVER_WEBHOOK},
                                                   {"alertmanager", HW_RECEIVER_ALERTMANAGER},
                                                   {"pagerduty", HW_RECEIVER_PAGERDUTY},
                                                   {"ntfy", HW_RECEIVER_NTFY},
                                                   {"slack", HW_RECEIVER_SLACK},
                                                   {"smtp", HW_RECEIVER_SMTP},
                                                   {NULL, 0}};

/* The keys that some types do not use, and the types that use each. */
static const struct {
	const char *key;
	unsigned types;
} used[] = {
#define BIT(type) (1u << HW_RECEIVER_##type)
	{"url", (1u << HW_RECEIVER_TYPES) - 1 - BIT(EXEC)},
	{"program", BIT(EXEC)},
	{"key_file", BIT(WEBHOOK) | BIT(ALERTMANAGER) | BIT(PAGERDUTY) | BIT(NTFY) | BIT(SLACK)},
	{"username", BIT(WEBHOOK) | BIT(ALERTMANAGER) | BIT(NTFY) | BIT(SMTP)},
	{"password_file", BIT(WEBHOOK) | BIT(ALERTMANAGER) | BIT(NTFY) | BIT(SMTP)},
	{"template", BIT(EXEC) | BIT(WEBHOOK)},
	{"title", (1u << HW_RECEIVER_TYPES) - 1 - BIT(ALERTMANAGER) - BIT(PAGERDUTY)},
	{"text", (1u << HW_RECEIVER_TYPES) - 1 - BIT(ALERTMANAGER) - BIT(PAGERDUTY)},
	{"mail_from", BIT(EXEC) | BIT(SMTP)},
	{"mail_to", BIT(EXEC) | BIT(SMTP)},
};

const char *hw_receiver_type_name(int type)
{
	return type >= 0 && type < HW_RECEIVER_TYPES ? hw_receiver_types[type].name : "?";
}

bool hw_receiver_type_is_each(int type)
{
	return type == HW_RECEIVER_ALERTMANAGER || type == HW_RECEIVER_PAGERDUTY;
}

unsigned hw_receiver_type_parallel(int type)
{
	return type == HW_RECEIVER_PAGERDUTY ? HW_INCIDENT_PARALLEL : 1;
}

uint32_t hw_receiver_kinds(const char *kinds, char *wrong, size_t cap)
{
	uint32_t mask = 0;
	snprintf(wrong, cap, "%s", "");
	while (*(kinds += strspn(kinds, " \t,"))) {
		size_t n = strcspn(kinds, " \t,");
		char name[32];
		enum hw_incident_kind kind;
		snprintf(name, sizeof(name), "%.*s", (int)n, kinds);
		if (n >= sizeof(name) || hw_incident_kind_parse(name, &kind)) {
			snprintf(wrong, cap, "%s", name);
			return 0;
		}
		mask |= 1u << kind;
		kinds += n;
	}
	return mask;
}

const char *hw_receiver_next_url(int type, const char **at, size_t *len)
{
	const char *url = *at + strspn(*at, " ");
	*len = type == HW_RECEIVER_ALERTMANAGER ? strcspn(url, ",") : strlen(url);
	*at = url + *len + (url[*len] == ',');
	while (*len > 0 && url[*len - 1] == ' ')
		--*len;
	return url;
}

/* --- rules ------------------------------------------------------------------------------------------------------ */

struct judging {
	struct hw_conf_draft *d;
	const struct hw_receiver_settings *r;
	struct hw_conf_origins *origins;
};

static const struct hw_conf_origin *origin(const struct judging *j, const char *key)
{
	return hw_conf_draft_origin(j->d, j->origins, "receiver", key);
}

static bool is_given(const struct judging *j, const char *key)
{
	return origin(j, key)->line;
}

/* Reports `why` if `holds` is false: for `key`, or for the section if the key is not in the file. */
static void require(const struct judging *j, bool holds, const char *key, const char *why)
{
	const struct hw_conf_origin *o = origin(j, key);
	char section[HW_CONF_NAME_MAX + 16];
	if (holds || o->bad || origin(j, "type")->bad)
		return;
	snprintf(section, sizeof(section), "receiver %s", j->r->name);
	if (o->line)
		hw_conf_wrong(&j->d->errors, o->line, "key", key, "%s", why);
	else
		hw_conf_wrong(&j->d->errors, j->origins->section, "section", section, "%s", why);
}

static void check_name(const struct judging *j)
{
	bool good = true;
	for (const char *c = j->r->name; *c; c++)
		good &= isalnum((unsigned char)*c) || strchr("._-", *c);
	if (!good)
		hw_conf_wrong(&j->d->errors, j->origins->section, "section", j->r->name,
		              "a receiver's name may have letters, digits, '.', '_' and '-': it is part of a key in "
		              "Redis and of a header");
}

static void check_used(const struct judging *j)
{
	char why[96];
	for (size_t k = 0; k < sizeof(used) / sizeof(*used); k++) {
		snprintf(why, sizeof(why), "is not for type = %s: remove this line", hw_receiver_type_name(j->r->type));
		require(j, !is_given(j, used[k].key) || used[k].types & 1u << j->r->type, used[k].key, why);
	}
}

/* Checks the URL of `len` bytes at `url`. Returns what is wrong with it, or NULL. */
static const char *url_wrong(const struct judging *j, const char *url, size_t len)
{
	char one[HW_RECEIVER_URL_MAX + 1];
	bool mail = j->r->type == HW_RECEIVER_SMTP;
	snprintf(one, sizeof(one), "%.*s", (int)len, url);
	const char *host = strstr(one, "://");
	if (mail ? strncmp(one, "smtp://", 7) != 0 && strncmp(one, "smtps://", 8) != 0 : !hw_conf_is_url(one))
		return mail ? "must be smtp://HOST:PORT, or smtps://HOST:PORT for TLS from the first byte"
		            : "must be an http:// or https:// URL";
	for (const unsigned char *c = (const unsigned char *)one; *c; c++)
		if (*c <= ' ' || *c >= 0x7f)
			return "must be printable ASCII without blanks; write other bytes as %XX";
	host += 3;
	size_t n = strcspn(host, "/?#");
	const char *at = memchr(host, '@', n);
	if (at)
		return memchr(host, ':', (size_t)(at - host))
		               ? "has a password in it, which everyone reads who may read this file: write the "
		                 "password "
		                 "into a file of its own, and give username and password_file"
		               : "has a user name in it: give it with the key username";
	if (mail && (n == 0 || (host[n] && strcmp(host + n, "/") != 0)))
		return "must be smtp://HOST:PORT without a path";
	if (j->r->type == HW_RECEIVER_SLACK && n >= 15 && strncmp(host, "hooks.slack.com", 15) == 0)
		return "is a secret, because whoever has it can post: write the URL into a file of its own, and give "
		       "key_file instead of url";
	return NULL;
}

static void check_url(const struct judging *j)
{
	const struct hw_receiver_settings *r = j->r;
	bool from_file = r->type == HW_RECEIVER_WEBHOOK || r->type == HW_RECEIVER_NTFY || r->type == HW_RECEIVER_SLACK;
	size_t n = 0;
	if (r->type == HW_RECEIVER_EXEC)
		return;
	if (!*r->url && from_file)
		require(j, *r->key_file, "url",
		        "needs url; or, if the URL is a secret, key_file: a file whose first line is the URL");
	else if (!*r->url)
		require(j, r->type == HW_RECEIVER_PAGERDUTY, "url", "needs url");
	for (const char *at = r->url; *at;) {
		size_t len;
		const char *one = hw_receiver_next_url(r->type, &at, &len), *why = url_wrong(j, one, len);
		require(j, !why, "url", why ? why : "");
		n++;
	}
	require(j, n <= HW_RECEIVER_URLS, "url", "has more than 8 servers: remove some");
}

static void check_secrets(const struct judging *j)
{
	const struct hw_receiver_settings *r = j->r;
	require(j, r->type != HW_RECEIVER_PAGERDUTY || *r->key_file, "key_file",
	        "needs key_file: a file whose first line is the integration's routing key");
	require(j, !*r->username || *r->password_file, "username", "needs password_file as well");
	require(j, !*r->password_file || *r->username, "password_file", "needs username as well");
	require(j, !*r->key_file || !*r->username || !*r->url, "key_file",
	        "a server gets either a key or a username: remove key_file, or username and password_file");
	require(j, r->type != HW_RECEIVER_SLACK || !*r->key_file || !*r->url, "url",
	        "key_file has the whole URL: remove this line");
	require(j, !hw_notify_address_is_wrong(r->username), "username", "must be printable ASCII");
}

static void check_addresses(const struct judging *j)
{
	const struct hw_receiver_settings *r = j->r;
	bool mail = r->type == HW_RECEIVER_SMTP || (r->type == HW_RECEIVER_EXEC && r->template == HW_NOTIFY_MAIL);
	if (mail) {
		require(j, strchr(r->mail_from, '@'), "mail_from", "needs mail_from, the address that mails come from");
		require(j, strchr(r->mail_to, '@'), "mail_to",
		        "needs mail_to, the addresses that mails go to, separated by commas");
	}
	require(j, !hw_notify_address_is_wrong(r->mail_from), "mail_from", HW_NOTIFY_ADDRESS_WRONG);
	require(j, !hw_notify_address_is_wrong(r->mail_to), "mail_to", HW_NOTIFY_ADDRESS_WRONG);
}

static void check_texts(const struct judging *j)
{
	const struct hw_receiver_settings *r = j->r;
	char why[256] = "";
	require(j, !hw_notify_format_is_wrong(r->title, why, sizeof(why)), "title", why);
	require(j, !hw_notify_format_is_wrong(r->text, why, sizeof(why)), "text", why);
	require(j, r->type != HW_RECEIVER_EXEC || r->template != HW_NOTIFY_NTFY, "template",
	        "ntfy is for webhook only: its title is an HTTP header");
	require(j, r->type != HW_RECEIVER_WEBHOOK || r->template != HW_NOTIFY_MAIL, "template",
	        "mail is for exec only; to send mails without a program, give type = smtp");
}

static void check_choice(const struct judging *j)
{
	const struct hw_receiver_settings *r = j->r;
	char name[32], why[128];
	bool good = hw_receiver_kinds(r->kinds, name, sizeof(name));
	snprintf(why, sizeof(why), "there is no kind '%s'; there are device, mass, blind, unseen, task", name);
	require(j, good, "kinds", why);
	require(j, r->remind_ms == 0 || r->remind_ms >= HW_CONF_MINUTE, "remind",
	        "must be 0 (no reminders) or at least 1m");
}

unsigned hw_receiver_line(const struct hw_receiver_settings *r, const char *key)
{
	return strcmp(key, "program") == 0    ? r->program_line
	       : strcmp(key, "key_file") == 0 ? r->key_line
	                                      : r->password_line;
}

void hw_receiver_judge(struct hw_conf_draft *d, struct hw_receiver_settings *r, struct hw_conf_origins *origins)
{
	const struct judging j = {d, r, origins};
	r->program_line = origin(&j, "program")->line;
	r->key_line = origin(&j, "key_file")->line;
	r->password_line = origin(&j, "password_file")->line;
	check_name(&j);
	require(&j, is_given(&j, "type"), "type",
	        "needs type: exec, webhook, alertmanager, pagerduty, ntfy, slack or smtp");
	if (!is_given(&j, "type") || origin(&j, "type")->bad)
		return;
	require(&j, r->type != HW_RECEIVER_EXEC || *r->program, "program",
	        "needs program, the path of the program to run");
	check_used(&j);
	check_url(&j);
	check_secrets(&j);
	check_addresses(&j);
	check_texts(&j);
	check_choice(&j);
}

/* --- copies ----------------------------------------------------------------------------------------------------- */

static char **texts_of(struct hw_receiver_settings *r, size_t k)
{
	char **const all[] = {&r->name,  &r->url,  &r->program,   &r->key_file, &r->username, &r->password_file,
	                      &r->title, &r->text, &r->mail_from, &r->mail_to,  &r->kinds};
	return k < sizeof(all) / sizeof(*all) ? all[k] : NULL;
}

void hw_receiver_fini(struct hw_receiver_settings *r)
{
	for (size_t k = 0; texts_of(r, k); k++)
		free(*texts_of(r, k));
	for (size_t i = 0; r->match && i < r->n_match; i++)
		free(r->match[i]);
	free(r->match);
	*r = (struct hw_receiver_settings){0};
}

int hw_receiver_copy(struct hw_receiver_settings *to, const struct hw_receiver_settings *from)
{
	struct hw_receiver_settings own = *from;
	bool whole = true;
	own.match = NULL;
	own.n_match = 0;
	for (size_t k = 0; texts_of(&own, k); k++)
		whole &= (*texts_of(&own, k) = strdup(*texts_of(&own, k))) != NULL;
	if (from->n_match > 0)
		whole &= (own.match = calloc(from->n_match, sizeof(*own.match))) != NULL;
	for (; own.match && own.n_match < from->n_match; own.n_match++)
		whole &= (own.match[own.n_match] = strdup(from->match[own.n_match])) != NULL;
	if (whole) {
		*to = own;
		return 0;
	}
	hw_receiver_fini(&own);
	*to = own;
	return -ENOMEM;
}
