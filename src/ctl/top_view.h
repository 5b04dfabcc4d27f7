/* SPDX-License-Identifier: MIT */
/*
 * Draws heartwheelctl top on the whole terminal, with ncurses. Each colour comes with a word of the same meaning. On a
 * narrow terminal, details are omitted.
 */
#ifndef HW_CTL_TOP_VIEW_H
#define HW_CTL_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/board.h"
#include "ctl/text.h"

/* The state of the user interface. */
struct hw_top_view {
	struct hw_screen screen;
	char chosen[256]; /* id of the chosen row; "": the first row */
	size_t at;        /* index of the chosen row */
	size_t top;       /* index of the first visible row */
	size_t page;      /* number of rows that fit */
	bool typing;      /* the search is being typed */
	bool open;        /* the device `chosen` is shown instead of the list */
	bool gone;        /* that device is no longer known */
	int64_t lost_ms;  /* ms since the daemon's last answer; 0: it answers */
	bool feed_lost;   /* the event stream is closed */
};

/* Begins to draw on the terminal. Returns false if its type is unknown, or if its cursor cannot be moved. */
bool hw_top_view_begin(struct hw_top_view *f);
void hw_top_view_end(void);

void hw_top_view_draw(struct hw_top_view *f, const struct hw_board *b);

/* Chooses the device `by` rows below, or above if `by` is negative; at most the last or the first device. */
void hw_top_view_move(struct hw_top_view *f, const struct hw_board *b, long by);
/* Chooses the first row. */
void hw_top_view_home(struct hw_top_view *f);

#endif
