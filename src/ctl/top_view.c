/* SPDX-License-Identifier: MIT */
#include "ctl/top_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/top_draw.h"
#include "ctl/words.h"
#include "heartwheel/print.h"

#define NARROW 60  /* below so many columns, details are left out */
#define WIDE   130 /* with so many columns, groups and changes are shown beside the list */

static int least_of(int a, int b)
{
	return a < b ? a : b;
}

/* --- the top: summary */

/* The most urgent message, or NULL. */
static const char *alarm_words(const struct hw_top_view *f, const struct hw_board *b, char *words)
{
	char span[HW_SPAN_MAX];
	const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(b->status, "cluster");
	if (f->lost_ms > 0) {
		snprintf(words, HW_WORDS_MAX, "heartwheeld has not answered for %s: this screen is old",
		         hw_text_span(f->lost_ms / 1000 * 1000, span));
		return words;
	}
	if (hw_words_true(cluster, "standing_by")) {
		char text[HW_WORDS_MAX];
		hw_words_standby(cluster, text);
		snprintf(words, HW_WORDS_MAX, "standing by: %.200s", text);
		return words;
	}
	if (hw_words_blind(b->status, words))
		return words;
	if (hw_words_true(b->status, "loading"))
		return "devices are still being loaded from the store";
	if (!hw_words_redis_well(b->status)) {
		snprintf(words, HW_WORDS_MAX, "Redis: %.200s", hw_member_text(b->status, "redis"));
		return words;
	}
	return f->feed_lost ? "no event arrives: the list may be some seconds late" : NULL;
}

/* On a narrow screen, removes the words around the cause and the time. */
static void fit_alarm(char *words, size_t room)
{
	static const char *const ends[] = {"; no device is judged", "; its devices are not judged"};
	static const char *const begins[] = {"cannot hear devices: ", "cannot hear a group: "};
	size_t len = strlen(words);
	for (size_t i = 0; i < 2 && len > room; i++) {
		size_t n = strlen(ends[i]);
		if (len > n && strcmp(words + len - n, ends[i]) == 0)
			words[len -= n] = '\0';
	}
	for (size_t i = 0; i < 2 && len > room; i++) {
		size_t n = strlen(begins[i]);
		if (strncmp(words, begins[i], n) == 0)
			memmove(words, words + n, (len -= n) + 1);
	}
}

static void draw_title(const struct hw_top_view *f, const struct hw_board *b)
{
	char up[HW_SPAN_MAX], clock[HW_SPAN_MAX], zone[HW_SPAN_MAX], right[128], words[HW_WORDS_MAX];
	int64_t now_ms = hw_wall_ms();
	int width = (int)hw_print(right, sizeof(right), "up %s  %s %s ",
	                          hw_text_span(hw_member_int(b->status, "uptime_s") * 1000, up),
	                          hw_text_time(now_ms, clock), hw_text_zone(now_ms, zone));
	hw_top_fill(0, 0, COLS, A_REVERSE);
	int taken = hw_top_putf(f, 0, 0, COLS, A_REVERSE, " heartwheel  %s  %s", hw_member_text(b->status, "node"),
	                        hw_member_text(b->status, "version"));
	if (taken + HW_TOP_GAP + width <= COLS)
		hw_top_put(f, 0, COLS - width, width, A_REVERSE, right);
	const char *alarm = alarm_words(f, b, words);
	if (!alarm) {
		hw_top_put(f, 1, 1, COLS - 1, hw_top_paint(f, HW_GOOD), "watching");
		return;
	}
	if (alarm == words)
		fit_alarm(words, (size_t)(COLS > 2 ? COLS - 2 : 0));
	hw_top_fill(1, 0, COLS, hw_top_paint(f, HW_BAD) | A_REVERSE | A_BOLD);
	hw_top_put(f, 1, 1, COLS - 2, hw_top_paint(f, HW_BAD) | A_REVERSE | A_BOLD, alarm);
}

/* Returns how counts are painted: dimmed while the monitor is blind or cannot be reached, because they may be
 * outdated. */
