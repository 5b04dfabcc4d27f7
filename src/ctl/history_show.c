/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl history, outages, uptime: readable rows. The id, which may be long, is last in its line. On a narrow
 * terminal the least important columns are omitted, so that a row is one line.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/history.h"
#include "ctl/words.h"
#include "heartwheel/print.h"

/* If the terminal is narrower than this, a column or detail is omitted. */
enum {
	FIRST_SEEN = 100, /* below: gets its own line */
	OUTAGE_REASON = 100,
	OUTAGE_TO = 76,
	OUTAGE_SECONDS = 46, /* seconds and year of the begin */
	OUTAGE_PLANNED = 110,
	BETWEEN = 110, /* MTBF and MTTR */
	PLANNED = 80,
	SEEN = 60,
	OUTAGES = 46,
	NODE = 76,
	REASON = 52,
	FOUND = 100, /* below: a short word */
	SECONDS = 60 /* seconds and year of a transition's time */
};

static void put_text(const struct hw_ctl *ctl, const cJSON *row, const char *key)
{
	hw_text_print(stdout, &ctl->screen, hw_member_text(row, key));
}

static bool has_room(const struct hw_ctl *ctl, int column)
{
	return !hw_screen_narrower(&ctl->screen, (size_t)column);
}

/* Prints a time, with seconds if the terminal has `column` columns. Returns the columns used. */
static int put_when(const struct hw_ctl *ctl, int64_t at_ms, int column)
{
	char clock[HW_SPAN_MAX];
	return printf("%s", has_room(ctl, column) ? hw_text_clock(at_ms, clock) : hw_text_minute(at_ms, clock));
}

/* Prints the device after `used` columns. The group is omitted before the id is shortened. */
static void put_device(const struct hw_ctl *ctl, const cJSON *row, int used)
{
	char text[1024];
	size_t width = 0, room = ctl->screen.width;
	snprintf(text, sizeof(text), "%s (%s)", hw_member_text(row, "id"), hw_member_text(row, "group"));
	free(hw_text_clean(&ctl->screen, text, 0, &width));
	hw_text_print_rest(stdout, &ctl->screen, (size_t)used,
	                   room > 0 && width + (size_t)used > room ? hw_member_text(row, "id") : text);
	putchar('\n');
}

static char *seconds(const cJSON *u, const char *key, char *buf)
{
	const cJSON *s = cJSON_GetObjectItemCaseSensitive(u, key);
	if (cJSON_IsNumber(s))
		return hw_text_span(hw_number_int(s, 1e3), buf);
	return strcpy(buf, "-");
}

/* Writes the planned part of the time offline; "" if there is none. */
static const char *planned(const cJSON *u, char *buf)
{
	return hw_number_int(cJSON_GetObjectItemCaseSensitive(u, "planned_s"), 1e3) > 0 ? seconds(u, "planned_s", buf)
	                                                                                : "";
}

/* --- transitions, outages --------------------------------------------------------------------------------------- */

void hw_show_device_head(const struct hw_ctl *ctl, const cJSON *answer)
{
	char clock[HW_SPAN_MAX], zone[HW_SPAN_MAX];
	const char *state = hw_member_text(answer, "state");
	put_text(ctl, answer, "id");
	printf(", group ");
	put_text(ctl, answer, "group");
	printf(", %s", hw_paint(&ctl->screen, hw_state_paint(state)));
	hw_text_print(stdout, &ctl->screen, state);
	printf("%s since %s", hw_paint(&ctl->screen, HW_PLAIN),
	       hw_text_clock(hw_member_int(answer, "since_ms"), clock));
	printf("%sfirst seen %s %s\n", has_room(ctl, FIRST_SEEN) ? ", " : "\n",
	       hw_text_clock(hw_member_int(answer, "first_ms"), clock),
	       hw_text_zone(hw_member_int(answer, "first_ms"), zone));
	printf("%-*s  %-9s  %9s", has_room(ctl, SECONDS) ? 19 : 11, "TIME", "STATE", "LASTED");
	if (has_room(ctl, REASON))
		printf("  %-9s%s", "REASON", has_room(ctl, NODE) ? "  NODE" : "");
	putchar('\n');
}

static void print_transition(const struct hw_ctl *ctl, const cJSON *t, int64_t lasted_ms)
{
	char span[HW_SPAN_MAX];
	const char *state = hw_member_text(t, "state"), *found = "";
	if (hw_words_true(t, "found"))
		found = has_room(ctl, FOUND) ? "  (restored after a gap)" : "  (gap)";
	int used = put_when(ctl, hw_member_int(t, "time_ms"), SECONDS) + 22 + (int)strlen(found);
	printf("  %s", hw_paint(&ctl->screen, hw_state_paint(state)));
	hw_text_column(&ctl->screen, 9, state);
	printf("%s  %9s", hw_paint(&ctl->screen, HW_PLAIN), lasted_ms > 0 ? hw_text_span(lasted_ms, span) : "");
	if (has_room(ctl, REASON))
		used += printf("  ") + hw_text_column(&ctl->screen, 9, hw_member_text(t, "reason"));
	if (has_room(ctl, NODE)) {
		fputs("  ", stdout);
		hw_text_print_rest(stdout, &ctl->screen, (size_t)used + 2, hw_member_text(t, "node"));
	}
	puts(found);
}

