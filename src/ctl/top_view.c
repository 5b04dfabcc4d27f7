/* SPDX-License-Identifier: MIT */
#include "ctl/top_view.h"

#include <inttypes.h>
#include <ncurses.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/words.h"
#include "heartwheel/print.h"

#define NARROW   60  /* below so many columns, details are left out */
#define WIDE     130 /* with so many columns, groups and changes are shown beside the list */
#define GAP      2
#define ID_LEAST 24

enum { GREEN = 1, RED, YELLOW };

static int least_of(int a, int b)
{
	return a < b ? a : b;
}

/* A part of the screen; not shown if its height or width is 0. */
struct box {
	int y, x, h, w;
};

bool hw_top_view_begin(struct hw_top_view *f)
{
	hw_screen_init(&f->screen);
	if (!newterm(NULL, stdout, stdin))
		return false;
	if (!tigetstr("cup")) { /* the cursor cannot be moved */
		endwin();
		return false;
	}
	if (f->screen.colour && has_colors() && start_color() == OK && use_default_colors() == OK) {
		init_pair(GREEN, COLOR_GREEN, -1);
		init_pair(RED, COLOR_RED, -1);
		init_pair(YELLOW, COLOR_YELLOW, -1);
	} else {
		f->screen.colour = false;
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	return true;
}

void hw_top_view_end(void)
{
	endwin();
}

static attr_t paint(const struct hw_top_view *f, enum hw_paint p)
{
	static const attr_t plain[] = {A_NORMAL, A_NORMAL, A_BOLD, A_BOLD, A_NORMAL, A_BOLD};
	static const short pairs[] = {0, GREEN, RED, YELLOW, 0, 0};
	if (p == HW_DIM)
		return f->screen.colour ? A_DIM : A_NORMAL;
	return f->screen.colour ? (attr_t)COLOR_PAIR(pairs[p]) | (p == HW_STRONG ? A_BOLD : 0) : plain[p];
}

/* Writes text in at most `width` columns. Returns the columns used. */
static int put(const struct hw_top_view *f, int y, int x, int width, attr_t attributes, const char *text)
{
	size_t taken = 0;
	if (width <= 0 || y < 0 || y >= LINES || x >= COLS)
		return 0;
	width = width < COLS - x ? width : COLS - x;
	char *clean = hw_text_clean(&f->screen, text, (size_t)width, &taken);
	attrset((int)attributes);
	mvaddstr(y, x, clean ? clean : "?");
	attrset(A_NORMAL);
	free(clean);
	return (int)taken;
}

static int __attribute__((format(printf, 6, 7)))
putf(const struct hw_top_view *f, int y, int x, int width, attr_t attributes, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return put(f, y, x, width, attributes, text);
}

/* Fills a line with one colour. */
static void fill(int y, int x, int width, attr_t attributes)
{
	attrset((int)attributes);
	mvhline(y, x, (chtype)' ' | attributes, width);
	attrset(A_NORMAL);
}

/* Writes those of the texts that fit completely. Returns the next column. */
static int put_whole(const struct hw_top_view *f, int y, int x, attr_t attributes, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n && x + (int)strlen(texts[i]) <= COLS; i++)
		x += put(f, y, x, COLS - x, attributes, texts[i]) + GAP;
	return x;
}

