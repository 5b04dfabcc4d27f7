/* SPDX-License-Identifier: MIT */
/*
 * What heartwheelctl top shows: the board on the whole of a terminal, by ncurses. Whatever is said by a colour is also
 * said by a word; what is narrow goes without what matters less.
 */
#ifndef HW_CTL_TOP_VIEW_H
#define HW_CTL_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/board.h"
#include "ctl/text.h"

/* What the person at the terminal is at. */
struct hw_top_view {
	struct hw_screen screen;
	char chosen[256]; /* id of the row that is chosen; "": the first one, whatever it is */
	size_t at;        /* where it is, or was */
	size_t top;       /* the first row that is shown */
	size_t page;      /* rows of the list that there is room for */
	bool typing;      /* the search is being typed */
	bool open;        /* one device, `chosen`, is shown in the place of the list */
	bool gone;        /* that device is not known any more */
	int64_t lost_ms;  /* for how long the daemon has not answered; 0: it does */
	bool feed_lost;   /* no events come */
};

/* Begins to draw on the terminal. False: it is of a kind that nobody knows. */
bool hw_top_view_begin(struct hw_top_view *f);
void hw_top_view_end(void);

void hw_top_view_draw(struct hw_top_view *f, const struct hw_board *b);

/* Moves the choice by that many rows; what is too far is the end. */
void hw_top_view_move(struct hw_top_view *f, const struct hw_board *b, long by);
/* The first row again. */
void hw_top_view_home(struct hw_top_view *f);

#endif
