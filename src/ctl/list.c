/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl list, groups. Pages are shown one by one, so a million devices need no more memory than a thousand.
 * Columns are as wide as the first page needs; a later page may widen them. On a terminal, groups and ids are shortened
 * to fit. If too little of the ids would be left, the least important columns are omitted.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

enum {
	COL_ID,
	COL_STATE,
	COL_SINCE,
	COL_SEEN,
	COL_TIMEOUT,
	COL_FROM,
	COL_LEARNED,
	COL_MEDIAN,
	COL_LARGEST,
	COL_MISTAKES,
	COL_REASON,
	COL_GROUP,
	COL_NAME, /* only if a device of the first page has one */
	COLS
};
#define HAS(column) (1U << (column))
/* The columns that are shown, without and with --columns learned. */
#define USUAL                                                                                                          \
	(HAS(COL_ID) | HAS(COL_STATE) | HAS(COL_SINCE) | HAS(COL_SEEN) | HAS(COL_TIMEOUT) | HAS(COL_REASON) |          \
	 HAS(COL_GROUP))
#define LEARNED                                                                                                        \
	(HAS(COL_ID) | HAS(COL_STATE) | HAS(COL_TIMEOUT) | HAS(COL_FROM) | HAS(COL_LEARNED) | HAS(COL_MEDIAN) |        \
	 HAS(COL_LARGEST) | HAS(COL_MISTAKES) | HAS(COL_GROUP))
#define GAP      2
#define ID_LEAST 24    /* if the id would get less room than this, other columns are omitted */
#define PAGE     1000u /* most rows per page of the API: heartwheel-api(7) */

static const char *const titles[COLS] = {"ID",     "STATE",   "SINCE",    "LAST-SEEN", "TIMEOUT", "FROM", "LEARNED",
                                         "MEDIAN", "LARGEST", "MISTAKES", "REASON",    "GROUP",   "NAME"};

/* The order in which columns are omitted on a narrow terminal. Id and state are always shown. */
static const int least_important[] = {COL_FROM, COL_MEDIAN, COL_LARGEST, COL_TIMEOUT, COL_SEEN,
                                      COL_NAME, COL_GROUP,  COL_REASON,  COL_SINCE,   COL_MISTAKES};
#define N_LEAST (sizeof(least_important) / sizeof(least_important[0]))

struct table {
	unsigned shown;     /* HAS() of the columns */
	size_t need[COLS];  /* widest cell so far */
	size_t width[COLS]; /* width shown; 0: left out */
	bool begun;
};

struct row {
	char *cell[COLS]; /* owned */
};

/* Returns the cell of a column that --columns learned shows; "-": nothing was learned. */
static char *make_learned_cell(const cJSON *device, const char *key, int column)
{
	char span[HW_SPAN_MAX];
	int64_t n = hw_member_int(device, key);
	if (!hw_member_has(device, key) || (n == 0 && column != COL_MISTAKES))
		return strdup("-");
	if (column != COL_MISTAKES)
		return strdup(hw_text_span(n, span));
	snprintf(span, sizeof(span), "%d%s", (int)n, n < HW_LEARNED_COUNT_MAX ? "" : "+");
	return strdup(span);
}

static char *make_cell(const struct hw_screen *s, const cJSON *device, int column, int64_t now_ms)
{
	static const char *const keys[COLS] = {
		"id",           "state",      "since_ms",      "last_seen_ms",   "timeout_ms",
		"timeout_from", "learned_ms", "median_gap_ms", "largest_gap_ms", "learned_mistakes",
		"reason",       "group",      "name"};
	char span[HW_SPAN_MAX];
	const char *key = keys[column];
	if (column == COL_SEEN && hw_member_int(device, key) == 0)
		return strdup("never");
	if (column == COL_SINCE || column == COL_SEEN)
		return strdup(hw_text_ago(now_ms - hw_member_int(device, key), span));
	if (column >= COL_LEARNED && column <= COL_MISTAKES)
		return make_learned_cell(device, key, column);
	if (column == COL_TIMEOUT)
		return strdup(hw_text_span(hw_member_int(device, key), span));
	return hw_text_clean(s, hw_member_text(device, key), 0, NULL);
}

/* Columns of a text that is already clean. */
static size_t columns_of(const struct hw_screen *s, const char *text)
{
	size_t width = 0;
	free(hw_text_clean(s, text, 0, &width));
	return width;
}

static void shrink(size_t *width, size_t least, size_t *excess)
{
	size_t by = *width > least ? *width - least : 0;
	if (by > *excess)
		by = *excess;
	*width -= by;
	*excess -= by;
}

/* Gives each column its width, without the `dropped` least important ones. Returns by how many columns the result
 * exceeds the terminal. */