/* Writes the first line of a part: its title, and a remark on the right. */
static void heading(const struct hw_top_view *f, struct box b, const char *title, const char *remark)
{
	int taken = put(f, b.y, b.x, b.w, A_BOLD | A_UNDERLINE, title);
	int room = b.w - taken - GAP, width = (int)strlen(remark);
	if (width > 0 && width <= room)
		put(f, b.y, b.x + b.w - width, width, paint(f, HW_DIM), remark);
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
	fill(0, 0, COLS, A_REVERSE);
	int taken = putf(f, 0, 0, COLS, A_REVERSE, " heartwheel  %s  %s", hw_member_text(b->status, "node"),
	                 hw_member_text(b->status, "version"));
	if (taken + GAP + width <= COLS)
		put(f, 0, COLS - width, width, A_REVERSE, right);
	const char *alarm = alarm_words(f, b, words);
	if (!alarm) {
		put(f, 1, 1, COLS - 1, paint(f, HW_GOOD), "watching");
		return;
	}
	if (alarm == words)
		fit_alarm(words, (size_t)(COLS > 2 ? COLS - 2 : 0));
	fill(1, 0, COLS, paint(f, HW_BAD) | A_REVERSE | A_BOLD);
	put(f, 1, 1, COLS - 2, paint(f, HW_BAD) | A_REVERSE | A_BOLD, alarm);
}

/* Returns how counts are painted: dimmed while the monitor is blind or cannot be reached, because they may be
 * outdated. */
static attr_t count_paint(const struct hw_top_view *f, const struct hw_board *b, enum hw_paint p)
{
	return f->lost_ms > 0 || hw_words_true(b->status, "blind") ? paint(f, HW_DIM) : paint(f, p);
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
		x += put(f, 2, x, COLS - x, paint(f, HW_DIM), keys[k]) + 1;
		x += put(f, 2, x, COLS - x, count_paint(f, b, n > 0 ? paints[k] : HW_PLAIN) | A_BOLD, count) + gap;
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
	int x = draw_totals(f, b), gap = COLS < NARROW ? 2 : GAP + 1;
	if (COLS - x >= 24)
		putf(f, 2, x, COLS - x, A_NORMAL, "heartbeats %.1f/s", hw_words_rate(b->status));
	int64_t pending = hw_member_int(b->status, "owed"), oldest_ms = hw_member_int(b->status, "owed_oldest_ms");
	const char *mqtt = hw_member_text(b->status, "mqtt"), *redis = hw_member_text(b->status, "redis");
	const cJSON *barrier = cJSON_GetObjectItemCaseSensitive(b->status, "barrier_ms");
	bool up = strcmp(mqtt, "up") == 0, stored = hw_words_redis_well(b->status);
	x = 1 + putf(f, 3, 1, COLS / 2, up ? A_NORMAL : paint(f, HW_BAD), "mqtt %s", state_of_link(mqtt, up));
	if (up && COLS >= NARROW && cJSON_IsNumber(barrier) && barrier->valuedouble > 0)
		x += putf(f, 3, x, COLS - x, A_NORMAL, ", %.1f ms", barrier->valuedouble);
	x += gap;
	x += putf(f, 3, x, 24, stored ? A_NORMAL : paint(f, HW_BAD), "redis %s", state_of_link(redis, stored)) + gap;
	x += putf(f, 3, x, COLS - x, pending > 0 ? paint(f, HW_WARN) : A_NORMAL, "%s %s",
	          COLS < NARROW ? "pending" : "pending writes", hw_text_count(pending, count));
	if (oldest_ms >= 1000)
		putf(f, 3, x, COLS - x, paint(f, HW_WARN), ", the oldest for %s", hw_text_span(oldest_ms, span));
	return 4;
}

/* Writes how many tasks wait, lost connections of heartwheel-tasks, and, if there is room, the tasks in each state. */
static void draw_tasks(const struct hw_top_view *f, const cJSON *tasks, int y, int x)
{
	static const char *const links[] = {"mqtt", "redis"};
	char count[HW_SPAN_MAX];
	const cJSON *state;
	x += putf(f, y, x, COLS - x, A_NORMAL, "tasks %s waiting",
	          hw_member_has(tasks, "waiting") ? hw_text_count(hw_member_int(tasks, "waiting"), count) : "?");
	for (size_t i = 0; i < 2; i++)
		if (strcmp(hw_member_text(tasks, links[i]), "up") != 0)
			x += putf(f, y, x, COLS - x, paint(f, HW_BAD), "  %s: %s", links[i],
			          COLS < WIDE ? "away" : hw_member_text(tasks, links[i]));
	cJSON_ArrayForEach(state, cJSON_GetObjectItemCaseSensitive(tasks, "states"))
	{
		if (cJSON_IsNumber(state) && state->valuedouble > 0 && COLS - x > 16)
			x += putf(f, y, x, COLS - x, A_NORMAL, "  %s %s", state->string,
			          hw_text_count(hw_number_int(state, 1), count));
	}
	if (hw_words_true(tasks, "clock_held"))
		putf(f, y, x, COLS - x, paint(f, HW_BAD), "  on hold: the clock has jumped");
}

