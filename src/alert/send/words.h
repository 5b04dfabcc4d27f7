/* SPDX-License-Identifier: MIT */
/* Readable names, numbers and times, and a limited list of lines. */
#ifndef HW_ALERT_SEND_WORDS_H
#define HW_ALERT_SEND_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define HW_LINES_MAX 20 /* lines in {list} */
/* The most bytes in these lines, because Discord refuses messages over 2000 characters. */
#define HW_LINES_BYTES 1500

struct evbuffer;

/* Returns the result of hw_utf8_show(), on the heap; NULL if there is no memory. */
char *hw_words_shown(const char *text);
/* Writes a number with commas: 2000000 is "2,000,000". */
const char *hw_words_number(uint64_t n, char buf[32]);
/* Writes a time span: 90000 is "1 min 30 s". Below ten seconds it has a decimal if needed. */
const char *hw_words_span(int64_t ms, char buf[48]);
/* Returns the text of {time}, on the heap; NULL if there is no memory. */
char *hw_words_time(int64_t wall_ms);

struct hw_lines {
	struct evbuffer *text; /* owned */
	unsigned n;
	uint64_t left_out;
};

/* Returns 0 or -ENOMEM. */
int hw_lines_init(struct hw_lines *l);
/* Zeroed storage is allowed. */
void hw_lines_fini(struct hw_lines *l);
/* Adds a line, or counts it as left out. */
void hw_lines_add(struct hw_lines *l, const char *what);
/* Returns the list without its last line end, in heap memory, and empties it; NULL if there is no memory. */
char *hw_lines_take(struct hw_lines *l);

#endif
