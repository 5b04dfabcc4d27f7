/* SPDX-License-Identifier: MIT */
/* heartwheelctl status: one screen that shows whether all is well. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/words.h"
#include "heartwheel/print.h"

#define BAR_MAX       40
#define INCIDENTS_MAX 5 /* `incidents` lists all */
#define INCIDENTS_S   5
#define GROUPS_MAX    8 /* more groups would scroll the text above them out of sight; `groups` lists them all */

static void name(const struct hw_ctl *ctl, const char *text)
{
	printf("%s%-11s%s ", hw_paint(&ctl->screen, HW_DIM), text, hw_paint(&ctl->screen, HW_PLAIN));
}

static void line(const struct hw_ctl *ctl, const char *title, enum hw_paint paint, const char *text)
{
	name(ctl, title);
	fputs(paint != HW_PLAIN ? hw_paint(&ctl->screen, paint) : "", stdout);
	hw_text_print(stdout, &ctl->screen, text);
	fputs(paint != HW_PLAIN ? hw_paint(&ctl->screen, HW_PLAIN) : "", stdout);
	fputc('\n', stdout);
}

static double number(const cJSON *s, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(s, key);
	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* Returns the colour of counts. They are dimmed while the monitor is blind, because they may be outdated. */
static const char *count_paint(const struct hw_ctl *ctl, const cJSON *s, enum hw_paint paint)
{
	return hw_paint(&ctl->screen, hw_words_true(s, "blind") ? HW_DIM : paint);
}

/* Prints a bar across the terminal: the online part and the offline part of the fleet. */
static void print_bar(const struct hw_ctl *ctl, const cJSON *s)
{
	int64_t online = hw_member_int(s, "online"), all = hw_member_int(s, "devices");
	size_t width = ctl->screen.width > 12 ? ctl->screen.width - 12 : 0, full;
	if (!ctl->screen.terminal || all == 0 || width == 0)
		return;
	width = width < BAR_MAX ? width : BAR_MAX;
	full = (size_t)((double)online / (double)all * (double)width + .5);
	/* A single device must be visible. */
	if (full == width && online < all)
		full--;
	if (full == 0 && online > 0)
		full++;
	name(ctl, "");
	fputs(count_paint(ctl, s, HW_GOOD), stdout);
	for (size_t i = 0; i < width; i++) {
		if (i == full)
			fputs(count_paint(ctl, s, HW_BAD), stdout);
		fputs(ctl->screen.ascii ? i < full ? "#" : "-" : i < full ? "█" : "░", stdout);
	}
	printf("%s\n", hw_paint(&ctl->screen, HW_PLAIN));
}

static void print_devices(const struct hw_ctl *ctl, const cJSON *s)
{
	char all[HW_SPAN_MAX], online[HW_SPAN_MAX], offline[HW_SPAN_MAX];
	int64_t n_offline = hw_member_int(s, "offline");
	const struct hw_screen *screen = &ctl->screen;
	name(ctl, "devices");
	printf("%s: %s%s online%s, %s%s offline%s\n", hw_text_count(hw_member_int(s, "devices"), all),
	       count_paint(ctl, s, HW_GOOD), hw_text_count(hw_member_int(s, "online"), online),
	       hw_paint(screen, HW_PLAIN), n_offline > 0 ? count_paint(ctl, s, HW_BAD) : "",
	       hw_text_count(n_offline, offline), n_offline > 0 ? hw_paint(screen, HW_PLAIN) : "");
	print_bar(ctl, s);
	if (hw_words_true(s, "loading"))
		line(ctl, "loading", HW_WARN, "yes, devices are still being loaded from the store");
}

/* The names of the groups that fit. */
static void join_groups(const cJSON *s, const char *member, char *text, size_t cap)
{
	const cJSON *name;
	size_t n = 0;
	text[0] = '\0';
	cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(s, member))
	{
		if (cJSON_IsString(name))
			n += hw_print(text + n, cap - n, "%s%s", n ? ", " : "", name->valuestring);
	}
}

