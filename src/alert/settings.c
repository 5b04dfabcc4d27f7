/* SPDX-License-Identifier: MIT */
/* Every key of monitor.conf that heartwheel-alert reads. */
#include "alert/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "incident/match.h"
#include "incident/window.h"
#include "run/log.h"

#define AT(field)  HW_CONF_AT(struct hw_alert_settings, field)
#define SAT(field) HW_CONF_AT(struct hw_silence_settings, field)

static const struct hw_conf_choice zones[] = {{"local", 0}, {"utc", 1}, {NULL, 0}};

/* --- the rules ---------------------------------------------------------------------------------------------------- */

static int index_of(const struct hw_conf_draft *d, const char *section, const char *key)
{
	return hw_conf_option_find(d->table, section, key);
}

/* Checks the lines `match` of a section. */
static void judge_match(struct hw_conf_draft *d, const char *section, struct hw_conf_origins *origins,
                        char *const *match, size_t n)
{
	int at = index_of(d, section, "match");
	char all[HW_MATCH_TEXT + 1] = "";
	size_t len = 0;
	bool wrong = false;
	for (size_t i = 0; i < n; i++) {
		struct hw_match *m = NULL;
		bool bad = hw_match_parse(match[i], &m) != 0;
		wrong |= bad;
		if (bad)
			hw_conf_wrong(
				&d->errors, origins->lines[at] ? origins->lines[at][i] : origins->section, "key",
				"match",
				"'%s' is not a matcher: give terms group:GLOB, id:GLOB or label:NAME=GLOB, such as "
				"match = group:pumps id:p-*",
				match[i]);
		hw_match_free(m);
		len += hw_print(all + len, sizeof(all) - len, "%s%s", i ? "\n" : "", match[i]);
	}
	struct hw_match *m = NULL;
	if (!wrong && n > 1 && (len + 1 >= sizeof(all) || hw_match_parse(all, &m) != 0))
		hw_conf_wrong(&d->errors, origins->lines[at] ? origins->lines[at][n - 1] : origins->section, "key",
		              "match", "the lines have more than %d terms or %d bytes: use globs, or a second section",
		              HW_MATCH_TERMS, HW_MATCH_TEXT);
	hw_match_free(m);
}

static void judge_windows(struct hw_conf_draft *d, const struct hw_silence_settings *s, struct hw_conf_origins *origins)
{
	struct hw_window w;
	int at = index_of(d, "silence", "when");
	char section[HW_CONF_NAME_MAX + 16];
	snprintf(section, sizeof(section), "silence %s", s->name);
	if (s->n_when == 0 && !origins->key[at].line)
		hw_conf_wrong(&d->errors, origins->section, "section", section,
		              "has no window, so it never begins: give one, such as when = Sun,Wed 02:00-04:00");
	if (s->n_when > HW_INCIDENT_WINDOWS)
		hw_conf_wrong(&d->errors, origins->section, "section", section,
		              "has %zu lines 'when': the limit is %d; split the section", s->n_when,
		              HW_INCIDENT_WINDOWS);
	for (size_t i = 0; i < s->n_when; i++)
		if (hw_window_parse(s->when[i], &w) != 0)
			hw_conf_wrong(&d->errors, origins->lines[at][i], "key", "when",
			              "'%s' is not a window, so it never begins: give days and times, such as "
			              "when = Sun,Wed 02:00-04:00, or * 22:00-06:00 for each day",
			              s->when[i]);
	if (s->n_match == 0 && !origins->key[index_of(d, "silence", "match")].line)
		hw_conf_wrong(&d->errors, origins->section, "section", section,
		              "has no match: give one, such as match = group:washers; id:* matches every device");
}

static void judge_receiver(struct hw_conf_draft *d, struct hw_receiver_settings *r, struct hw_conf_origins *origins)
{
	hw_conf_draft_defaults(d, hw_conf_kind_find(d->table, "receiver"), r, origins);
	if (d->errors.no_memory)
		return;
	hw_receiver_judge(d, r, origins);
	judge_match(d, "receiver", origins, r->match, r->n_match);
}

