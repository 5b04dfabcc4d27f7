/* SPDX-License-Identifier: MIT */
/*
 * How names, numbers and times read to people, and a list of lines that stays short: what messages about devices
 * (digest.c) and others have in common.
 */
#ifndef HW_NOTIFY_WORDS_H
#define HW_NOTIFY_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define HW_NOTIFIER_LINES 20   /* things that {list} names one by one */
#define HW_NOTIFIER_BYTES 1500 /* of them at most: Discord refuses a message of more than 2000 characters */

struct evbuffer;

/* `text` as it is shown: what cannot be seen, or makes text look like other text, stands escaped; as much as there is
 * room for, six times its length and one at most. Its length. */
size_t hw_words_show(const char *text, size_t len, char *out, size_t cap);
/* The whole of it, on the heap; NULL without memory. */
char *hw_words_shown(const char *text);
/* 2000000 is "2,000,000". */
const char *hw_words_number(uint64_t n, char buf[32]);
/* 90000 is "1 min 30 s"; below ten seconds with a decimal, if there is one. */
const char *hw_words_span(int64_t ms, char buf[48]);
/* By strftime(), in local time. */
void hw_words_clock(int64_t wall_ms, const char *format, char *buf, size_t cap);
/* As {time} has it, on the heap; NULL without memory. */
char *hw_words_time(int64_t wall_ms);

struct hw_lines {
	struct evbuffer *text; /* owned */
	unsigned n;
	uint64_t left_out;
};

/* 0 or -ENOMEM. */
int hw_lines_init(struct hw_lines *l);
/* Zeroed storage may be given. */
void hw_lines_fini(struct hw_lines *l);
/* Puts a line with its time, or counts it as left out. */
void hw_lines_add(struct hw_lines *l, int64_t wall_ms, const char *what);
/* The list without its last line's end, on the heap, and begins anew; NULL without memory. */
char *hw_lines_take(struct hw_lines *l);

#endif
