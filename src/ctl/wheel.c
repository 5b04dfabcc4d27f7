/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl wheel: a picture of the four levels of the wheel, and of the wheel of keys if there is one. Each slot
 * is a column; the fullest slot of a level has the full height. The sign below it is the cursor, which moves to the
 * right.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

#define SLOTS      31
#define ROWS       4
#define MARGIN     2
#define CELL_MAX   6
#define PIPE_COLS  80
#define SPAN_MAX_S (INT64_MAX / 1000)

static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* The duration of ticks: "1/31 s", "31s", "16m1s". */
static const char *span_of(int64_t ticks, int64_t per_s, char buf[2 * HW_SPAN_MAX])
{
	if (per_s <= 0)
		return "?";
	if (ticks < per_s)
		snprintf(buf, 2 * HW_SPAN_MAX, "%" PRId64 "/%" PRId64 " s", ticks, per_s);
	else
		hw_text_span(ticks / per_s < SPAN_MAX_S ? ticks / per_s * 1000 : SPAN_MAX_S * 1000, buf);
	return buf;
}

/* Prints the cell of a slot in a row, in eighths. */
static void print_cell(const struct hw_screen *s, int64_t load, int64_t most, int row, size_t cell)
{
	int64_t full = most > 0 ? (load * ROWS * 8 + most - 1) / most : 0; /* round up: one entry shows */
	int64_t here = full - (int64_t)row * 8;
	size_t bar = cell > 2 ? cell - 1 : cell;
	const char *c = here <= 0  ? " "
	                : s->ascii ? here >= 4  ? "#"
	                             : row == 0 ? "."
	                                        : " "
	                           : eighths[here < 8 ? here : 8];
	for (size_t i = 0; i < cell; i++)
		fputs(i < bar ? c : " ", stdout);
}

static void print_bars(const struct hw_screen *s, const cJSON *slots, int64_t most, size_t cell)
{
	const cJSON *slot;
	for (int row = ROWS - 1; row >= 0; row--) {
		/* Empty levels have one row. */
		if (most == 0 && row > 0)
			continue;
		printf("%*s%s", MARGIN, "", hw_paint(s, HW_GOOD));
		cJSON_ArrayForEach(slot, slots) print_cell(s, hw_number_int(slot, 1), most, row, cell);
		printf("%s\n", hw_paint(s, HW_PLAIN));
	}
}

static void print_cursor(const struct hw_screen *s, int64_t cursor, size_t cell)
{
	size_t bar = cell > 2 ? cell - 1 : cell;
	printf("%*s%s", MARGIN, "", hw_paint(s, HW_DIM));
	for (int64_t i = 0; i < SLOTS; i++) {
		if (i == cursor)
			printf("%s%s", hw_paint(s, HW_PLAIN), hw_paint(s, HW_WARN));
		for (size_t k = 0; k < cell; k++) {
			const char *rule = s->ascii ? "-" : "─", *mark = s->ascii ? "^" : "▲";
			fputs(k >= bar ? " " : i == cursor ? mark : rule, stdout);
		}
		if (i == cursor)
			printf("%s%s", hw_paint(s, HW_PLAIN), hw_paint(s, HW_DIM));
	}
	printf("%s\n", hw_paint(s, HW_PLAIN));
}

static void print_level(const struct hw_screen *s, const cJSON *level, int64_t per_s, size_t cell)
{
	const cJSON *slots = cJSON_GetObjectItemCaseSensitive(level, "slots"), *slot;
	char a[HW_SPAN_MAX], b[2 * HW_SPAN_MAX], c[2 * HW_SPAN_MAX], d[HW_SPAN_MAX];
	int64_t ticks = hw_member_int(level, "slot_ticks"), most = 0;
	cJSON_ArrayForEach(slot, slots) most = hw_number_int(slot, 1) > most ? hw_number_int(slot, 1) : most;
	printf("%slevel %" PRId64 "%s  %s in 31 slots of %s, one round is %s", hw_paint(s, HW_STRONG),
	       hw_member_int(level, "level"), hw_paint(s, HW_PLAIN), hw_text_count(hw_member_int(level, "length"), a),
	       span_of(ticks, per_s, b), span_of(ticks * SLOTS, per_s, c));
	if (most > 0)
		printf("; at most %s in one", hw_text_count(most, d));
	fputc('\n', stdout);
	print_bars(s, slots, most, cell);
	print_cursor(s, hw_member_int(level, "cursor"), cell);
}

static void print_levels(const struct hw_ctl *ctl, const cJSON *wheel, int64_t per_s)
{
	size_t columns = ctl->screen.width ? ctl->screen.width : PIPE_COLS;
	size_t cell = columns > MARGIN + SLOTS ? (columns - MARGIN) / SLOTS : 1;
	const cJSON *level;
	cell = cell < CELL_MAX ? cell : CELL_MAX;
	cJSON_ArrayForEach(level, cJSON_GetObjectItemCaseSensitive(wheel, "levels"))
		print_level(&ctl->screen, level, per_s, cell);
}

static void print_wheel(const struct hw_ctl *ctl, const cJSON *wheel)
{
	int64_t suspects = hw_member_int(wheel, "suspects"), per_s = hw_member_int(wheel, "ticks_per_s");
	const cJSON *keys = cJSON_GetObjectItemCaseSensitive(wheel, "keys");
	char count[HW_SPAN_MAX];
	print_levels(ctl, wheel, per_s);
	printf("%s in the wheel", hw_text_count(hw_member_int(wheel, "length"), count));
	if (suspects > 0)
		printf(", %s outside it, waiting for the verdict", hw_text_count(suspects, count));
	fputc('\n', stdout);
	if (!keys)
		return;
	fputc('\n', stdout);
	print_levels(ctl, keys, per_s);
	printf("%s in the wheel of keys\n", hw_text_count(hw_member_int(keys, "length"), count));
}

int hw_cmd_wheel(struct hw_ctl *ctl, const struct hw_args *args)
{
	return hw_ask_and_show(ctl, "/v1/wheel", args->json, print_wheel);
}
