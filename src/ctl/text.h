/* SPDX-License-Identifier: MIT */
/*
 * Text for people. What a device or a broker said is not to be trusted: a terminal would act on its control characters.
 */
#ifndef HW_CTL_TEXT_H
#define HW_CTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The spans below fit into this. */
#define HW_SPAN_MAX 32

/* How stdout takes text. */
struct hw_screen {
	bool terminal;
	bool ascii;   /* whoever reads does not take UTF-8, as the locale says: of a terminal, and of a pipe */
	bool colour;  /* a terminal that is to be coloured: NO_COLOR is not set */
	size_t width; /* columns; 0: as wide as it takes */
};
void hw_screen_init(struct hw_screen *s);
/* A terminal of fewer columns, where what matters less is left out. */
bool hw_screen_narrower(const struct hw_screen *s, size_t columns);

/*
 * A copy of `text` that is safe to show: control characters, invalid UTF-8 and marks that turn the direction of writing
 * become escapes like `\x1b` and `\u202e`; what takes more than `max` columns (0: no bound) has an ellipsis in its
 * middle. `*width`, unless NULL, is the columns it takes. NULL without memory. Owned by the caller.
 */
char *hw_text_clean(const struct hw_screen *s, const char *text, size_t max, size_t *width);

/*
 * Reads the escapes that hw_text_clean() writes, in place. False, and `text` as it was, if it has none, or one that
 * stands for no character.
 */
bool hw_text_unescape(char *text);

/* How far two words are from one another: letters to change, leave out, put in, or swap with their neighbour. */
unsigned hw_text_distance(const char *a, const char *b);
/* Whether who wrote `word` may have meant `name`: it is a begin of it, or not far from it. */
bool hw_text_may_mean(const char *word, const char *name);

/* Prints hw_text_clean(). Each text that a server sent is printed by this or a function below. */
void hw_text_print(FILE *f, const struct hw_screen *s, const char *text);
/* The same in a column of stdout: spaces follow up to `width` columns. Returns how many columns it took. */
int hw_text_column(const struct hw_screen *s, int width, const char *text);
/* A line with a name alone: into a pipe as it is, for a program; nothing that is a name has a line feed. */
void hw_text_print_name(const struct hw_screen *s, const char *name);
/* The last of a line of which `used` columns stand there: on a terminal shortened until the line fits, unless next to
 * nothing would be left. */
void hw_text_print_rest(FILE *f, const struct hw_screen *s, size_t used, const char *text);

/* Prints JSON text with the same characters as \uXXXX escapes, which JSON allows for. `s`: for people, on that screen;
 * NULL: for a program, which takes UTF-8. */
void hw_text_print_json(FILE *f, const struct hw_screen *s, const char *json);

/* What a terminal is told in order to colour what follows; "" if it is not to be. */
enum hw_paint { HW_PLAIN, HW_GOOD, HW_BAD, HW_WARN, HW_DIM, HW_STRONG };
const char *hw_paint(const struct hw_screen *s, enum hw_paint p);
/* The paint of a device's state. */
enum hw_paint hw_state_paint(const char *state);

/* 1234567 as "1,234,567". `buf` holds HW_SPAN_MAX bytes, and is returned. */
char *hw_text_count(int64_t n, char *buf);

/* "350ms", "13s", "2m13s", "3h", "5d3h": the two largest units. `buf` holds HW_SPAN_MAX bytes, and is returned. */
char *hw_text_span(int64_t ms, char *buf);
/* "2m13s ago"; "now" for less than a second, or the future. */
char *hw_text_ago(int64_t ms, char *buf);
/* Local time, to the second. */
char *hw_text_clock(int64_t wall_ms, char *buf);
/* The time zone of these texts at that moment: "UTC", "CEST". */
char *hw_text_zone(int64_t wall_ms, char *buf);
/* The same without the day. */
char *hw_text_time(int64_t wall_ms, char *buf);
/* The same without year and seconds, 11 columns: for a narrow terminal. */
char *hw_text_minute(int64_t wall_ms, char *buf);

/* The wall clock. */
int64_t hw_wall_ms(void);

#endif