void hw_show_transitions(const struct hw_ctl *ctl, const cJSON *rows, int64_t *before_ms)
{
	const cJSON *t;
	cJSON_ArrayForEach(t, rows)
	{
		int64_t at_ms = hw_member_int(t, "time_ms");
		print_transition(ctl, t, *before_ms - at_ms);
		*before_ms = at_ms;
	}
}

static void print_outages_head(const struct hw_ctl *ctl)
{
	char zone[HW_SPAN_MAX], from[2 * HW_SPAN_MAX];
	snprintf(from, sizeof(from), "FROM (%s)", hw_text_zone(hw_wall_ms(), zone));
	printf("%-*s  ", has_room(ctl, OUTAGE_SECONDS) ? 19 : 11, has_room(ctl, OUTAGE_SECONDS) ? from : "FROM");
	if (has_room(ctl, OUTAGE_TO))
		printf("%-19s  ", "TO");
	printf("%9s  ", "DOWN");
	if (has_room(ctl, OUTAGE_PLANNED))
		printf("%9s  ", "PLANNED");
	if (has_room(ctl, OUTAGE_REASON))
		printf("%-9s  ", "REASON");
	puts("ID (GROUP)");
}

/* Prints an outage. If there is no column for its end, the length of an outage that has not ended is red. */
static void print_outage(const struct hw_ctl *ctl, const cJSON *o)
{
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	const char *bad = hw_paint(&ctl->screen, HW_BAD), *plain = hw_paint(&ctl->screen, HW_PLAIN);
	const cJSON *down = cJSON_GetObjectItemCaseSensitive(o, "down_s");
	int64_t ms = hw_number_int(down, 1e3);
	bool lasts = !hw_member_has(o, "to_ms"), to = has_room(ctl, OUTAGE_TO), reason = has_room(ctl, OUTAGE_REASON);
	int used = put_when(ctl, hw_member_int(o, "from_ms"), OUTAGE_SECONDS) + 13;
	fputs("  ", stdout);
	if (to && lasts)
		printf("%s%-19s%s  ", bad, "it lasts", plain);
	else if (to)
		printf("%s  ", hw_text_clock(hw_member_int(o, "to_ms"), clock));
	printf("%s%9s%s  ", lasts && !to ? bad : "", hw_text_span(ms, span), lasts && !to ? plain : "");
	if (has_room(ctl, OUTAGE_PLANNED))
		used += printf("%9s  ", planned(o, span));
	if (reason)
		used += hw_text_column(&ctl->screen, 9, hw_member_text(o, "reason")) - 9 + printf("  ") - 2;
	put_device(ctl, o, used + (to ? 21 : 0) + (reason ? 11 : 0));
}

void hw_show_outages(const struct hw_ctl *ctl, const cJSON *rows, bool first)
{
	const cJSON *o;
	if (first)
		print_outages_head(ctl);
	cJSON_ArrayForEach(o, rows) print_outage(ctl, o);
}

/* --- uptime ----------------------------------------------------------------------------------------------------- */

/* Writes a percentage, rounded down, so that a device with an outage never shows 100 %. */
static char *percent(const cJSON *u, const char *key, char *buf)
{
	const cJSON *share = cJSON_GetObjectItemCaseSensitive(u, key);
	if (cJSON_IsNumber(share))
		snprintf(buf, HW_SPAN_MAX, "%.3f %%", floor(share->valuedouble * 1e5 + 1e-7) / 1e3);
	else
		strcpy(buf, "-");
	return buf;
}

/* Prints the row except its last column. Returns the columns used. */
static int print_uptime(const struct hw_ctl *ctl, const cJSON *u)
{
	char uptime[HW_SPAN_MAX], seen[HW_SPAN_MAX], down[HW_SPAN_MAX], mtbf[HW_SPAN_MAX], mttr[HW_SPAN_MAX];
	int used = printf("%10s  ", percent(u, "uptime", uptime));
	if (has_room(ctl, SEEN))
		used += printf("%10s  ", percent(u, "seen", seen));
	used += printf("%9s  ", seconds(u, "down_s", down));
	if (has_room(ctl, PLANNED))
		used += printf("%9s  ", planned(u, down));
	if (has_room(ctl, OUTAGES))
		used += printf("%7" PRId64 "  ", hw_member_int(u, "outages"));
	if (has_room(ctl, BETWEEN))
		used += printf("%9s  %9s  ", seconds(u, "mtbf_s", mtbf), seconds(u, "mttr_s", mttr));
	return used;
}

