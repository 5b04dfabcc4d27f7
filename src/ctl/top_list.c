/* SPDX-License-Identifier: MIT */
/* The list of devices in heartwheelctl top: its columns, and which device is chosen. See top_view.h and top_draw.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/top_draw.h"
#include "heartwheel/print.h"

#define ID_LEAST 24

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
		line += widths[c] ? widths[c] + HW_TOP_GAP : 0;
	int lacks = id_need(f, b) - ID_LEAST;
	for (size_t i = 0; line - HW_TOP_GAP + (i == 0 && lacks > 0 ? lacks : 0) > width &&
	                   i < sizeof(least_important) / sizeof(least_important[0]);
	     i++) {
		line -= widths[least_important[i]] + HW_TOP_GAP;
		widths[least_important[i]] = 0;
	}
	widths[COL_ID] += width - line + HW_TOP_GAP;
	if (widths[COL_ID] < 1)
		widths[COL_ID] = 1;
}

/* One line of the list, or its titles. */
static void draw_row(const struct hw_top_view *f, struct hw_top_box at, const int *widths, const cJSON *device,
                     attr_t attributes)
{
	static const char *const titles[N_COLS] = {"ID", "STATE", "SINCE", "REASON", "GROUP", "LAST SEEN"};
	char buf[CELL_MAX];
	int x = at.x;
	if (attributes & A_REVERSE)
		hw_top_fill(at.y, at.x, at.w, attributes);
	for (int c = 0; c < N_COLS; c++) {
		if (!widths[c])
			continue;
		hw_top_put(f, at.y, x, widths[c], attributes, device ? cell(device, c, buf) : titles[c]);
		x += widths[c] + HW_TOP_GAP;
	}
}

/* Keeps the same device chosen when it moves to another row. */
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

void hw_top_draw_list(struct hw_top_view *f, const struct hw_board *b, struct hw_top_box at)
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
	hw_top_heading(f, at, title, remark);
	lay_out(f, b, at.w - 1, widths);
	if (b->n_rows == 0) {
		hw_top_put(f, at.y + 1, at.x + 1, at.w - 1, A_NORMAL, empty_words(b));
		return;
	}
	draw_row(f, (struct hw_top_box){at.y + 1, at.x + 1, 1, at.w - 1}, widths, NULL, hw_top_paint(f, HW_DIM));
	for (size_t i = 0; i < f->page && f->top + i < b->n_rows; i++) {
		const cJSON *device = b->rows[f->top + i].device;
		bool offline = strcmp(hw_member_text(device, "state"), "offline") == 0;
		draw_row(f, (struct hw_top_box){at.y + 2 + (int)i, at.x + 1, 1, at.w - 1}, widths, device,
		         f->top + i == f->at                 ? A_REVERSE
		         : offline && b->view == HW_VIEW_ALL ? hw_top_paint(f, HW_BAD)
		                                             : A_NORMAL);
	}
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