/* Draws the sentences of the newest open incidents. Most of the screen stays for the list. Returns the next line. */
static int draw_incidents(const struct hw_top_view *f, const cJSON *incidents, int y)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(incidents, "incidents"), *i;
	int room = least_of(LINES / 8, 5);
	cJSON_ArrayForEach(i, list)
	{
		if (room-- <= 0) {
			put(f, y++, 1, COLS - 1, A_NORMAL, "more: heartwheelctl incidents");
			break;
		}
		put(f, y++, 1, COLS - 1, paint(f, hw_incident_paint(i)), hw_member_text(i, "sentence"));
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
		putf(f, y++, 1, COLS - 1, paint(f, well ? HW_PLAIN : HW_BAD), "nodes %s", words);
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
		put(f, y, x + i, 1, i < full ? good : paint(f, HW_BAD),
		    f->screen.ascii ? i < full ? "#" : "-"
		    : i < full      ? "█"
		                    : "░");
}

static void draw_group(const struct hw_top_view *f, const struct hw_board *b, const cJSON *g, struct box at, int name)
{
	char online[HW_SPAN_MAX], offline[HW_SPAN_MAX];
	int64_t n_online = hw_member_int(g, "online"), n_offline = hw_member_int(g, "offline");
	if (at.w < name + 38) { /* too narrow for both counts: show the offline one */
		name = at.w - 18;
		put(f, at.y, at.x, name, A_NORMAL, hw_member_text(g, "name"));
		if (hw_words_true(g, "deaf") || hw_member_has(g, "upstream"))
			put(f, at.y, at.x + name, 18, paint(f, HW_BAD), "   cannot be heard");
		else
			putf(f, at.y, at.x + name, 18, count_paint(f, b, n_offline > 0 ? HW_BAD : HW_PLAIN),
			     "%10s offline", hw_text_count(n_offline, offline));
		return;
	}
	put(f, at.y, at.x, name, A_NORMAL, hw_member_text(g, "name"));
	putf(f, at.y, at.x + name + 1, 18, count_paint(f, b, n_online > 0 ? HW_GOOD : HW_PLAIN), "%10s online",
	     hw_text_count(n_online, online));
	putf(f, at.y, at.x + name + 19, 19, count_paint(f, b, n_offline > 0 ? HW_BAD : HW_PLAIN), "%10s offline",
	     hw_text_count(n_offline, offline));
	int x = name + 40;
	if (hw_words_true(g, "deaf") || hw_member_has(g, "upstream"))
		put(f, at.y, at.x + x, at.w - x, paint(f, HW_BAD), "cannot be heard");
	else if (at.w - x >= 8)
		draw_bar(f, at.y, at.x + x, at.w - x < 30 ? at.w - x : 30, n_online, n_offline,
		         count_paint(f, b, HW_GOOD));
}

/* The groups with the most offline devices that fit. */
static void draw_groups(const struct hw_top_view *f, const struct hw_board *b, struct box at)
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
	heading(f, at, "GROUPS", remark);
	int name = at.w - 48 > 24 ? 24 : at.w - 48 > 12 ? at.w - 48 : 12;
	for (int i = 0; i < n && i < at.h - 1; i++)
		draw_group(f, b, sorted[i], (struct box){at.y + 1 + i, at.x + 1, 1, at.w - 1}, name);
	free(sorted);
}