static void print_uptime_head(const struct hw_ctl *ctl)
{
	printf("%10s  ", "UPTIME");
	if (has_room(ctl, SEEN))
		printf("%10s  ", "SEEN");
	printf("%9s  ", "DOWN");
	if (has_room(ctl, PLANNED))
		printf("%9s  ", "PLANNED");
	if (has_room(ctl, OUTAGES))
		printf("%7s  ", "OUTAGES");
	if (has_room(ctl, BETWEEN))
		printf("%9s  %9s  ", "MTBF", "MTTR");
	puts("ID (GROUP)");
}

static void print_window(const cJSON *report)
{
	char from[HW_SPAN_MAX], to[HW_SPAN_MAX], zone[HW_SPAN_MAX], count[HW_SPAN_MAX];
	int64_t gaps = hw_member_int(report, "gaps");
	printf("From %s to %s %s", hw_text_clock(hw_member_int(report, "since_ms"), from),
	       hw_text_clock(hw_member_int(report, "until_ms"), to),
	       hw_text_zone(hw_member_int(report, "until_ms"), zone));
	if (gaps > 0)
		printf("; %" PRId64 " gap%s in the events with %s lost: there may be more outages", gaps,
		       gaps == 1 ? "" : "s", hw_text_count(hw_member_int(report, "lost"), count));
	puts(". Longest time offline first.");
}

void hw_show_uptime(const struct hw_ctl *ctl, const cJSON *report, bool one_device)
{
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(report, "all"), *u;
	char count[HW_SPAN_MAX];
	print_window(report);
	print_uptime_head(ctl);
	cJSON_ArrayForEach(u, cJSON_GetObjectItemCaseSensitive(report, "devices"))
		put_device(ctl, u, print_uptime(ctl, u));
	if (one_device)
		return;
	print_uptime(ctl, all);
	printf("all %s devices\n", hw_text_count(hw_member_int(all, "devices"), count));
}

/* --- status ----------------------------------------------------------------------------------------------------- */

static void line(const struct hw_ctl *ctl, const char *title, enum hw_paint paint, const char *text)
{
	printf("%s%-11s%s %s", hw_paint(&ctl->screen, HW_DIM), title, hw_paint(&ctl->screen, HW_PLAIN),
	       paint != HW_PLAIN ? hw_paint(&ctl->screen, paint) : "");
	hw_text_print(stdout, &ctl->screen, text);
	printf("%s\n", paint != HW_PLAIN ? hw_paint(&ctl->screen, HW_PLAIN) : "");
}

static void print_stream(const struct hw_ctl *ctl, const cJSON *s)
{
	char text[256], n[HW_SPAN_MAX], lag[HW_SPAN_MAX], span[HW_SPAN_MAX];
	const cJSON *lag_s = cJSON_GetObjectItemCaseSensitive(s, "lag_s");
	int64_t lag_ms = hw_number_int(lag_s, 1e3);
	bool behind = hw_member_int(s, "lag_entries") > 0;
	size_t at = hw_print(text, sizeof(text), "%s entries read, the last one %s",
	                     hw_text_count(hw_member_int(s, "n"), n), hw_member_text(s, "at"));
	if (behind)
		snprintf(text + at, sizeof(text) - at, "; %s wait, for %s",
		         hw_text_count(hw_member_int(s, "lag_entries"), lag), hw_text_span(lag_ms, span));
	const char *stream = hw_member_text(s, "stream");
	const char *title = strcmp(stream, "device:events") == 0  ? "events"
	                    : strcmp(stream, "device:sight") == 0 ? "sight"
	                    : strcmp(stream, "task:events") == 0  ? "tasks"
	                                                          : "incidents";
	line(ctl, title, behind ? HW_WARN : HW_PLAIN, text);
}

void hw_show_history_status(const struct hw_ctl *ctl, const cJSON *s)
{
	char text[512], up[HW_SPAN_MAX], count[HW_SPAN_MAX];
	const char *sql = hw_member_text(s, "sql"), *redis = hw_member_text(s, "redis");
	int64_t gaps = hw_member_int(s, "gaps");
	const cJSON *stream;
	snprintf(text, sizeof(text), "version %s, up %s", hw_member_text(s, "version"),
	         hw_text_span(hw_member_int(s, "uptime_s") * 1000, up));
	line(ctl, "history", HW_PLAIN, text);
	line(ctl, "database", HW_PLAIN, hw_member_text(s, "database"));
	line(ctl, "sql", strcmp(sql, "up") == 0 ? HW_GOOD : HW_BAD, sql);
	line(ctl, "redis", strcmp(redis, "up") == 0 ? HW_GOOD : HW_BAD, redis);
	cJSON_ArrayForEach(stream, cJSON_GetObjectItemCaseSensitive(s, "streams")) print_stream(ctl, stream);
	snprintf(text, sizeof(text), "%" PRId64 ", in which %s entries were lost%s", gaps,
	         hw_text_count(hw_member_int(s, "lost"), count),
	         cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "reading_back"))
	                 ? "; the devices' states are being read from Redis"
	                 : "");
	line(ctl, "gaps", gaps > 0 ? HW_WARN : HW_PLAIN, gaps > 0 ? text : "none");
}