static attr_t count_paint(const struct hw_top_view *f, const struct hw_board *b, enum hw_paint p)
{
	return f->lost_ms > 0 || hw_words_true(b->status, "blind") ? hw_top_paint(f, HW_DIM) : hw_top_paint(f, p);
}

/* Writes the counts that fit completely. On a narrow screen the number of offline devices comes first. Returns the next
 * column. */
static int draw_totals(const struct hw_top_view *f, const struct hw_board *b)
{
	static const char *const keys[] = {"devices", "online", "offline"};
	static const enum hw_paint paints[] = {HW_STRONG, HW_GOOD, HW_BAD};
	char text[HW_SPAN_MAX];
	int x = 1, gap = COLS < NARROW ? 2 : 3;
	for (int i = 0; i < 3; i++) {
		int k = COLS < NARROW ? 2 - i : i;
		int64_t n = hw_member_int(b->status, keys[k]);
		const char *count = hw_member_has(b->status, keys[k]) ? hw_text_count(n, text) : "?";
		if (x + (int)(strlen(keys[k]) + 1 + strlen(count)) > COLS)
			break;
		x += hw_top_put(f, 2, x, COLS - x, hw_top_paint(f, HW_DIM), keys[k]) + 1;
		x += hw_top_put(f, 2, x, COLS - x, count_paint(f, b, n > 0 ? paints[k] : HW_PLAIN) | A_BOLD, count) +
		     gap;
	}
	return x;
}

/* Returns the text about a connection. The reason for a lost connection is shown only if there is room. */
static const char *state_of_link(const char *state, bool well)
{
	return !well && COLS < NARROW ? "away" : state;
}

static int draw_counts(const struct hw_top_view *f, const struct hw_board *b)
{
	char count[HW_SPAN_MAX], span[HW_SPAN_MAX];
	int x = draw_totals(f, b), gap = COLS < NARROW ? 2 : HW_TOP_GAP + 1;
	if (COLS - x >= 24)
		hw_top_putf(f, 2, x, COLS - x, A_NORMAL, "heartbeats %.1f/s", hw_words_rate(b->status));
	int64_t pending = hw_member_int(b->status, "owed"), oldest_ms = hw_member_int(b->status, "owed_oldest_ms");
	const char *mqtt = hw_member_text(b->status, "mqtt"), *redis = hw_member_text(b->status, "redis");
	const cJSON *barrier = cJSON_GetObjectItemCaseSensitive(b->status, "barrier_ms");
	bool up = strcmp(mqtt, "up") == 0, stored = hw_words_redis_well(b->status);
	x = 1 +
	    hw_top_putf(f, 3, 1, COLS / 2, up ? A_NORMAL : hw_top_paint(f, HW_BAD), "mqtt %s", state_of_link(mqtt, up));
	if (up && COLS >= NARROW && cJSON_IsNumber(barrier) && barrier->valuedouble > 0)
		x += hw_top_putf(f, 3, x, COLS - x, A_NORMAL, ", %.1f ms", barrier->valuedouble);
	x += gap;
	x += hw_top_putf(f, 3, x, 24, stored ? A_NORMAL : hw_top_paint(f, HW_BAD), "redis %s",
	                 state_of_link(redis, stored)) +
	     gap;
	x += hw_top_putf(f, 3, x, COLS - x, pending > 0 ? hw_top_paint(f, HW_WARN) : A_NORMAL, "%s %s",
	                 COLS < NARROW ? "pending" : "pending writes", hw_text_count(pending, count));
	if (oldest_ms >= 1000)
		hw_top_putf(f, 3, x, COLS - x, hw_top_paint(f, HW_WARN), ", the oldest for %s",
		            hw_text_span(oldest_ms, span));
	return 4;
}