static void print_unjudged(const struct hw_ctl *ctl, const cJSON *s)
{
	char text[512], groups[256], count[HW_SPAN_MAX];
	int64_t n = hw_member_int(s, "unjudged");
	if (n == 0)
		return;
	join_groups(s, "unjudged_groups", groups, sizeof(groups));
	if (hw_member_int(s, "left_out") > 0)
		hw_print(text, sizeof(text),
		         "%s device%s, of %s; for %" PRId64 " of them there is no room (max_devices)",
		         hw_text_count(n, count), n == 1 ? "" : "s", groups, hw_member_int(s, "left_out"));
	else
		hw_print(text, sizeof(text), "%s device%s whose heartbeats this monitor does not receive, of %s",
		         hw_text_count(n, count), n == 1 ? "" : "s", groups);
	line(ctl, "unjudged", HW_BAD, text);
}

static void print_unknown(const struct hw_ctl *ctl, const cJSON *s)
{
	char text[512], groups[256];
	join_groups(s, "while_unknown", groups, sizeof(groups));
	hw_print(text, sizeof(text), "no value on a topic of `while`, of %s; judged as without that line", groups);
	if (groups[0])
		line(ctl, "while", HW_WARN, text);
}

static void print_seeing(const struct hw_ctl *ctl, const cJSON *s)
{
	char words[HW_WORDS_MAX];
	const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(s, "cluster");
	if (hw_words_blind(s, words))
		line(ctl, "watching", HW_BAD, words);
	else if (strcmp(hw_member_text(cluster, "state"), "lapsed") == 0)
		line(ctl, "watching", HW_BAD,
		     "without Redis, so another node may watch its devices: all that is shown here may be past");
	else
		line(ctl, "watching", HW_GOOD, "yes");
}

static void print_links(const struct hw_ctl *ctl, const cJSON *s)
{
	char text[1024];
	const char *mqtt = hw_member_text(s, "mqtt"), *redis = hw_member_text(s, "redis");
	bool up = strcmp(mqtt, "up") == 0, there = hw_words_redis_well(s);
	if (up && number(s, "barrier_ms") > 0)
		snprintf(text, sizeof(text), "up, a round trip takes %.1f ms", number(s, "barrier_ms"));
	else
		snprintf(text, sizeof(text), "%s", mqtt);
	line(ctl, "mqtt", up ? HW_GOOD : HW_BAD, text);
	line(ctl, "redis", there ? HW_GOOD : HW_BAD, redis);
}

static void print_pending(const struct hw_ctl *ctl, const cJSON *s)
{
	char text[256], count[HW_SPAN_MAX], span[HW_SPAN_MAX];
	int64_t pending = hw_member_int(s, "owed"), oldest_ms = hw_member_int(s, "owed_oldest_ms");
	if (pending == 0)
		snprintf(text, sizeof(text), "0 writes");
	else if (oldest_ms < 1000)
		snprintf(text, sizeof(text), "%s write%s, just now", hw_text_count(pending, count),
		         pending == 1 ? "" : "s");
	else
		snprintf(text, sizeof(text), "%s write%s, the oldest for %s", hw_text_count(pending, count),
		         pending == 1 ? "" : "s", hw_text_span(oldest_ms, span));
	line(ctl, "pending", oldest_ms > 10000 ? HW_BAD : pending > 0 ? HW_WARN : HW_PLAIN, text);
}

static void print_rates(const struct hw_ctl *ctl, const cJSON *s)
{
	char text[256], beats[HW_SPAN_MAX], transitions[HW_SPAN_MAX];
	snprintf(text, sizeof(text), "%.1f a second, %s since the start", hw_words_rate(s),
	         hw_text_count(hw_member_int(s, "heartbeats_total"), beats));
	line(ctl, "heartbeats", HW_PLAIN, text);
	snprintf(text, sizeof(text), "%s since the start",
	         hw_text_count(hw_member_int(s, "transitions_total"), transitions));
	line(ctl, "transitions", HW_PLAIN, text);
}

static void print_last(const struct hw_ctl *ctl)
{
	struct hw_answer a;
	char ago[HW_SPAN_MAX];
	if (hw_client_ask(ctl->client, "GET", "/v1/transitions?limit=1", &a) < 0)
		return;
	const cJSON *t = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(a.json, "transitions"), 0);
	if (t) {
		const char *state = hw_member_text(t, "state");
		name(ctl, "last");
		hw_text_print(stdout, &ctl->screen, hw_member_text(t, "id"));
		printf(" %s", hw_paint(&ctl->screen, hw_state_paint(state)));
		hw_text_print(stdout, &ctl->screen, state);
		printf("%s, %s (", hw_paint(&ctl->screen, HW_PLAIN),
		       hw_text_ago(hw_wall_ms() - hw_member_int(t, "since_ms"), ago));
		hw_text_print(stdout, &ctl->screen, hw_member_text(t, "reason"));
		puts(")");
	}
	hw_answer_fini(&a);
}

