/* SPDX-License-Identifier: MIT */
/* [receiver NAME] of monitor.conf: its struct, rows and rules, in the way of conf/shared.h. */
#ifndef HW_ALERT_SEND_SETTINGS_H
#define HW_ALERT_SEND_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alert/send/notify.h"
#include "conf/draft.h"
#include "conf/table.h"
#include "incident/incidents.h"

#define HW_RECEIVER_URL_MAX 2048 /* bytes; also of alertmanager's list */
#define HW_RECEIVER_URLS    8    /* servers in that list */

enum hw_receiver_type {
	HW_RECEIVER_EXEC,
	HW_RECEIVER_WEBHOOK,
	HW_RECEIVER_ALERTMANAGER,
	HW_RECEIVER_PAGERDUTY,
	HW_RECEIVER_NTFY,
	HW_RECEIVER_SLACK,
	HW_RECEIVER_SMTP,
	HW_RECEIVER_TYPES
};

/* Strings are owned and never NULL ("": not set). */
struct hw_receiver_settings {
	char *name; /* first, as the named sections of conf/table.h need it */
	unsigned line;
	int type;      /* enum hw_receiver_type */
	char *url;     /* alertmanager: a list with commas; smtp: smtp:// or smtps:// */
	char *program; /* exec */
	/* A file that contains the routing key (pagerduty), a bearer token, or, if there is no url, the whole URL
	 * (webhook, ntfy, slack). */
	char *key_file;
	char *username, *password_file;
	int template;       /* enum hw_notify_template: exec, webhook */
	char *title, *text; /* valid formats: template.h */
	char *mail_from, *mail_to;
	char **match;
	size_t n_match;
	char *kinds; /* names, separated by blanks; hw_receiver_kinds() */
	int64_t interval_ms, notify_after_ms, remind_ms;
	unsigned program_line, key_line, password_line; /* of program, key_file and password_file */
};

extern const struct hw_conf_choice hw_receiver_types[];

/* clang-format off */
#define HW_RECEIVER_AT(field) HW_CONF_AT(struct hw_receiver_settings, field)
#define HW_RECEIVER_ROWS \
	{"receiver", "type", HW_CONF_ENUM, HW_RECEIVER_AT(type), .choices = hw_receiver_types, .dflt = "webhook", .live = true}, \
	{"receiver", "url", HW_CONF_STRING, HW_RECEIVER_AT(url), .max = HW_RECEIVER_URL_MAX, .dflt = "", .live = true}, \
	{"receiver", "program", HW_CONF_PATH, HW_RECEIVER_AT(program), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"receiver", "key_file", HW_CONF_PATH, HW_RECEIVER_AT(key_file), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"receiver", "username", HW_CONF_STRING, HW_RECEIVER_AT(username), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"receiver", "password_file", HW_CONF_PATH, HW_RECEIVER_AT(password_file), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"receiver", "template", HW_CONF_ENUM, HW_RECEIVER_AT(template), .choices = hw_notify_templates, .dflt = "json", .live = true}, \
	{"receiver", "title", HW_CONF_STRING, HW_RECEIVER_AT(title), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "{summary}", .live = true}, \
	{"receiver", "text", HW_CONF_STRING, HW_RECEIVER_AT(text), .max = HW_NOTIFY_FORMAT_MAX, .dflt = "{list}", .live = true}, \
	{"receiver", "mail_from", HW_CONF_STRING, HW_RECEIVER_AT(mail_from), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"receiver", "mail_to", HW_CONF_STRING, HW_RECEIVER_AT(mail_to), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true}, \
	{"receiver", "match", HW_CONF_TOPICS, HW_RECEIVER_AT(match), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_receiver_settings, n_match)}, \
	{"receiver", "kinds", HW_CONF_STRING, HW_RECEIVER_AT(kinds), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "device mass blind unseen task", .live = true}, \
	{"receiver", "interval", HW_CONF_DURATION, HW_RECEIVER_AT(interval_ms), .min = 100, .max = HW_CONF_DAY, .dflt = "10s", .live = true}, \
	{"receiver", "notify_after", HW_CONF_DURATION, HW_RECEIVER_AT(notify_after_ms), .min = 0, .max = 7 * HW_CONF_DAY, .dflt = "0", .live = true}, \
	{"receiver", "remind", HW_CONF_DURATION, HW_RECEIVER_AT(remind_ms), .min = 0, .max = 30 * HW_CONF_DAY, .dflt = "0", .live = true}
/* clang-format on */

/* Applies the rules of a section, for a table's `judge`. Called after hw_conf_draft_defaults() for the section. The
 * caller checks `match`, like that of a silence. */
void hw_receiver_judge(struct hw_conf_draft *d, struct hw_receiver_settings *r, struct hw_conf_origins *origins);

/* Checks the files of a receiver on this machine. Returns 0; or -errno, with the key in *key and the reason in
 * `why`. hw_receiver_line(): the line of that key. */
int hw_receiver_check_files(const struct hw_receiver_settings *r, const char **key, char *why, size_t cap);

unsigned hw_receiver_line(const struct hw_receiver_settings *r, const char *key);

/* "exec", "webhook", ... */
const char *hw_receiver_type_name(int type);
/* Returns the mask for hw_receiver_conf. Returns 0 if a name is unknown, and copies that name to `wrong`. */
uint32_t hw_receiver_kinds(const char *kinds, char *wrong, size_t cap);
/* hw_receiver_type_is_each(): whether a message of this type is about one incident only (hw_receiver_conf.each).
 * hw_receiver_type_parallel(): returns how many messages are sent at a time. */
bool hw_receiver_type_is_each(int type);
unsigned hw_receiver_type_parallel(int type);

/* Returns the URL at *at, and moves *at to the next one, or to the end of the list. Only alertmanager has a list,
 * separated by commas. */
const char *hw_receiver_next_url(int type, const char **at, size_t *len);

/* Deep copy; returns 0 or -ENOMEM with nothing in `to`. */
int hw_receiver_copy(struct hw_receiver_settings *to, const struct hw_receiver_settings *from);
void hw_receiver_fini(struct hw_receiver_settings *r);

#endif
