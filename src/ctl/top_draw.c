/* SPDX-License-Identifier: MIT */
/* See top_draw.h, and top_view.h for hw_top_view_begin() and hw_top_view_end(). */
#include "ctl/top_draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GREEN = 1, RED, YELLOW };

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

attr_t hw_top_paint(const struct hw_top_view *f, enum hw_paint p)
{
	static const attr_t plain[] = {A_NORMAL, A_NORMAL, A_BOLD, A_BOLD, A_NORMAL, A_BOLD};
	static const short pairs[] = {0, GREEN, RED, YELLOW, 0, 0};
	if (p == HW_DIM)
		return f->screen.colour ? A_DIM : A_NORMAL;
	return f->screen.colour ? (attr_t)COLOR_PAIR(pairs[p]) | (p == HW_STRONG ? A_BOLD : 0) : plain[p];
}

int hw_top_put(const struct hw_top_view *f, int y, int x, int width, attr_t attributes, const char *text)
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

int hw_top_putf(const struct hw_top_view *f, int y, int x, int width, attr_t attributes, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return hw_top_put(f, y, x, width, attributes, text);
}

void hw_top_fill(int y, int x, int width, attr_t attributes)
{
	attrset((int)attributes);
	mvhline(y, x, (chtype)' ' | attributes, width);
	attrset(A_NORMAL);
}

int hw_top_put_whole(const struct hw_top_view *f, int y, int x, attr_t attributes, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n && x + (int)strlen(texts[i]) <= COLS; i++)
		x += hw_top_put(f, y, x, COLS - x, attributes, texts[i]) + HW_TOP_GAP;
	return x;
}

void hw_top_heading(const struct hw_top_view *f, struct hw_top_box b, const char *title, const char *remark)
{
	int taken = hw_top_put(f, b.y, b.x, b.w, A_BOLD | A_UNDERLINE, title);
	int room = b.w - taken - HW_TOP_GAP, width = (int)strlen(remark);
	if (width > 0 && width <= room)
		hw_top_put(f, b.y, b.x + b.w - width, width, hw_top_paint(f, HW_DIM), remark);
}
