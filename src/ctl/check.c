/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl check: one line and an exit status, like a Nagios plugin. The line names all problems, and the worst
 * one determines the exit status. Nothing is written to standard error, which monitoring programs do not show.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/words.h"
#include "heartwheel/print.h"

/* The exit status is the last of these levels that applies. A known problem is more useful than UNKNOWN, so CRITICAL
 * comes after UNKNOWN. */
enum level { OK, WARNING, UNKNOWN, CRITICAL };
static const char *const levels[] = {"OK", "WARNING", "UNKNOWN", "CRITICAL"};
static const int statuses[] = {0, 1, 3, 2};

#define PENDING_MAX_MS 10000 /* as in /readyz */
#define NAMED_MAX      3     /* offline devices that are named */

struct check {
	struct hw_ctl *ctl;
	const struct hw_args *args;
	enum level level;
	char line[2048]; /* the text before the figures */
	size_t len;
	char figures[512];
};

static void __attribute__((format(printf, 3, 4))) report(struct check *c, enum level level, const char *format, ...)
{
	va_list args;
	if (c->len > 0)
		c->len += hw_print(c->line + c->len, sizeof(c->line) - c->len, "; ");
	va_start(args, format);
	c->len += hw_vprint(c->line + c->len, sizeof(c->line) - c->len, format, args);
	va_end(args);
	c->level = level > c->level ? level : c->level;
}

/* Prints the line. A '|' in the text is replaced, because Nagios would take it for the begin of the figures. */
static int end(struct check *c)
{
	for (char *at = c->line; *at; at++)
		*at = *at == '|' ? '/' : *at;
	printf("HEARTWHEEL %s - ", levels[c->level]);
	hw_text_print(stdout, &c->ctl->screen, c->line);
	printf("%s%s\n", *c->figures ? " | " : "", c->figures);
	return statuses[c->level];
}

/* Converts a number, or a percentage of `all`, to a number. Returns false if it is malformed. */
static bool read_limit(const char *text, double all, double *limit)
{
	char *after;
	*limit = strtod(text, &after);
	bool percent = *after == '%';
	if (after == text || after[percent] || !isfinite(*limit) || *limit < 0 || (percent && *limit > 100))
		return false;
	if (percent)
		*limit *= all / 100;
	return true;
}

/* Names a few offline devices, the newest first, so that an operator who is alerted sees them at once. */
static void name_offline(struct check *c, int64_t offline)
{
	struct hw_path path = {0};
	struct hw_answer a = {0};
	const cJSON *device;
	int n = 0;
	hw_path_add(&path, "/v1/devices?state=offline&sort=newest&limit=3");
	if (c->args->group) {
		hw_path_add(&path, "&group=");
		hw_path_add_encoded(&path, c->args->group);
	}
	if (path.text && hw_client_ask(c->ctl->client, "GET", path.text, &a) == 0 && a.code == 200)
		cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(a.json, "devices")) if (n++ < NAMED_MAX)
			c->len += hw_print(c->line + c->len, sizeof(c->line) - c->len, "%s%.255s", n == 1 ? " (" : ", ",
		                           hw_member_text(device, "id"));
	if (n > 0)
		c->len += hw_print(c->line + c->len, sizeof(c->line) - c->len, "%s)", offline > n ? ", ..." : "");
	hw_path_fini(&path);
	hw_answer_fini(&a);
}

/* Compares the number of offline devices with the limits. `counts` has the members online and offline. */
static void check_counts(struct check *c, const cJSON *counts)
{
	int64_t online = hw_member_int(counts, "online"), offline = hw_member_int(counts, "offline");
	int64_t all = online + offline;
	double warning, critical;
	char n_all[HW_SPAN_MAX], n_online[HW_SPAN_MAX], n_offline[HW_SPAN_MAX];
	if (!read_limit(c->args->warning ? c->args->warning : "0", (double)all, &warning) ||
	    !read_limit(c->args->critical ? c->args->critical : "50%", (double)all, &critical)) {
		report(c, UNKNOWN, "--warning and --critical need a number of devices, or a percentage such as 5%%");
		return;
	}
	report(c,
	       (double)offline > critical  ? CRITICAL
	       : (double)offline > warning ? WARNING
	                                   : OK,
	       "%s devices%s%s: %s online, %s offline", hw_text_count(all, n_all), c->args->group ? " of " : "",
	       c->args->group ? c->args->group : "", hw_text_count(online, n_online),
	       hw_text_count(offline, n_offline));
	if (offline > 0)
		name_offline(c, offline);
	snprintf(c->figures, sizeof(c->figures),
	         "offline=%" PRId64 ";%.15g;%.15g;0;%" PRId64 " online=%" PRId64 ";;;0;%" PRId64, offline,
	         floor(warning), floor(critical), all, online, all);
}