static size_t lay_out(struct table *t, const struct hw_screen *s, size_t dropped)
{
	size_t line = 0;
	memcpy(t->width, t->need, sizeof(t->width));
	for (size_t i = 0; i < dropped; i++)
		t->width[least_important[i]] = 0;
	for (int c = 0; c < COLS; c++)
		line += t->width[c] ? t->width[c] + (c > 0 ? GAP : 0) : 0;
	size_t excess = s->width > 0 && line > s->width ? line - s->width : 0;
	if (t->width[COL_GROUP])
		shrink(&t->width[COL_GROUP], 12, &excess);
	shrink(&t->width[COL_ID], ID_LEAST, &excess);
	return excess;
}

static void fit(struct table *t, const struct hw_screen *s, const struct row *rows, size_t n)
{
	size_t dropped = 0, excess;
	for (int c = 0; c < COLS; c++) {
		size_t least = strlen(titles[c]);
		if (!(t->shown & HAS(c)))
			continue;
		if (t->need[c] < least)
			t->need[c] = least;
		for (size_t i = 0; i < n; i++) {
			size_t width = columns_of(s, rows[i].cell[c]);
			if (t->need[c] < width)
				t->need[c] = width;
		}
	}
	while ((excess = lay_out(t, s, dropped)) > 0 && dropped < N_LEAST)
		dropped++;
	shrink(&t->width[COL_ID], 5, &excess);
}

static void print_line(const struct table *t, const struct hw_screen *s, const char *const *cells)
{
	for (int c = 0; c < COLS; c++) {
		size_t width;
		if (t->width[c] == 0)
			continue;
		fputs(c > 0 ? "  " : "", stdout);
		char *text = hw_text_clean(s, cells[c], s->terminal ? t->width[c] : 0, &width);
		bool painted = c == COL_STATE && cells != titles;
		fputs(painted ? hw_paint(s, hw_state_paint(cells[c])) : "", stdout);
		fputs(text ? text : "?", stdout);
		fputs(painted ? hw_paint(s, HW_PLAIN) : "", stdout);
		if (c < COLS - 1)
			printf("%*s", (int)(width < t->width[c] ? t->width[c] - width : 0), "");
		free(text);
	}
	fputc('\n', stdout);
}

static int print_page(struct hw_ctl *ctl, struct table *t, const cJSON *devices)
{
	const cJSON *device;
	int64_t now_ms = hw_wall_ms();
	size_t n = 0;
	struct row *rows = calloc((size_t)cJSON_GetArraySize(devices) + 1, sizeof(*rows));
	bool whole = rows != NULL;
	if (whole)
		cJSON_ArrayForEach(device, devices)
		{
			for (int c = 0; c < COLS; c++) {
				rows[n].cell[c] = make_cell(&ctl->screen, device, c, now_ms);
				whole = whole && rows[n].cell[c];
			}
			n++;
		}
	for (size_t i = 0; whole && !t->begun && i < n; i++)
		if (*rows[i].cell[COL_NAME])
			t->shown |= HAS(COL_NAME);
	if (whole && n > 0) {
		fit(t, &ctl->screen, rows, n);
		if (!t->begun)
			print_line(t, &ctl->screen, titles);
		t->begun = true;
		for (size_t i = 0; i < n; i++)
			print_line(t, &ctl->screen, (const char *const *)rows[i].cell);
	}
	for (size_t i = 0; i < n; i++)
		for (int c = 0; c < COLS; c++)
			free(rows[i].cell[c]);
	free(rows);
	return whole ? HW_EXIT_DONE : hw_failed(ctl, "out of memory");
}

static void add_filter(struct hw_path *path, const char *key, const char *value)
{
	if (!value)
		return;
	hw_path_add(path, "&");
	hw_path_add(path, key);
	hw_path_add(path, "=");
	hw_path_add_encoded(path, value);
}

static void print_name(const struct hw_ctl *ctl, const cJSON *object, const char *key)
{
	hw_text_print_name(&ctl->screen, hw_member_text(object, key));
}

static int list_page(struct hw_ctl *ctl, const struct hw_args *args, struct table *t, const cJSON *devices)
{
	const cJSON *device;
	if (!cJSON_IsArray(devices))
		return hw_failed(ctl, "heartwheeld's answer is malformed: it has no list of devices");
	if (!args->json && !args->names)
		return print_page(ctl, t, devices);
	cJSON_ArrayForEach(device, devices)
	{
		int rc = 0;
		if (args->names)
			print_name(ctl, device, "id");
		else
			rc = hw_print_json(ctl, device);
		if (rc)
			return rc;
	}
	return HW_EXIT_DONE;
}