/* Writes how many tasks wait, lost connections of heartwheel-tasks, and, if there is room, the tasks in each state. */
static void draw_tasks(const struct hw_top_view *f, const cJSON *tasks, int y, int x)
{
	static const char *const links[] = {"mqtt", "redis"};
	char count[HW_SPAN_MAX];
	const cJSON *state;
	x += hw_top_putf(f, y, x, COLS - x, A_NORMAL, "tasks %s waiting",
	                 hw_member_has(tasks, "waiting") ? hw_text_count(hw_member_int(tasks, "waiting"), count) : "?");
	for (size_t i = 0; i < 2; i++)
		if (strcmp(hw_member_text(tasks, links[i]), "up") != 0)
			x += hw_top_putf(f, y, x, COLS - x, hw_top_paint(f, HW_BAD), "  %s: %s", links[i],
			                 COLS < WIDE ? "away" : hw_member_text(tasks, links[i]));
	cJSON_ArrayForEach(state, cJSON_GetObjectItemCaseSensitive(tasks, "states"))
	{
		if (cJSON_IsNumber(state) && state->valuedouble > 0 && COLS - x > 16)
			x += hw_top_putf(f, y, x, COLS - x, A_NORMAL, "  %s %s", state->string,
			                 hw_text_count(hw_number_int(state, 1), count));
	}
	if (hw_words_true(tasks, "clock_held"))
		hw_top_putf(f, y, x, COLS - x, hw_top_paint(f, HW_BAD), "  on hold: the clock has jumped");
}

/* Draws the sentences of the newest open incidents. Most of the screen stays for the list. Returns the next line. */
static int draw_incidents(const struct hw_top_view *f, const cJSON *incidents, int y)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(incidents, "incidents"), *i;
	int room = least_of(LINES / 8, 5);
	cJSON_ArrayForEach(i, list)
	{
		if (room-- <= 0) {
			hw_top_put(f, y++, 1, COLS - 1, A_NORMAL, "more: heartwheelctl incidents");
			break;
		}
		hw_top_put(f, y++, 1, COLS - 1, hw_top_paint(f, hw_incident_paint(i)), hw_member_text(i, "sentence"));
	}
	return y;
}

/* Draws nodes, tasks and incidents, if there are any. Returns the next line. */
static int draw_others(const struct hw_top_view *f, const struct hw_board *b, int y)
{
	char words[HW_WORDS_MAX];
	const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(b->status, "cluster");
	if (cluster) {
		bool well = hw_words_nodes(cluster, words);
		hw_top_putf(f, y++, 1, COLS - 1, hw_top_paint(f, well ? HW_PLAIN : HW_BAD), "nodes %s", words);
	}
	if (b->tasks)
		draw_tasks(f, b->tasks, y++, 1);
	return draw_incidents(f, b->incidents, y);
}

/* --- groups */

static int by_offline(const void *a, const void *b)
{
	const cJSON *const *x = a, *const *y = b;
	int64_t n = hw_member_int(*x, "offline"), m = hw_member_int(*y, "offline");
	return n < m ? 1 : n > m ? -1 : 0;
}

static void draw_bar(const struct hw_top_view *f, int y, int x, int width, int64_t online, int64_t offline, attr_t good)
{
	int64_t all = online + offline;
	int full = all > 0 ? (int)((double)online / (double)all * width + .5) : 0;
	/* A single device must be visible. */
	full -= full == width && offline > 0;
	full += full == 0 && online > 0;
	for (int i = 0; i < width && all > 0; i++)
		hw_top_put(f, y, x + i, 1, i < full ? good : hw_top_paint(f, HW_BAD),
		           f->screen.ascii ? i < full ? "#" : "-"
		           : i < full      ? "█"
		                           : "░");
}