static enum level blind_level(const struct hw_args *args)
{
	const char *word = args->blind ? args->blind : "unknown";
	return strcmp(word, "critical") == 0 ? CRITICAL : strcmp(word, "warning") == 0 ? WARNING : UNKNOWN;
}

/* Adds the problems of the monitor. `group`: the group that was requested, or NULL. */
static void check_monitor(struct check *c, const cJSON *s, const cJSON *group)
{
	char words[HW_WORDS_MAX], span[HW_SPAN_MAX];
	const char *cause = hw_member_text(s, "blind_cause");
	bool deaf = strcmp(cause, "deaf") == 0 || strcmp(cause, "upstream") == 0;
	/* Ignore the deafness of other groups. */
	if (hw_words_blind(s, words) &&
	    !(deaf && group && !hw_words_true(group, "deaf") && !hw_member_has(group, "upstream")))
		report(c, blind_level(c->args), "%s", words);
	if (hw_words_true(s, "loading"))
		report(c, UNKNOWN, "devices are still being loaded from the store");
	if (!hw_words_redis_well(s))
		report(c, WARNING, "Redis: %.300s", hw_member_text(s, "redis"));
	if (hw_member_int(s, "owed_oldest_ms") > PENDING_MAX_MS)
		report(c, WARNING, "%" PRId64 " %s pending, the oldest for %s", hw_member_int(s, "owed"),
		       hw_member_int(s, "owed") == 1 ? "write is" : "writes are",
		       hw_text_span(hw_member_int(s, "owed_oldest_ms"), span));
	const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(s, "cluster");
	if (cluster && !hw_words_nodes(cluster, words))
		report(c, hw_member_int(cluster, "unowned") > 0 ? CRITICAL : WARNING, "nodes: %s", words);
}

/* A standby node has no devices. */
static void check_standby(struct check *c, const cJSON *cluster)
{
	char words[HW_WORDS_MAX];
	bool well = hw_words_standby(cluster, words);
	report(c, well ? OK : hw_member_has(cluster, "owner") ? WARNING : CRITICAL, "standing by: %s", words);
}

static void check_fleet(struct check *c, const cJSON *status, const cJSON *groups)
{
	const cJSON *g, *group = NULL;
	if (c->args->group) {
		cJSON_ArrayForEach(g, groups) if (strcmp(hw_member_text(g, "name"), c->args->group) == 0) group = g;
		if (!group) {
			report(c, UNKNOWN, "no such group: '%.80s'", c->args->group);
			return;
		}
	}
	check_counts(c, group ? group : status);
	check_monitor(c, status, group);
}

/* Reports that the daemon cannot be reached. This is CRITICAL, unless only this user lacks the right to connect. */
static void report_unreachable(struct check *c)
{
	const char *why = hw_client_why(c->ctl->client);
	report(c, strstr(why, "you need to be root") ? UNKNOWN : CRITICAL, "%s", why);
}

int hw_cmd_check(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct check c = {.ctl = ctl, .args = args};
	struct hw_answer status = {0}, groups = {0};
	if (hw_client_ask(ctl->client, "GET", "/v1/status", &status) < 0) {
		report_unreachable(&c);
	} else if (status.code != 200 || !status.json) {
		report(&c, UNKNOWN, "heartwheeld answered %ld", status.code);
	} else {
		const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(status.json, "cluster");
		if (hw_words_true(cluster, "standing_by"))
			check_standby(&c, cluster);
		else if (!args->group || hw_client_ask(ctl->client, "GET", "/v1/groups", &groups) == 0)
			check_fleet(&c, status.json, cJSON_GetObjectItemCaseSensitive(groups.json, "groups"));
		else
			report_unreachable(&c);
	}
	hw_answer_fini(&status);
	hw_answer_fini(&groups);
	return end(&c);
}