static struct hw_path page_path(const struct hw_args *args, uint64_t limit, const char *after)
{
	struct hw_path path = {0};
	char head[64];
	snprintf(head, sizeof(head), "/v1/devices?limit=%u", limit > 0 && limit < PAGE ? (unsigned)limit : PAGE);
	hw_path_add(&path, head);
	add_filter(&path, "state", args->state);
	add_filter(&path, "group", args->group);
	add_filter(&path, "prefix", args->prefix);
	add_filter(&path, "search", args->search);
	add_filter(&path, "label", args->label);
	/* a reader looks for an id; a program reads all devices */
	add_filter(&path, "sort", args->sort ? args->sort : args->json ? "known" : "id");
	add_filter(&path, "after", after);
	return path;
}

/* Prints to stderr that the list is empty, because a program may read stdout. */
static void print_empty(const struct hw_args *args)
{
	bool filtered = args->state || args->group || args->prefix || args->search || args->label;
	fflush(stdout);
	if (!filtered)
		fputs("no device is known yet: no heartbeat has arrived on the groups' topics\n", stderr);
	else if (args->state && !args->group && !args->prefix && !args->search && !args->label)
		fprintf(stderr, "no device is %s\n", args->state);
	else
		fputs("no device matches\n", stderr);
}

int hw_cmd_list(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct table table = {.shown = args->columns ? LEARNED : USUAL};
	uint64_t left = args->limit;
	char *after = NULL;
	bool any = false;
	int rc = hw_need_group(ctl, args->group);
	if (rc)
		return rc;
	do {
		struct hw_path path = page_path(args, left, after);
		struct hw_answer a;
		free(after);
		after = NULL;
		rc = path.text ? hw_ask(ctl, "GET", path.text, 200, &a) : hw_failed(ctl, "out of memory");
		hw_path_fini(&path);
		if (rc)
			break;
		const cJSON *devices = cJSON_GetObjectItemCaseSensitive(a.json, "devices");
		uint64_t n = (uint64_t)cJSON_GetArraySize(devices);
		rc = list_page(ctl, args, &table, devices);
		any |= n > 0;
		bool enough = args->limit > 0 && n >= left;
		left -= args->limit > 0 && !enough ? n : 0;
		if (rc == 0 && !enough && hw_member_has(a.json, "next")) {
			after = strdup(hw_member_text(a.json, "next"));
			if (!after)
				rc = hw_failed(ctl, "out of memory");
		}
		hw_answer_fini(&a);
	} while (rc == 0 && after && !ferror(stdout));
	free(after);
	if (rc == 0 && !any && !args->json)
		print_empty(args);
	return rc;
}

/* Prints the groups; on a narrow terminal, without timeouts and with shortened names. */
static void print_groups(const struct hw_ctl *ctl, const cJSON *groups)
{
	const cJSON *g;
	size_t name = 5, width, columns = ctl->screen.width;
	bool narrow = columns > 0 && columns < 60;
	size_t rest = narrow ? 24 : 33, most = columns > rest + 12 ? columns - rest : 12;
	cJSON_ArrayForEach(g, groups)
	{
		free(hw_text_clean(&ctl->screen, hw_member_text(g, "name"), 0, &width));
		name = width > name ? width : name;
	}
	name = columns > 0 && name > most ? most : name;
	printf("%-*s  %10s  %10s%s\n", (int)name, "GROUP", "ONLINE", "OFFLINE", narrow ? "" : "  TIMEOUT");
	cJSON_ArrayForEach(g, groups)
	{
		char online[HW_SPAN_MAX], offline[HW_SPAN_MAX], timeout[HW_SPAN_MAX];
		char *text = hw_text_clean(&ctl->screen, hw_member_text(g, "name"), name, &width);
		printf("%s%*s  %10s  %10s", text ? text : "?", (int)(name - width), "",
		       hw_text_count(hw_member_int(g, "online"), online),
		       hw_text_count(hw_member_int(g, "offline"), offline));
		if (!narrow)
			printf("  %7s", hw_text_span(hw_member_int(g, "timeout_ms"), timeout));
		printf("%s\n", cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(g, "retired"))
		                       ? "  (no longer in the configuration)"
		                       : "");
		free(text);
	}
}

int hw_cmd_groups(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_answer a;
	int rc = hw_ask(ctl, "GET", "/v1/groups", 200, &a);
	const cJSON *g;
	if (rc)
		return rc;
	const cJSON *groups = cJSON_GetObjectItemCaseSensitive(a.json, "groups");
	if (args->json)
		rc = hw_print_json(ctl, a.json);
	else if (!args->names)
		print_groups(ctl, groups);
	else
		cJSON_ArrayForEach(g, groups) print_name(ctl, g, "name");
	hw_answer_fini(&a);
	return rc;
}