static void draw_group(const struct hw_top_view *f, const struct hw_board *b, const cJSON *g, struct hw_top_box at,
                       int name)
{
	char online[HW_SPAN_MAX], offline[HW_SPAN_MAX];
	int64_t n_online = hw_member_int(g, "online"), n_offline = hw_member_int(g, "offline");
	if (at.w < name + 38) { /* too narrow for both counts: show the offline one */
		name = at.w - 18;
		hw_top_put(f, at.y, at.x, name, A_NORMAL, hw_member_text(g, "name"));
		if (hw_words_true(g, "deaf") || hw_member_has(g, "upstream"))
			hw_top_put(f, at.y, at.x + name, 18, hw_top_paint(f, HW_BAD), "   cannot be heard");
		else
			hw_top_putf(f, at.y, at.x + name, 18, count_paint(f, b, n_offline > 0 ? HW_BAD : HW_PLAIN),
			            "%10s offline", hw_text_count(n_offline, offline));
		return;
	}
	hw_top_put(f, at.y, at.x, name, A_NORMAL, hw_member_text(g, "name"));
	hw_top_putf(f, at.y, at.x + name + 1, 18, count_paint(f, b, n_online > 0 ? HW_GOOD : HW_PLAIN), "%10s online",
	            hw_text_count(n_online, online));
	hw_top_putf(f, at.y, at.x + name + 19, 19, count_paint(f, b, n_offline > 0 ? HW_BAD : HW_PLAIN), "%10s offline",
	            hw_text_count(n_offline, offline));
	int x = name + 40;
	if (hw_words_true(g, "deaf") || hw_member_has(g, "upstream"))
		hw_top_put(f, at.y, at.x + x, at.w - x, hw_top_paint(f, HW_BAD), "cannot be heard");
	else if (at.w - x >= 8)
		draw_bar(f, at.y, at.x + x, at.w - x < 30 ? at.w - x : 30, n_online, n_offline,
		         count_paint(f, b, HW_GOOD));
}

/* The groups with the most offline devices that fit. */
static void draw_groups(const struct hw_top_view *f, const struct hw_board *b, struct hw_top_box at)
{
	const cJSON *groups = cJSON_GetObjectItemCaseSensitive(b->groups, "groups"), *g, **sorted;
	int n = 0, all = cJSON_GetArraySize(groups);
	char remark[64] = "";
	if (at.h < 2 || all < 1 || !(sorted = calloc((size_t)all, sizeof(*sorted))))
		return;
	cJSON_ArrayForEach(g, groups) sorted[n++] = g;
	qsort(sorted, (size_t)n, sizeof(*sorted), by_offline);
	if (all > at.h - 1)
		snprintf(remark, sizeof(remark), "%d of %d", at.h - 1, all);
	hw_top_heading(f, at, "GROUPS", remark);
	int name = at.w - 48 > 24 ? 24 : at.w - 48 > 12 ? at.w - 48 : 12;
	for (int i = 0; i < n && i < at.h - 1; i++)
		draw_group(f, b, sorted[i], (struct hw_top_box){at.y + 1 + i, at.x + 1, 1, at.w - 1}, name);
	free(sorted);
}

/* --- what changed */

static void draw_change(const struct hw_top_view *f, const struct hw_board_change *c, struct hw_top_box at)
{
	char clock[HW_SPAN_MAX], count[HW_SPAN_MAX], span[HW_SPAN_MAX];
	int64_t took_ms = c->last_ms - c->first_ms;
	hw_top_put(f, at.y, at.x, 8, hw_top_paint(f, HW_DIM), hw_text_time(c->last_ms, clock));
	hw_top_put(f, at.y, at.x + 10, 9, hw_top_paint(f, hw_state_paint(c->state)), c->state);
	int x = at.x + 21, room = at.w - 21, words = (int)strlen(c->reason) + 3;
	if (c->count == 1)
		x += hw_top_put(f, at.y, x, room > words + 12 ? room - words : room, A_NORMAL, c->id ? c->id : "?");
	else if (room < 36)
		x += hw_top_putf(f, at.y, x, room, A_BOLD, "%s%s of %s", hw_text_count((int64_t)c->count, count),
		                 c->at_least ? "+" : "", c->group);
	else
		x += hw_top_putf(f, at.y, x, room > words + 12 ? room - words : room, A_BOLD, "%s%s of %s within %s",
		                 hw_text_count((int64_t)c->count, count), c->at_least ? "+" : "", c->group,
		                 hw_text_span(took_ms < 1000 ? 1000 : took_ms, span));
	if (at.x + at.w - x > words)
		hw_top_putf(f, at.y, x + 1, words, hw_top_paint(f, HW_DIM), "(%s)", c->reason);
}

