/* SPDX-License-Identifier: MIT */
/* See notify.h. */
#include "alert/send/notify.h"

#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/shared.h"
#include "conf/suggest.h"
#include "heartwheel/print.h"

const struct hw_conf_choice hw_notify_templates[] = {{"json", HW_NOTIFY_JSON},   {"text", HW_NOTIFY_TEXT},
                                                     {"slack", HW_NOTIFY_SLACK}, {"ntfy", HW_NOTIFY_NTFY},
                                                     {"mail", HW_NOTIFY_MAIL},   {NULL, 0}};

bool hw_notify_format_is_wrong(const char *format, char *why, size_t cap)
{
	char name[32], meant[64] = "";
	const char *near;
	size_t n;
	switch (hw_notify_judge(format, name, sizeof(name))) {
	case HW_NOTIFY_GOOD:
		return false;
	case HW_NOTIFY_UNKNOWN:
		near = hw_conf_nearest(name, hw_notify_fields);
		if (near)
			snprintf(meant, sizeof(meant), "did you mean {%s}? ", near);
		n = hw_print(why, cap, "there is no field {%s}; %sthere are", name, meant);
		for (const char *const *f = hw_notify_fields; *f; f++)
			n += hw_print(why + n, cap - n, "%s {%s}", f == hw_notify_fields ? "" : ",", *f);
		break;
	case HW_NOTIFY_BRACE:
		snprintf(why, cap, "a brace has no partner; write {{ and }} for braces");
		break;
	case HW_NOTIFY_ESCAPE:
		snprintf(why, cap, "after \\ only n (a new line) or another \\ may follow");
		break;
	}
	return true;
}

static void check_format(struct hw_conf_draft *d, const char *key, const char *format)
{
	char why[256];
	bool wrong = hw_notify_format_is_wrong(format, why, sizeof(why));
	hw_conf_draft_require(d, !wrong, "notify", key, key, why);
}

bool hw_notify_address_is_wrong(const char *address)
{
	bool good = true;
	for (const unsigned char *c = (const unsigned char *)address; *c; c++)
		good &= *c >= ' ' && *c < 0x7f;
	return !good;
}

static void check_address(struct hw_conf_draft *d, const char *key, const char *value)
{
	hw_conf_draft_require(d, !hw_notify_address_is_wrong(value), "notify", key, key, HW_NOTIFY_ADDRESS_WRONG);
}

void hw_notify_judge_settings(struct hw_conf_draft *d, const struct hw_notify_settings *c)
{
	bool mails = c->exec_template == HW_NOTIFY_MAIL;
	hw_conf_draft_require(d, !*c->webhook || hw_conf_is_url(c->webhook), "notify", "webhook", "webhook",
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
