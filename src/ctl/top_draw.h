/* SPDX-License-Identifier: MIT */
/* Writes texts on the terminal for heartwheelctl top. Private to top_view.c, top_list.c and top_draw.c. */
#ifndef HW_CTL_TOP_DRAW_H
#define HW_CTL_TOP_DRAW_H

#include <ncurses.h>

#include "ctl/top_view.h"

#define HW_TOP_GAP 2 /* columns between two texts */

/* A part of the screen; not shown if its height or width is 0. */
struct hw_top_box {
	int y, x, h, w;
};

/* Returns the attributes that show `p`: a colour, or bold text if the terminal has no colours. */
attr_t hw_top_paint(const struct hw_top_view *f, enum hw_paint p);
/* Writes text in at most `width` columns. Returns the columns used. */
int hw_top_put(const struct hw_top_view *f, int y, int x, int width, attr_t attributes, const char *text);
__attribute__((format(printf, 6, 7))) int hw_top_putf(const struct hw_top_view *f, int y, int x, int width,
                                                      attr_t attributes, const char *format, ...);
/* Fills a line with one colour. */
void hw_top_fill(int y, int x, int width, attr_t attributes);
/* Writes each text that fits completely. Returns the next column. */
int hw_top_put_whole(const struct hw_top_view *f, int y, int x, attr_t attributes, const char *const *texts, size_t n);
/* Writes the first line of a part: its title, and a remark on the right. */
void hw_top_heading(const struct hw_top_view *f, struct hw_top_box b, const char *title, const char *remark);

/* Draws the list of devices (in top_list.c). Sets f->page, and sets f->at to the row in which the chosen device is
 * now. */
void hw_top_draw_list(struct hw_top_view *f, const struct hw_board *b, struct hw_top_box at);

#endif