static void judge_notify(struct hw_conf_draft *d, const struct hw_alert_settings *c)
{
	hw_notify_judge_settings(d, &c->notify);
	for (size_t i = 0; i < c->n_receivers; i++) {
		const char *name = c->receivers[i].name;
		bool is = strcmp(name, "exec") == 0      ? *c->notify.exec
		          : strcmp(name, "webhook") == 0 ? *c->notify.webhook
		                                         : 0;
		char section[HW_CONF_NAME_MAX + 16];
		snprintf(section, sizeof(section), "receiver %s", name);
		if (is)
			hw_conf_wrong(
				&d->errors, d->named[1][i]->section, "section", section,
				"[notify] %s is a receiver of that name: give this section another name, or remove the "
				"key of [notify]",
				name);
	}
}

static void judge(struct hw_conf_draft *d)
{
	struct hw_alert_settings *c = (struct hw_alert_settings *)d->conf;
	hw_conf_judge_redis(d, &c->redis);
	for (size_t i = 0; i < c->n_silences; i++) {
		hw_conf_draft_defaults(d, hw_conf_kind_find(d->table, "silence"), &c->silences[i], d->named[0][i]);
		judge_match(d, "silence", d->named[0][i], c->silences[i].match, c->silences[i].n_match);
		judge_windows(d, &c->silences[i], d->named[0][i]);
	}
	for (size_t i = 0; i < c->n_receivers && !d->errors.no_memory; i++)
		judge_receiver(d, &c->receivers[i], d->named[1][i]);
	judge_notify(d, c);
	hw_conf_draft_require(d, c->flap_start == 0 || c->flap_end < c->flap_start, "alert", "flap_end", "flap_start",
	                      "must be less than flap_start, or flapping never ends");
}

/* --- warnings ----------------------------------------------------------------------------------------------------- */

#define LISTED 5 /* groups that a warning names */

struct lint {
	const struct hw_alert_settings *c;
	void (*report)(void *arg, unsigned line, const char *text);
	void *arg;
};

static bool is_group(const struct hw_alert_settings *c, const char *glob)
{
	for (size_t i = 0; i < c->head.n_groups; i++)
		if (hw_glob(glob, c->head.groups[i], strlen(c->head.groups[i])))
			return true;
	return false;
}

static void lint_group(const struct lint *l, const char *kind, const char *name, unsigned line, const char *glob)
{
	char *const *groups = l->c->head.groups;
	char text[512];
	if (is_group(l->c, glob))
		return;
	const char *near = hw_conf_nearest(glob, (const char *const *)groups);
	size_t n = hw_print(text, sizeof(text),
	                    "[%s %s]: no group of this file matches group:%.64s, so this term matches no device; ",
	                    kind, name, glob);
	n += hw_print(text + n, sizeof(text) - n, near ? "did you mean group:%s?" : "there are%s", near ? near : "");
	for (size_t i = 0; !near && i < l->c->head.n_groups && i < LISTED; i++)
		n += hw_print(text + n, sizeof(text) - n, " group:%s", groups[i]);
	l->report(l->arg, line, text);
}

/* The inventory may contain any label. So a label that no group has is reported only if it looks like a typing error.
 */
static void lint_label(const struct lint *l, const char *kind, const char *name, unsigned line, const char *label)
{
	char *const *labels = l->c->head.labels;
	char text[512];
	for (size_t i = 0; i < l->c->head.n_labels; i++)
		if (strcmp(labels[i], label) == 0)
			return;
	const char *near = labels ? hw_conf_nearest(label, (const char *const *)labels) : NULL;
	if (!near)
		return;
	hw_print(text, sizeof(text),
	         "[%s %s]: no group of this file gives the label %.64s, so this term matches only devices that have it "
	         "from the inventory; did you mean label:%s?",
	         kind, name, label, near);
	l->report(l->arg, line, text);
}

