/* SPDX-License-Identifier: MIT */
/* See settings.h. */
#include "notify/settings.h"

#include <stdio.h>
#include <string.h>

#include "conf/suggest.h"

const struct hw_conf_choice hw_notify_templates[] = {{"json", HW_NOTIFY_JSON},   {"text", HW_NOTIFY_TEXT},
                                                     {"slack", HW_NOTIFY_SLACK}, {"ntfy", HW_NOTIFY_NTFY},
                                                     {"mail", HW_NOTIFY_MAIL},   {NULL, 0}};

const char *hw_notify_template_name(int as)
{
	const struct hw_conf_choice *c = hw_notify_templates;
	while (c->name && c->value != as)
		c++;
	return c->name ? c->name : "";
}

bool hw_notify_is_url(const char *text)
{
	size_t n = strncmp(text, "http://", 7) == 0 ? 7 : strncmp(text, "https://", 8) == 0 ? 8 : 0;
	return n && text[n] && text[n] != '/';
}

/* Checks a format: the key `key` of [notify], text with {fields}. */
static void check_format(struct hw_conf_draft *d, const char *key, const char *format)
{
	char name[32], why[256], meant[64] = "";
	const char *near;
	switch (hw_notify_judge(format, name, sizeof(name))) {
	case HW_NOTIFY_GOOD:
		return;
	case HW_NOTIFY_UNKNOWN:
		near = hw_conf_nearest(name, hw_notify_fields);
		if (near)
			snprintf(meant, sizeof(meant), "did you mean {%s}? ", near);
		snprintf(why, sizeof(why), "there is no field {%s}; %sthere are", name, meant);
		for (const char *const *f = hw_notify_fields; *f; f++) {
			size_t n = strlen(why);
			snprintf(why + n, sizeof(why) - n, "%s {%s}", f == hw_notify_fields ? "" : ",", *f);
		}
		break;
	case HW_NOTIFY_BRACE:
		snprintf(why, sizeof(why), "a brace has no partner; write {{ and }} for braces");
		break;
	case HW_NOTIFY_ESCAPE:
		snprintf(why, sizeof(why), "after \\ only n (a new line) or another \\ may follow");
		break;
	}
	hw_conf_draft_require(d, false, "notify", key, key, why);
}

/* Checks an address, which goes into a mail header unchanged. */
static void check_address(struct hw_conf_draft *d, const char *key, const char *value)
{
	bool good = true;
	for (const unsigned char *c = (const unsigned char *)value; *c; c++)
		good &= *c >= ' ' && *c < 0x7f;
	hw_conf_draft_require(d, good, "notify", key, key,
	                      "must be printable ASCII; write a name with other letters as =?UTF-8?B?...?=");
}

void hw_notify_judge_settings(struct hw_conf_draft *d, const struct hw_notify_settings *c)
{
	bool mails = c->exec_template == HW_NOTIFY_MAIL;
	hw_conf_draft_require(d, !*c->webhook || hw_notify_is_url(c->webhook), "notify", "webhook", "webhook",
	                      "must be an http:// or https:// URL");
	hw_conf_draft_require(d, c->exec_template != HW_NOTIFY_NTFY, "notify", "exec_template", "exec_template",
	                      "ntfy is for webhook only: its title is an HTTP header");
	hw_conf_draft_require(d, c->webhook_template != HW_NOTIFY_MAIL, "notify", "webhook_template",
	                      "webhook_template",
	                      "mail is for exec only: a program must pass the mail to a mail server");
	hw_conf_draft_require(d, !mails || strchr(c->mail_from, '@'), "notify", "mail_from", "exec_template",
	                      "exec_template = mail needs mail_from, the address that mails come from");
	hw_conf_draft_require(d, !mails || strchr(c->mail_to, '@'), "notify", "mail_to", "exec_template",
	                      "exec_template = mail needs mail_to, the address that they go to");
	check_address(d, "mail_from", c->mail_from);
	check_address(d, "mail_to", c->mail_to);
	check_format(d, "title", c->title);
	check_format(d, "text", c->text);
}