static void draw_changes(const struct hw_top_view *f, const struct hw_board *b, struct hw_top_box at)
{
	const struct hw_board_change *c;
	if (at.h < 2)
		return;
	hw_top_heading(f, at, "LAST CHANGES", "");
	if (b->n_changes == 0)
		hw_top_put(f, at.y + 1, at.x + 1, at.w - 1, A_NORMAL, "Nothing has changed yet.");
	for (int i = 0; i < at.h - 1 && (c = hw_board_change(b, (size_t)i)); i++)
		draw_change(f, c, (struct hw_top_box){at.y + 1 + i, at.x + 1, 1, at.w - 1});
}

/* --- one device */

static int field(const struct hw_top_view *f, int y, const char *name, attr_t attributes, const char *text)
{
	hw_top_put(f, y, 1, 12, hw_top_paint(f, HW_DIM), name);
	hw_top_put(f, y, 14, COLS - 14, attributes, text);
	return y + 1;
}

static int field_time(const struct hw_top_view *f, int y, const char *name, int64_t at_ms)
{
	char text[128], clock[HW_SPAN_MAX], ago[HW_SPAN_MAX];
	snprintf(text, sizeof(text), "%s (%s)",
	         COLS < NARROW ? hw_text_time(at_ms, clock) : hw_text_clock(at_ms, clock),
	         hw_text_ago(hw_wall_ms() - at_ms, ago));
	return field(f, y, name, A_NORMAL, at_ms == 0 ? "never" : text);
}

/* Draws what the device has reported: text without quotes, other types as JSON. */
static int draw_report(const struct hw_top_view *f, const cJSON *device, int y)
{
	static const char *const names[] = {"battery", "rssi", "ip", "version", "data", "node"};
	static const char *const units[] = {" %", " dBm", "", "", "", ""};
	char span[HW_SPAN_MAX];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(device, names[i]);
		if (!hw_member_has(device, names[i]))
			continue;
		char *text = cJSON_IsString(item) ? NULL : cJSON_PrintUnformatted(item), with_unit[64];
		snprintf(with_unit, sizeof(with_unit), "%.48s%s", text ? text : "", units[i]);
		y = field(f, y, names[i], A_NORMAL,
		          text && *units[i] ? with_unit
		          : text            ? text
		                            : hw_member_text(device, names[i]));
		cJSON_free(text);
	}
	if (hw_member_has(device, "uptime"))
		y = field(f, y, "uptime", A_NORMAL, hw_text_span(hw_member_int(device, "uptime") * 1000, span));
	return y;
}

static void draw_lately(const struct hw_top_view *f, const cJSON *answer, int y)
{
	const cJSON *t;
	char clock[HW_SPAN_MAX];
	int x = COLS < NARROW ? 14 : 22;
	cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(answer, "transitions"))
	{
		int64_t at_ms = hw_member_int(t, "since_ms");
		const char *state = hw_member_text(t, "state");
		if (y >= LINES - 1)
			break;
		hw_top_put(f, y, 1, x - 2, A_NORMAL,
		           COLS < NARROW ? hw_text_minute(at_ms, clock) : hw_text_clock(at_ms, clock));
		hw_top_put(f, y, x, 9, hw_top_paint(f, hw_state_paint(state)), state);
		hw_top_put(f, y++, x + 11, COLS - x - 11, A_NORMAL, hw_member_text(t, "reason"));
	}
}

