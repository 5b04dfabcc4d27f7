/* SPDX-License-Identifier: MIT */
/* [notify] of monitor.conf, whose `exec` and `webhook` are receivers: its struct, rows and rules. */
#ifndef HW_ALERT_SEND_NOTIFY_H
#define HW_ALERT_SEND_NOTIFY_H

#include <stdbool.h>

#include "alert/send/template.h"
#include "conf/draft.h"
#include "conf/table.h"

#define HW_NOTIFY_URL_MAX    2048
#define HW_NOTIFY_FORMAT_MAX 1000

/* Strings are owned and never NULL. */
struct hw_notify_settings {
	char *exec, *webhook;
	int exec_template, webhook_template; /* enum hw_notify_template */
	char *title, *text;                  /* valid formats: template.h */
	char *mail_from, *mail_to;
	int64_t interval_ms;
	int64_t blind_after_ms; /* without effect: [alert] blind_after */
};

extern const struct hw_conf_choice hw_notify_templates[];

/* clang-format off */
#define HW_NOTIFY_ROWS(type, member) \
	{"notify", "exec", HW_CONF_PATH, HW_CONF_AT(type, member.exec), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"notify", "webhook", HW_CONF_WORD, HW_CONF_AT(type, member.webhook), .max = HW_NOTIFY_URL_MAX, .dflt = "", .live = true}, \
	{"notify", "exec_template", HW_CONF_ENUM, HW_CONF_AT(type, member.exec_template), .choices = hw_notify_templates, .dflt = "json", .live = true}, \
	{"notify", "webhook_template", HW_CONF_ENUM, HW_CONF_AT(type, member.webhook_template), .choices = hw_notify_templates, .dflt = "json", .live = true}, \
	{"notify", "title", HW_CONF_STRING, HW_CONF_AT(type, member.title), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "{summary}", .live = true}, \
	{"notify", "text", HW_CONF_STRING, HW_CONF_AT(type, member.text), .max = HW_NOTIFY_FORMAT_MAX, .dflt = "{list}\\n{now}.", .live = true}, \
	{"notify", "mail_from", HW_CONF_STRING, HW_CONF_AT(type, member.mail_from), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"notify", "mail_to", HW_CONF_STRING, HW_CONF_AT(type, member.mail_to), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"notify", "notify_interval", HW_CONF_DURATION, HW_CONF_AT(type, member.interval_ms), .min = 100, .max = HW_CONF_DAY, .dflt = "10s", .live = true}, \
	{"notify", "blind_notify_after", HW_CONF_DURATION, HW_CONF_AT(type, member.blind_after_ms), .min = 0, .max = HW_CONF_DAY, .dflt = "5s", .live = true}
/* clang-format on */

/* Rules for a table's `judge`. */
void hw_notify_judge_settings(struct hw_conf_draft *d, const struct hw_notify_settings *c);

/* Whether a format is wrong, with the reason in `why`. */
bool hw_notify_format_is_wrong(const char *format, char *why, size_t cap);
/* Whether a mail address, which goes into a header unchanged, has a byte that is not printable ASCII. */
bool hw_notify_address_is_wrong(const char *address);
#define HW_NOTIFY_ADDRESS_WRONG "must be printable ASCII; write a name with other letters as =?UTF-8?B?...?="

#endif
