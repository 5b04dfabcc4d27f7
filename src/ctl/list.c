/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl list. Pages go by one at a time, so a million devices need no more memory than a thousand. A column is
 * as wide as the first page needs it; a later page may widen it. On a terminal ids and groups give way until a line
 * fits.
 */
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

enum { COL_ID, COL_STATE, COL_SINCE, COL_SEEN, COL_TIMEOUT, COL_REASON, COL_GROUP, COLS };
#define GAP 2

static const char *const titles[COLS] = {"ID", "STATE", "SINCE", "LAST-SEEN", "TIMEOUT", "REASON", "GROUP"};

struct table {
	size_t width[COLS];
	bool begun;
};

struct row {
	char *cell[COLS]; /* owned */
};

static char *make_cell(const struct hw_screen *s, const cJSON *device, int column, int64_t now_ms)
{
	static const char *const keys[COLS] = {"id",         "state",  "since_ms", "last_seen_ms",
	                                       "timeout_ms", "reason", "group"};
	char span[HW_SPAN_MAX];
	const char *key = keys[column];

	if (column == COL_SEEN && hw_member_int(device, key) == 0)
		return strdup("never");
	if (column == COL_SINCE || column == COL_SEEN)
		return strdup(hw_text_ago(now_ms - hw_member_int(device, key), span));
	if (column == COL_TIMEOUT)
		return strdup(hw_text_span(hw_member_int(device, key), span));
	return hw_text_clean(s, hw_member_text(device, key), 0, NULL);
}

/* Columns that a text which is clean already takes. */
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

static void fit(struct table *t, const struct hw_screen *s, const struct row *rows, size_t n)
{
	size_t line = GAP * (COLS - 1);

	for (int c = 0; c < COLS; c++) {
		size_t least = strlen(titles[c]);
		if (t->width[c] < least)
			t->width[c] = least;
		for (size_t i = 0; i < n; i++) {
			size_t width = columns_of(s, rows[i].cell[c]);
			if (t->width[c] < width)
				t->width[c] = width;
		}
		line += t->width[c];
	}
	if (s->width == 0 || line <= s->width)
		return;
	size_t excess = line - s->width;
	shrink(&t->width[COL_GROUP], 12, &excess);
	shrink(&t->width[COL_ID], 12, &excess);
	shrink(&t->width[COL_GROUP], 5, &excess);
	shrink(&t->width[COL_ID], 5, &excess);
}

static void print_line(const struct table *t, const struct hw_screen *s, const char *const *cells)
{
	for (int c = 0; c < COLS; c++) {
		size_t width;
		char *text = hw_text_clean(s, cells[c], s->terminal ? t->width[c] : 0, &width);
		fputs(text ? text : "?", stdout);
		if (c < COLS - 1)
			printf("%*s", (int)((width < t->width[c] ? t->width[c] - width : 0) + GAP), "");
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
	if (whole) {
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

static int list_page(struct hw_ctl *ctl, const struct hw_args *args, struct table *t, const cJSON *devices)
{
	const cJSON *device;

	if (!cJSON_IsArray(devices))
		return hw_failed(ctl, "heartwheeld's answer has no list of devices");
	if (!args->json)
		return print_page(ctl, t, devices);
	cJSON_ArrayForEach(device, devices)
	{
		int rc = hw_print_json(ctl, device);
		if (rc)
			return rc;
	}
	return HW_EXIT_DONE;
}

int hw_cmd_list(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct table table = {0};
	char *after = NULL;
	int rc;

	do {
		struct hw_path path = {0};
		struct hw_answer a;
		hw_path_add(&path, "/v1/devices?limit=1000");
		add_filter(&path, "state", args->state);
		add_filter(&path, "group", args->group);
		add_filter(&path, "prefix", args->prefix);
		add_filter(&path, "after", after);
		free(after);
		after = NULL;
		rc = path.text ? hw_ask(ctl, "GET", path.text, 200, &a) : hw_failed(ctl, "out of memory");
		hw_path_fini(&path);
		if (rc)
			break;
		rc = list_page(ctl, args, &table, cJSON_GetObjectItemCaseSensitive(a.json, "devices"));
		if (rc == 0 && hw_member_has(a.json, "next")) {
			after = strdup(hw_member_text(a.json, "next"));
			if (!after)
				rc = hw_failed(ctl, "out of memory");
		}
		hw_answer_fini(&a);
	} while (rc == 0 && after && !ferror(stdout));
	free(after);
	return rc;
}