/* --- the list */

enum { COL_ID, COL_STATE, COL_SINCE, COL_REASON, COL_GROUP, COL_SEEN, N_COLS };

#define CELL_MAX 512 /* an id and a name fit */

static const char *cell(const cJSON *device, int column, char buf[CELL_MAX])
{
	static const char *const keys[N_COLS] = {"id", "state", "since_ms", "reason", "group", "last_seen_ms"};
	const char *name = hw_member_text(device, "name");
	int64_t at_ms;
	switch (column) {
	case COL_ID: /* after it the name from the inventory */
		hw_print(buf, CELL_MAX, "%s%s%s", hw_member_text(device, "id"), *name ? "  " : "", name);
		return buf;
	case COL_SINCE:
	case COL_SEEN:
		at_ms = hw_member_int(device, keys[column]);
		return at_ms == 0 ? "never" : hw_text_ago(hw_wall_ms() - at_ms, buf);
	default:
		return hw_member_text(device, keys[column]);
	}
}

/* Columns that the visible ids and names need. */
static int id_need(const struct hw_top_view *f, const struct hw_board *b)
{
	size_t need = 0, columns;
	char buf[CELL_MAX];
	for (size_t i = f->top; i < f->top + f->page && i < b->n_rows; i++) {
		free(hw_text_clean(&f->screen, cell(b->rows[i].device, COL_ID, buf), 0, &columns));
		need = columns > need ? columns : need;
	}
	return (int)need;
}

/* Sets the widths of the columns; a column of width 0 is omitted. Room is given in this order: a part of the id, the
 * other columns, the whole id, last seen. */
static void lay_out(const struct hw_top_view *f, const struct hw_board *b, int width, int widths[N_COLS])
{
	static const int least_important[] = {COL_SEEN, COL_GROUP, COL_REASON, COL_SINCE};
	int line = 0;
	memcpy(widths, (int[N_COLS]){ID_LEAST, b->view == HW_VIEW_ALL ? 7 : 0, 10, 9, 16, 10}, sizeof(int[N_COLS]));
	for (int c = 0; c < N_COLS; c++)
		line += widths[c] ? widths[c] + GAP : 0;
	int lacks = id_need(f, b) - ID_LEAST;
	for (size_t i = 0; line - GAP + (i == 0 && lacks > 0 ? lacks : 0) > width &&
	                   i < sizeof(least_important) / sizeof(least_important[0]);
	     i++) {
		line -= widths[least_important[i]] + GAP;
		widths[least_important[i]] = 0;
	}
	widths[COL_ID] += width - line + GAP;
	if (widths[COL_ID] < 1)
		widths[COL_ID] = 1;
}

/* One line of the list, or its titles. */
static void draw_row(const struct hw_top_view *f, struct box at, const int *widths, const cJSON *device,
                     attr_t attributes)
{
	static const char *const titles[N_COLS] = {"ID", "STATE", "SINCE", "REASON", "GROUP", "LAST SEEN"};
	char buf[CELL_MAX];
	int x = at.x;
	if (attributes & A_REVERSE)
		fill(at.y, at.x, at.w, attributes);
	for (int c = 0; c < N_COLS; c++) {
		if (!widths[c])
			continue;
		put(f, at.y, x, widths[c], attributes, device ? cell(device, c, buf) : titles[c]);
		x += widths[c] + GAP;
	}
}

/* Keeps the same device chosen when it moves. */
static void follow_choice(struct hw_top_view *f, const struct hw_board *b)
{
	size_t found = *f->chosen ? hw_board_find(b, f->chosen) : 0;
	if (found < b->n_rows)
		f->at = found;
	else if (f->at >= b->n_rows)
		f->at = b->n_rows > 0 ? b->n_rows - 1 : 0;
	if (f->at < f->top)
		f->top = f->at;
	if (f->page > 0 && f->at >= f->top + f->page)
		f->top = f->at - f->page + 1;
	if (f->top + f->page > b->n_rows)
		f->top = b->n_rows > f->page ? b->n_rows - f->page : 0;
}

