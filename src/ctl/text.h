/* SPDX-License-Identifier: MIT */
/* Readable text. Text from a device or broker is untrusted: a terminal would execute its control characters. */
#ifndef HW_CTL_TEXT_H
#define HW_CTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The texts below fit into this. */
#define HW_SPAN_MAX 32

/* The properties of stdout. */
struct hw_screen {
	bool terminal;
	bool ascii;   /* the locale has no UTF-8, so terminals and pipes get ASCII only */
	bool colour;  /* a terminal, and NO_COLOR is not set */
	size_t width; /* columns; 0: unlimited */
};
void hw_screen_init(struct hw_screen *s);
/* Whether stdout is a terminal with fewer columns. */
bool hw_screen_narrower(const struct hw_screen *s, size_t columns);

/*
 * Returns a copy of `text` that is safe to show: control characters, invalid UTF-8 and direction marks become escapes
 * like `\x1b` and `\u202e`. A text of more than `max` columns (0: no limit) gets an ellipsis in its middle. *width (may
 * be NULL) receives its columns. NULL if there is no memory. The caller frees it.
 */
char *hw_text_clean(const struct hw_screen *s, const char *text, size_t max, size_t *width);

/* Decodes the escapes of hw_text_clean() in place. Returns false, with `text` unchanged, if there is none or an invalid
 * one. */
bool hw_text_unescape(char *text);

/* Returns the edit distance of two words: how many letters to change, delete, insert, or swap with a neighbour. */
unsigned hw_text_distance(const char *a, const char *b);
/* Whether `word` may be a typo of `name`: a prefix, or a small edit distance. */
bool hw_text_may_mean(const char *word, const char *name);

/* Prints hw_text_clean(). All text from a server is printed by this function or one below. */
void hw_text_print(FILE *f, const struct hw_screen *s, const char *text);
/* Prints hw_text_clean() in a column of stdout, padded to `width` columns. Returns the columns used. */
int hw_text_column(const struct hw_screen *s, int width, const char *text);
/* Prints a line that consists of a name. In a pipe the name is unchanged, so that a program can use it. Names
 * contain no line feeds. */
void hw_text_print_name(const struct hw_screen *s, const char *name);
/* Prints the last text of a line with `used` columns. On a terminal it is shortened to fit, unless almost nothing would
 * be left. */
void hw_text_print_rest(FILE *f, const struct hw_screen *s, size_t used, const char *text);

/* Prints JSON text. Characters that are unsafe on this screen become \uXXXX escapes. `s` NULL: for a program, which
 * accepts UTF-8. */
void hw_text_print_json(FILE *f, const struct hw_screen *s, const char *json);

/* Returns the escape sequence for the colour of the text that follows; "" if colours are off. */
enum hw_paint { HW_PLAIN, HW_GOOD, HW_BAD, HW_WARN, HW_DIM, HW_STRONG };
const char *hw_paint(const struct hw_screen *s, enum hw_paint p);
/* The colour of a device's state. */
enum hw_paint hw_state_paint(const char *state);

/* Writes a number with commas: 1234567 as "1,234,567". Returns `buf` of HW_SPAN_MAX bytes. */
char *hw_text_count(int64_t n, char *buf);

/* Writes a time span in its two largest units: "350ms", "13s", "2m13s", "3h", "5d3h". Returns `buf` of HW_SPAN_MAX
 * bytes. */
char *hw_text_span(int64_t ms, char *buf);
/* "2m13s ago"; "now" below a second, or in the future. */
char *hw_text_ago(int64_t ms, char *buf);
/* Local date and time, with seconds. */
char *hw_text_clock(int64_t wall_ms, char *buf);
/* Writes the local time zone at that time: "UTC", "CEST". */
char *hw_text_zone(int64_t wall_ms, char *buf);
/* Local time without the date. */
char *hw_text_time(int64_t wall_ms, char *buf);
/* Writes local date and time without year and seconds, 11 columns: for a narrow terminal. */
char *hw_text_minute(int64_t wall_ms, char *buf);

/* The wall clock. */
int64_t hw_wall_ms(void);

#endif