/* One line per group, if there are few. */
static void print_groups(const struct hw_ctl *ctl)
{
	struct hw_answer a;
	char online[HW_SPAN_MAX], offline[HW_SPAN_MAX];
	const cJSON *g;
	if (hw_client_ask(ctl->client, "GET", "/v1/groups", &a) < 0)
		return;
	const cJSON *groups = cJSON_GetObjectItemCaseSensitive(a.json, "groups");
	int n = cJSON_GetArraySize(groups);
	if (n > 1 && n <= GROUPS_MAX)
		cJSON_ArrayForEach(g, groups)
		{
			name(ctl, g == groups->child ? "groups" : "");
			hw_text_print(stdout, &ctl->screen, hw_member_text(g, "name"));
			printf(": %s online, %s offline\n", hw_text_count(hw_member_int(g, "online"), online),
			       hw_text_count(hw_member_int(g, "offline"), offline));
		}
	hw_answer_fini(&a);
}

/* The sentences of the newest open incidents. */
static void print_incidents(const struct hw_ctl *ctl)
{
	struct hw_answer a;
	const cJSON *i;
	int n = 0;
	if (hw_client_get(ctl->client, "/v1/incidents?limit=6", INCIDENTS_S, &a) < 0) {
		line(ctl, "incidents", HW_WARN, "heartwheel-alert does not answer");
		return;
	}
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(a.json, "incidents");
	if (a.code == 404) { /* an older heartwheeld */
		hw_answer_fini(&a);
		return;
	}
	if (a.code != 200)
		line(ctl, "incidents", HW_DIM, hw_member_text(a.json, "error"));
	else if (!list || !list->child)
		line(ctl, "incidents", HW_PLAIN, "none is open");
	cJSON_ArrayForEach(i, list)
	{
		if (n < INCIDENTS_MAX)
			line(ctl, n ? "" : "incidents", hw_incident_paint(i), hw_member_text(i, "sentence"));
		else
			line(ctl, "", HW_PLAIN, "more: heartwheelctl incidents");
		n++;
	}
	hw_answer_fini(&a);
}

static void print_cluster(const struct hw_ctl *ctl, const cJSON *c)
{
	char text[HW_WORDS_MAX];
	if (!c)
		return;
	bool well = hw_words_nodes(c, text);
	line(ctl, "nodes", well ? HW_GOOD : HW_BAD, text);
}

/* Prints the status of a standby node. It has no devices: the user must ask the owner. */
static void print_standby(const struct hw_ctl *ctl, const cJSON *c)
{
	char text[HW_WORDS_MAX];
	bool well = hw_words_standby(c, text);
	line(ctl, "standing by", well ? HW_PLAIN : HW_BAD, text);
}

static void print_fleet(const struct hw_ctl *ctl, const cJSON *s)
{
	print_seeing(ctl, s);
	print_devices(ctl, s);
	print_unjudged(ctl, s);
	print_unknown(ctl, s);
	print_incidents(ctl);
	print_groups(ctl);
	print_last(ctl);
	print_rates(ctl, s);
}

static void print_status(const struct hw_ctl *ctl, const cJSON *s)
{
	char up[HW_SPAN_MAX], text[512];
	snprintf(text, sizeof(text), "%s, version %s, up %s", hw_member_text(s, "node"), hw_member_text(s, "version"),
	         hw_text_span(hw_member_int(s, "uptime_s") * 1000, up));
	line(ctl, "node", HW_PLAIN, text);
	const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(s, "cluster");
	print_cluster(ctl, cluster);
	if (hw_words_true(cluster, "standing_by"))
		print_standby(ctl, cluster);
	else
		print_fleet(ctl, s);
	print_links(ctl, s);
	print_pending(ctl, s);
}

int hw_cmd_status(struct hw_ctl *ctl, const struct hw_args *args)
{
	return hw_ask_and_show(ctl, "/v1/status", args->json, print_status);
}