static const char *empty_words(const struct hw_board *b)
{
	if (!b->listed)
		return "asking ...";
	if (*b->search)
		return b->view == HW_VIEW_ALL ? "No device's id contains that."
		                              : "No such device's id contains that. a: all devices";
	if (hw_member_int(b->status, "devices") == 0)
		return "No device is known yet: no heartbeat has arrived on the groups' topics.";
	return b->view == HW_VIEW_OFFLINE ? "No device is offline." : "No device is online.";
}

static void draw_list(struct hw_top_view *f, const struct hw_board *b, struct box at)
{
	static const char *const names[HW_VIEWS] = {"OFFLINE", "ALL DEVICES", "ONLINE"};
	int widths[N_COLS];
	char title[256], remark[96] = "", n[HW_SPAN_MAX];
	f->page = at.h > 2 ? (size_t)at.h - 2 : 0;
	if (at.h < 2)
		return;
	follow_choice(f, b);
	snprintf(title, sizeof(title), "%s%s%s", names[b->view], *b->search ? ", id contains " : "", b->search);
	if (b->n_rows > 0)
		snprintf(remark, sizeof(remark), "%zu of %s%s, newest first", f->at + 1,
		         hw_text_count(b->more && !*b->search ? hw_board_total(b) : (int64_t)b->n_rows, n),
		         b->more && *b->search ? "+" : "");
	heading(f, at, title, remark);
	lay_out(f, b, at.w - 1, widths);
	if (b->n_rows == 0) {
		put(f, at.y + 1, at.x + 1, at.w - 1, A_NORMAL, empty_words(b));
		return;
	}
	draw_row(f, (struct box){at.y + 1, at.x + 1, 1, at.w - 1}, widths, NULL, paint(f, HW_DIM));
	for (size_t i = 0; i < f->page && f->top + i < b->n_rows; i++) {
		const cJSON *device = b->rows[f->top + i].device;
		bool offline = strcmp(hw_member_text(device, "state"), "offline") == 0;
		draw_row(f, (struct box){at.y + 2 + (int)i, at.x + 1, 1, at.w - 1}, widths, device,
		         f->top + i == f->at                 ? A_REVERSE
		         : offline && b->view == HW_VIEW_ALL ? paint(f, HW_BAD)
		                                             : A_NORMAL);
	}
}

/* --- what changed */

static void draw_change(const struct hw_top_view *f, const struct hw_board_change *c, struct box at)
{
	char clock[HW_SPAN_MAX], count[HW_SPAN_MAX], span[HW_SPAN_MAX];
	int64_t took_ms = c->last_ms - c->first_ms;
	put(f, at.y, at.x, 8, paint(f, HW_DIM), hw_text_time(c->last_ms, clock));
	put(f, at.y, at.x + 10, 9, paint(f, hw_state_paint(c->state)), c->state);
	int x = at.x + 21, room = at.w - 21, words = (int)strlen(c->reason) + 3;
	if (c->count == 1)
		x += put(f, at.y, x, room > words + 12 ? room - words : room, A_NORMAL, c->id ? c->id : "?");
	else if (room < 36)
		x += putf(f, at.y, x, room, A_BOLD, "%s%s of %s", hw_text_count((int64_t)c->count, count),
		          c->at_least ? "+" : "", c->group);
	else
		x += putf(f, at.y, x, room > words + 12 ? room - words : room, A_BOLD, "%s%s of %s within %s",
		          hw_text_count((int64_t)c->count, count), c->at_least ? "+" : "", c->group,
		          hw_text_span(took_ms < 1000 ? 1000 : took_ms, span));
	if (at.x + at.w - x > words)
		putf(f, at.y, x + 1, words, paint(f, HW_DIM), "(%s)", c->reason);
}

