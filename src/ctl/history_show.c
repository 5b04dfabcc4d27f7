/* SPDX-License-Identifier: MIT */
/* heartwheelctl history, outages, uptime: rows for people. What is as long as it likes, an id, stands at the end of its
 * line. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ctl/history.h"

static void put_text(const struct hw_ctl *ctl, const cJSON *row, const char *key)
{
	hw_text_print(stdout, &ctl->screen, hw_member_text(row, key));
}

/* --- transitions, outages ----------------------------------------------------------------------------------------- */

void hw_show_device_head(const struct hw_ctl *ctl, const cJSON *answer)
{
	char clock[HW_SPAN_MAX];
	const char *state = hw_member_text(answer, "state");
	put_text(ctl, answer, "id");
	printf(", group ");
	put_text(ctl, answer, "group");
	printf(", %s%s%s since %s", hw_paint(&ctl->screen, hw_state_paint(state)), state,
	       hw_paint(&ctl->screen, HW_PLAIN), hw_text_clock(hw_member_int(answer, "since_ms"), clock));
	printf(", first seen %s\n", hw_text_clock(hw_member_int(answer, "first_ms"), clock));
	printf("%-19s  %-9s  %9s  %-9s  %s\n", "TIME", "STATE", "LASTED", "REASON", "NODE");
}

void hw_show_transitions(const struct hw_ctl *ctl, const cJSON *rows, int64_t *before_ms)
{
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	const cJSON *t;
	cJSON_ArrayForEach(t, rows)
	{
		int64_t at_ms = hw_member_int(t, "time_ms");
		const char *state = hw_member_text(t, "state");
		printf("%s  %s%-9s%s  %9s  %-9s  ", hw_text_clock(at_ms, clock),
		       hw_paint(&ctl->screen, hw_state_paint(state)), state, hw_paint(&ctl->screen, HW_PLAIN),
		       *before_ms > at_ms ? hw_text_span(*before_ms - at_ms, span) : "", hw_member_text(t, "reason"));
		put_text(ctl, t, "node");
		puts(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(t, "found")) ? "  (read back after a gap)" : "");
		*before_ms = at_ms;
	}
}

void hw_show_outages(const struct hw_ctl *ctl, const cJSON *rows, bool first)
{
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	const cJSON *o;
	if (first)
		printf("%-19s  %-19s  %9s  %-9s  %s\n", "FROM", "TO", "DOWN", "REASON", "ID (GROUP)");
	cJSON_ArrayForEach(o, rows)
	{
		printf("%s  ", hw_text_clock(hw_member_int(o, "from_ms"), clock));
		if (hw_member_has(o, "to_ms"))
			printf("%s  ", hw_text_clock(hw_member_int(o, "to_ms"), clock));
		else
			printf("%s%-19s%s  ", hw_paint(&ctl->screen, HW_BAD), "it lasts",
			       hw_paint(&ctl->screen, HW_PLAIN));
		const cJSON *down = cJSON_GetObjectItemCaseSensitive(o, "down_s");
		int64_t ms = cJSON_IsNumber(down) ? (int64_t)(down->valuedouble * 1e3) : 0;
		printf("%9s  %-9s  ", hw_text_span(ms, span), hw_member_text(o, "reason"));
		put_text(ctl, o, "id");
		printf(" (");
		put_text(ctl, o, "group");
		puts(")");
	}
}

/* --- uptime ------------------------------------------------------------------------------------------------------- */

/* Rounded down: what was away was not there all the time. */
static char *percent(const cJSON *u, const char *key, char *buf)
{
	const cJSON *share = cJSON_GetObjectItemCaseSensitive(u, key);
	if (cJSON_IsNumber(share))
		snprintf(buf, HW_SPAN_MAX, "%.3f %%", floor(share->valuedouble * 1e5 + 1e-7) / 1e3);
	else
		strcpy(buf, "-");
	return buf;
}

static char *seconds(const cJSON *u, const char *key, char *buf)
{
	const cJSON *s = cJSON_GetObjectItemCaseSensitive(u, key);
	if (cJSON_IsNumber(s) && s->valuedouble < 9e15)
		return hw_text_span((int64_t)(s->valuedouble * 1e3 + .5), buf);
	return strcpy(buf, "-");
}

static void print_uptime(const cJSON *u)
{
	char uptime[HW_SPAN_MAX], seen[HW_SPAN_MAX], down[HW_SPAN_MAX], mtbf[HW_SPAN_MAX], mttr[HW_SPAN_MAX];
	printf("%10s  %10s  %9s  %7" PRId64 "  %9s  %9s  ", percent(u, "uptime", uptime), percent(u, "seen", seen),
	       seconds(u, "down_s", down), hw_member_int(u, "outages"), seconds(u, "mtbf_s", mtbf),
	       seconds(u, "mttr_s", mttr));
}

static void print_window(const cJSON *report)
{
	char from[HW_SPAN_MAX], to[HW_SPAN_MAX], count[HW_SPAN_MAX];
	int64_t gaps = hw_member_int(report, "gaps");
	printf("From %s to %s", hw_text_clock(hw_member_int(report, "since_ms"), from),
	       hw_text_clock(hw_member_int(report, "until_ms"), to));
	if (gaps > 0)
		printf("; %" PRId64 " gap%s in the events, %s of them lost: outages are at least these", gaps,
		       gaps == 1 ? "" : "s", hw_text_count(hw_member_int(report, "lost"), count));
	putchar('\n');
}

void hw_show_uptime(const struct hw_ctl *ctl, const cJSON *report, bool one_device)
{
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(report, "all"), *u;
	char count[HW_SPAN_MAX];
	print_window(report);
	printf("%10s  %10s  %9s  %7s  %9s  %9s  %s\n", "UPTIME", "SEEN", "DOWN", "OUTAGES", "MTBF", "MTTR",
	       "ID (GROUP)");
	cJSON_ArrayForEach(u, cJSON_GetObjectItemCaseSensitive(report, "devices"))
	{
		print_uptime(u);
		put_text(ctl, u, "id");
		printf(" (");
		put_text(ctl, u, "group");
		puts(")");
	}
	if (one_device)
		return;
	print_uptime(all);
	printf("all %s devices\n", hw_text_count(hw_member_int(all, "devices"), count));
}

/* --- status ------------------------------------------------------------------------------------------------------- */

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
	int64_t lag_ms = cJSON_IsNumber(lag_s) ? (int64_t)(lag_s->valuedouble * 1e3) : 0;
	bool behind = hw_member_int(s, "lag_entries") > 0;
	int at = snprintf(text, sizeof(text), "%s entries read, the last one %s",
	                  hw_text_count(hw_member_int(s, "n"), n), hw_member_text(s, "at"));
	if (behind)
		snprintf(text + at, sizeof(text) - (size_t)at, "; %s wait, for %s",
		         hw_text_count(hw_member_int(s, "lag_entries"), lag), hw_text_span(lag_ms, span));
	const char *stream = hw_member_text(s, "stream");
	const char *title = strcmp(stream, "device:events") == 0  ? "events"
	                    : strcmp(stream, "device:sight") == 0 ? "sight"
	                                                          : "tasks";
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
	                 ? "; what devices' hashes say is being read back"
	                 : "");
	line(ctl, "gaps", gaps > 0 ? HW_WARN : HW_PLAIN, gaps > 0 ? text : "none");
}