static void draw_device(const struct hw_top_view *f, const struct hw_board *b, int y)
{
	const cJSON *d = b->device;
	char span[HW_SPAN_MAX], text[128];
	hw_top_heading(f, (struct hw_top_box){y, 0, 1, COLS}, f->chosen, "");
	y++;
	if (f->gone || !d) {
		hw_top_put(f, y, 1, COLS - 1, f->gone ? hw_top_paint(f, HW_BAD) : A_NORMAL,
		           f->gone ? "The device was forgotten." : "asking ...");
		return;
	}
	const char *state = hw_member_text(d, "state");
	y = field(f, y, "state", hw_top_paint(f, hw_state_paint(state)) | A_BOLD, state);
	y = field_time(f, y, "since", hw_member_int(d, "since_ms"));
	y = field(f, y, "reason", A_NORMAL, hw_member_text(d, "reason"));
	y = field_time(f, y, "last seen", hw_member_int(d, "last_seen_ms"));
	y = field(f, y, "timeout", A_NORMAL, hw_text_span(hw_member_int(d, "timeout_ms"), span));
	int64_t due_ms = hw_member_int(d, "due_in_ms");
	bool online = strcmp(state, "online") == 0;
	if (hw_member_has(d, "due_in_ms"))
		snprintf(text, sizeof(text), due_ms > 0 ? "in %s%s" : "now%.0s%s", hw_text_span(due_ms, span),
		         online ? ", if no heartbeat arrives" : "");
	y = field(f, y, online ? "offline" : "forgotten", A_NORMAL, hw_member_has(d, "due_in_ms") ? text : "never");
	y = field(f, y, "group", A_NORMAL, hw_member_text(d, "group"));
	y = field(f, y, "heard by", A_NORMAL, hw_member_text(d, "source"));
	y = draw_report(f, d, y);
	if (y < LINES - 3 && b->lately) {
		hw_top_heading(f, (struct hw_top_box){y + 1, 0, 1, COLS}, "ITS CHANGES", "");
		draw_lately(f, b->lately, y + 2);
	}
}

/* --- all of it */

static void draw_foot(const struct hw_top_view *f, const struct hw_board *b)
{
	static const char *const keys[] = {" q leave", "/ filter", "Enter open", "a offline, all, online",
	                                   "Up Down PgUp PgDn Home"};
	static const char *const of_device[] = {" q Esc back", "Up Down another device"};
	int y = LINES - 1;
	if (f->typing) {
		int x = hw_top_putf(f, y, 0, COLS - 1, A_BOLD, "/%s", b->search);
		hw_top_put(f, y, x, 1, A_REVERSE, " ");
		hw_top_put(f, y, x + 3, COLS - x - 3, hw_top_paint(f, HW_DIM), "Enter: keep, Esc: all");
		return;
	}
	int x = f->open ? hw_top_put_whole(f, y, 0, A_NORMAL, of_device, 2)
	                : hw_top_put_whole(f, y, 0, A_NORMAL, keys, 5);
	mvchgat(y, 0, least_of(x, COLS), A_REVERSE, 0, NULL);
}

static int n_groups(const struct hw_board *b)
{
	return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(b->groups, "groups"));
}

/* Places the parts below each other, or the list beside the others. */
static void draw_parts(struct hw_top_view *f, const struct hw_board *b, int y)
{
	int h = LINES - 1 - y, groups = n_groups(b) > 1 ? 1 + n_groups(b) : 0;
	if (COLS >= WIDE) {
		int left = COLS * 11 / 20;
		groups = least_of(groups, h / 2);
		hw_top_draw_list(f, b, (struct hw_top_box){y, 0, h, left - 1});
		draw_groups(f, b, (struct hw_top_box){y, left + 1, groups, COLS - left - 1});
		draw_changes(f, b, (struct hw_top_box){y + groups, left + 1, h - groups, COLS - left - 1});
		return;
	}
	int changes = h >= 9 ? h / 3 : 0;
	groups = h >= 14 ? least_of(groups, h / 4) : 0;
	draw_groups(f, b, (struct hw_top_box){y, 0, groups, COLS});
	hw_top_draw_list(f, b, (struct hw_top_box){y + groups, 0, h - groups - changes, COLS});
	draw_changes(f, b, (struct hw_top_box){LINES - 1 - changes, 0, changes, COLS});
}

void hw_top_view_draw(struct hw_top_view *f, const struct hw_board *b)
{
	erase();
	draw_title(f, b);
	int y = draw_others(f, b, draw_counts(f, b));
	if (f->open)
		draw_device(f, b, y);
	else
		draw_parts(f, b, y);
	draw_foot(f, b);
	refresh();
}