static void draw_changes(const struct hw_top_view *f, const struct hw_board *b, struct box at)
{
	const struct hw_board_change *c;
	if (at.h < 2)
		return;
	heading(f, at, "LAST CHANGES", "");
	if (b->n_changes == 0)
		put(f, at.y + 1, at.x + 1, at.w - 1, A_NORMAL, "Nothing has changed yet.");
	for (int i = 0; i < at.h - 1 && (c = hw_board_change(b, (size_t)i)); i++)
		draw_change(f, c, (struct box){at.y + 1 + i, at.x + 1, 1, at.w - 1});
}

/* --- one device */

static int field(const struct hw_top_view *f, int y, const char *name, attr_t attributes, const char *text)
{
	put(f, y, 1, 12, paint(f, HW_DIM), name);
	put(f, y, 14, COLS - 14, attributes, text);
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
		put(f, y, 1, x - 2, A_NORMAL,
		    COLS < NARROW ? hw_text_minute(at_ms, clock) : hw_text_clock(at_ms, clock));
		put(f, y, x, 9, paint(f, hw_state_paint(state)), state);
		put(f, y++, x + 11, COLS - x - 11, A_NORMAL, hw_member_text(t, "reason"));
	}
}

static void draw_device(const struct hw_top_view *f, const struct hw_board *b, int y)
{
	const cJSON *d = b->device;
	char span[HW_SPAN_MAX], text[128];
	heading(f, (struct box){y, 0, 1, COLS}, f->chosen, "");
	y++;
	if (f->gone || !d) {
		put(f, y, 1, COLS - 1, f->gone ? paint(f, HW_BAD) : A_NORMAL,
		    f->gone ? "The device was forgotten." : "asking ...");
		return;
	}
	const char *state = hw_member_text(d, "state");
	y = field(f, y, "state", paint(f, hw_state_paint(state)) | A_BOLD, state);
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
		heading(f, (struct box){y + 1, 0, 1, COLS}, "ITS CHANGES", "");
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
		int x = putf(f, y, 0, COLS - 1, A_BOLD, "/%s", b->search);
		put(f, y, x, 1, A_REVERSE, " ");
		put(f, y, x + 3, COLS - x - 3, paint(f, HW_DIM), "Enter: keep, Esc: all");
		return;
	}
	int x = f->open ? put_whole(f, y, 0, A_NORMAL, of_device, 2) : put_whole(f, y, 0, A_NORMAL, keys, 5);
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
		draw_list(f, b, (struct box){y, 0, h, left - 1});
		draw_groups(f, b, (struct box){y, left + 1, groups, COLS - left - 1});
		draw_changes(f, b, (struct box){y + groups, left + 1, h - groups, COLS - left - 1});
		return;
	}
	int changes = h >= 9 ? h / 3 : 0;
	groups = h >= 14 ? least_of(groups, h / 4) : 0;
	draw_groups(f, b, (struct box){y, 0, groups, COLS});
	draw_list(f, b, (struct box){y + groups, 0, h - groups - changes, COLS});
	draw_changes(f, b, (struct box){LINES - 1 - changes, 0, changes, COLS});
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

void hw_top_view_move(struct hw_top_view *f, const struct hw_board *b, long by)
{
	size_t last = b->n_rows > 0 ? b->n_rows - 1 : 0;
	if (b->n_rows == 0)
		return;
	follow_choice(f, b);
	if (by < 0)
		f->at = f->at > (size_t)-by ? f->at - (size_t)-by : 0;
	else
		f->at = last - f->at > (size_t)by ? f->at + (size_t)by : last;
	snprintf(f->chosen, sizeof(f->chosen), "%s", hw_member_text(b->rows[f->at].device, "id"));
}

void hw_top_view_home(struct hw_top_view *f)
{
	*f->chosen = '\0';
	f->at = f->top = 0;
}