static void lint_match(const struct lint *l, const char *kind, const char *name, unsigned line, char *const *match,
                       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hw_match *m;
		const char *glob, *label;
		size_t k = 0;
		if (hw_match_parse(match[i], &m) != 0)
			continue;
		while ((glob = hw_match_group(m, &k)))
			lint_group(l, kind, name, line, glob);
		k = 0;
		while ((label = hw_match_label(m, &k)))
			lint_label(l, kind, name, line, label);
		hw_match_free(m);
	}
}

void hw_alert_lint(const struct hw_alert_settings *c, void (*report)(void *arg, unsigned line, const char *text),
                   void *arg)
{
	const struct lint l = {c, report, arg};
	if (c->head.n_groups == 0)
		return;
	for (size_t i = 0; i < c->n_silences; i++)
		lint_match(&l, "silence", c->silences[i].name, c->silences[i].line, c->silences[i].match,
		           c->silences[i].n_match);
	for (size_t i = 0; i < c->n_receivers; i++)
		lint_match(&l, "receiver", c->receivers[i].name, c->receivers[i].line, c->receivers[i].match,
		           c->receivers[i].n_match);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const struct hw_conf_option options[] = {
	{"monitor", "node_id", HW_CONF_NODE_ID, AT(node_id), .min = 1, .max = HW_CONF_NAME_MAX, .dflt = "auto", .borrowed = true},

	{"tasks", "key_prefix", HW_CONF_WORD, AT(task_prefix), .min = 1, .max = 64, .dflt = "task:", .borrowed = true},

	{"alert", "clear_after", HW_CONF_DURATION, AT(clear_after_ms), .min = 0, .max = HW_CONF_DAY, .dflt = "0", .live = true},
	{"alert", "mass", HW_CONF_INT, AT(mass), .min = 0, .max = 1000000, .unit = "devices", .dflt = "20", .live = true},
	{"alert", "mass_share", HW_CONF_INT, AT(mass_share), .min = 0, .max = 100, .unit = "per cent of a group", .dflt = "20", .live = true},
	{"alert", "mass_window", HW_CONF_DURATION, AT(mass_window_ms), .min = HW_CONF_SECOND, .max = HW_CONF_HOUR, .dflt = "60s", .live = true},
	{"alert", "flap_start", HW_CONF_INT, AT(flap_start), .min = 0, .max = 1000, .unit = "transitions", .dflt = "6", .live = true},
	{"alert", "flap_end", HW_CONF_INT, AT(flap_end), .min = 1, .max = 1000, .unit = "transitions", .dflt = "2", .live = true},
	{"alert", "flap_half", HW_CONF_DURATION, AT(flap_half_ms), .min = HW_CONF_SECOND, .max = HW_CONF_DAY, .dflt = "20m", .live = true},
	{"alert", "blind_after", HW_CONF_DURATION, AT(blind_after_ms), .min = 0, .max = HW_CONF_DAY, .dflt = "2m", .live = true},
	{"alert", "keep", HW_CONF_DURATION, AT(keep_ms), .min = HW_CONF_HOUR, .max = 3650 * HW_CONF_DAY, .dflt = "30d", .live = true},
	{"alert", "socket", HW_CONF_PATH, AT(socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/alert.sock"},
	{"alert", "socket_group", HW_CONF_WORD, AT(socket_group), .max = 32, .dflt = ""},
	{"alert", "state_file", HW_CONF_PATH, AT(state_file), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "/var/lib/heartwheel/alert.json"},
	{"alert", "pid_file", HW_CONF_PATH, AT(pid_file), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "/run/heartwheel/heartwheel-alert.pid"},
	{"alert", "user", HW_CONF_WORD, AT(user), .max = 32, .dflt = "heartwheel"},
	{"alert", "log", HW_CONF_LOG, AT(log), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "syslog"},
	{"alert", "log_level", HW_CONF_ENUM, AT(log_level), .choices = hw_log_levels, .dflt = "info"},

	{"http", "socket", HW_CONF_PATH, AT(monitor_socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/control.sock", .borrowed = true},

	HW_CONF_STORE_ROWS(struct hw_alert_settings, store),

	HW_CONF_REDIS_ROWS(struct hw_alert_settings, redis),

	HW_NOTIFY_ROWS(struct hw_alert_settings, notify),

	{"silence", "match", HW_CONF_TOPICS, SAT(match), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_silence_settings, n_match)},
	{"silence", "when", HW_CONF_TOPICS, SAT(when), .min = 1, .max = HW_CONF_TEXT_MAX, .live = true, .count_offset = offsetof(struct hw_silence_settings, n_when)},
	{"silence", "zone", HW_CONF_ENUM, SAT(utc), .choices = zones, .dflt = "local", .live = true},
	{"silence", "reason", HW_CONF_STRING, SAT(reason), .max = HW_CONF_TEXT_MAX, .dflt = "", .live = true},

	HW_RECEIVER_ROWS,
};
/* clang-format on */

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
_Static_assert(N_OPTIONS <= HW_CONF_OPTIONS_MAX, "struct hw_conf_origins has arrays of this size");

/* `exec` and `webhook` of [notify] are receivers too. */
const struct hw_conf_table hw_alert_table = {.options = options,
                                             .n_options = N_OPTIONS,
                                             .size = sizeof(struct hw_alert_settings),
                                             .named = {{.kind = "silence",
                                                        .list = offsetof(struct hw_alert_settings, silences),
                                                        .count = offsetof(struct hw_alert_settings, n_silences),
                                                        .size = sizeof(struct hw_silence_settings),
                                                        .line = offsetof(struct hw_silence_settings, line),
                                                        .max = HW_INCIDENT_SECTIONS},
                                                       {.kind = "receiver",
                                                        .list = offsetof(struct hw_alert_settings, receivers),
                                                        .count = offsetof(struct hw_alert_settings, n_receivers),
                                                        .size = sizeof(struct hw_receiver_settings),
                                                        .line = offsetof(struct hw_receiver_settings, line),
                                                        .max = HW_INCIDENT_RECEIVERS - 2}},
                                             .judge = judge};

/* --- the plan ----------------------------------------------------------------------------------------------------- */

size_t hw_alert_receivers(const struct hw_alert_settings *c, struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS])
{
	static char all_kinds[] = "device mass blind unseen task", none[] = "", exec[] = "exec", webhook[] = "webhook";
	const struct hw_notify_settings *n = &c->notify;
	const struct hw_receiver_settings base = {.key_file = none,
	                                          .url = none,
	                                          .program = none,
	                                          .username = none,
	                                          .password_file = none,
	                                          .title = n->title,
	                                          .text = n->text,
	                                          .mail_from = n->mail_from,
	                                          .mail_to = n->mail_to,
	                                          .kinds = all_kinds,
	                                          .interval_ms = n->interval_ms};
	size_t k = 0;
	for (size_t i = 0; i < c->n_receivers; i++)
		list[k++] = c->receivers[i];
	if (*n->exec) {
		list[k] = base;
		list[k].name = exec;
		list[k].type = HW_RECEIVER_EXEC;
		list[k].program = n->exec;
		list[k].program_line = hw_conf_line(c, "notify", "exec");
		list[k++].template = n->exec_template;
	}
	if (*n->webhook) {
		list[k] = base;
		list[k].name = webhook;
		list[k].type = HW_RECEIVER_WEBHOOK;
		list[k].url = n->webhook;
		list[k++].template = n->webhook_template;
	}
	return k;
}

/* Joins the lines to one text. NULL: there are no lines, or there is no memory (then *failed is set). */
static char *join(struct hw_alert_plan *p, char *const *lines, size_t n, bool *failed)
{
	size_t len = 1;
	for (size_t i = 0; i < n; i++)
		len += strlen(lines[i]) + 1;
	char *text = n ? malloc(len) : NULL, *to = text;
	*failed |= n && !text;
	for (size_t i = 0; text && i < n; i++)
		to += sprintf(to, "%s%s", i ? "\n" : "", lines[i]);
	if (text)
		p->texts[p->n_texts++] = text;
	return text;
}

static void plan_receivers(struct hw_alert_plan *p, bool *failed)
{
	char wrong[64];
	for (size_t i = 0; i < p->n_receivers; i++) {
		const struct hw_receiver_settings *r = &p->receivers[i];
		p->engine_receivers[i] =
			(struct hw_receiver_conf){.name = r->name,
		                                  .match = join(p, r->match, r->n_match, failed),
		                                  .kinds = hw_receiver_kinds(r->kinds, wrong, sizeof(wrong)),
		                                  .interval_ms = r->interval_ms,
		                                  .notify_after_ms = r->notify_after_ms,
		                                  .remind_ms = r->remind_ms,
		                                  .each = hw_receiver_type_is_each(r->type),
		                                  .parallel = hw_receiver_type_parallel(r->type)};
	}
}

static void plan_silences(struct hw_alert_plan *p, const struct hw_alert_settings *c, bool *failed)
{
	struct hw_window *w = p->windows;
	for (size_t i = 0; i < c->n_silences; i++) {
		const struct hw_silence_settings *s = &c->silences[i];
		p->engine_silences[i] = (struct hw_silence_conf){.name = s->name,
		                                                 .match = join(p, s->match, s->n_match, failed),
		                                                 .reason = s->reason,
		                                                 .windows = w,
		                                                 .n_windows = s->n_when,
		                                                 .utc = s->utc};
		for (size_t k = 0; k < s->n_when; k++)
			(void)hw_window_parse(s->when[k], w++);
	}
}

int hw_alert_plan(struct hw_alert_plan *p, const struct hw_alert_settings *c)
{
	size_t n_windows = 0;
	bool failed = false;
	*p = (struct hw_alert_plan){0};
	p->n_receivers = hw_alert_receivers(c, p->receivers);
	for (size_t i = 0; i < c->n_silences; i++)
		n_windows += c->silences[i].n_when;
	p->engine_receivers = calloc(p->n_receivers + 1, sizeof(*p->engine_receivers));
	p->engine_silences = calloc(c->n_silences + 1, sizeof(*p->engine_silences));
	p->windows = calloc(n_windows + 1, sizeof(*p->windows));
	p->texts = calloc(p->n_receivers + c->n_silences + 1, sizeof(*p->texts));
	if (!p->engine_receivers || !p->engine_silences || !p->windows || !p->texts)
		return -ENOMEM;
	plan_receivers(p, &failed);
	plan_silences(p, c, &failed);
	p->engine = (struct hw_incidents_conf){.clear_after_ms = c->clear_after_ms,
	                                       .mass = (unsigned)c->mass,
	                                       .mass_share = (unsigned)c->mass_share,
	                                       .mass_window_ms = c->mass_window_ms,
	                                       .flap_start = (unsigned)c->flap_start,
	                                       .flap_end = (unsigned)c->flap_end,
	                                       .flap_half_ms = c->flap_half_ms,
	                                       .blind_after_ms = c->blind_after_ms,
	                                       .no_redis = c->store == HW_STORE_MEMORY,
	                                       .max_incidents = HW_ALERT_INCIDENTS_MAX,
	                                       .receivers = p->engine_receivers,
	                                       .n_receivers = p->n_receivers,
	                                       .silences = p->engine_silences,
	                                       .n_silences = c->n_silences};
	return failed ? -ENOMEM : 0;
}

void hw_alert_plan_fini(struct hw_alert_plan *p)
{
	for (size_t i = 0; i < p->n_texts; i++)
		free(p->texts[i]);
	free(p->texts);
	free(p->windows);
	free(p->engine_silences);
	free(p->engine_receivers);
	*p = (struct hw_alert_plan){0};
}
