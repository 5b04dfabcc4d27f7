/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON: into a buffer of the caller, into memory that grows, or through `more` into another sink (http/json.h
 * has that of an evbuffer). All JSON that heartwheel composes is written here. The writer adds the commas and escapes
 * the texts. If memory or room was lacking, the end function returns an error, and the text must not be used.
 */
#ifndef HEARTWHEEL_JSON_WRITER_H
#define HEARTWHEEL_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_report;

struct hw_json {
	char *buf;
	size_t cap, n;                   /* bytes in buf */
	size_t lost;                     /* bytes that were not written */
	bool fresh;                      /* the next element is the first of its object or array */
	bool replaced;                   /* a byte outside a valid character became U+FFFD */
	bool (*more)(struct hw_json *j); /* makes room in buf; false: there is none. NULL: buf cannot grow */
	void *out;                       /* of `more` */
	char room[4096];
};

/* --- where to ------------------------------------------------------------------------------------------------------
 */

/* Begins a text in `buf`, which has room for `cap` bytes, at least 1, with the NUL. */
void hw_json_begin_text(struct hw_json *j, char *buf, size_t cap);
/* Returns the length of the text, without its NUL; -1: it does not fit. The writer may still be used. */
int hw_json_end_text(struct hw_json *j);

/* Begins a text in memory that grows. Each such text must be ended with hw_json_end_alloc(). */
void hw_json_begin_alloc(struct hw_json *j);
/* Returns the text, with a NUL, for free(); NULL if there is no memory. `len` may be NULL. */
char *hw_json_end_alloc(struct hw_json *j, size_t *len);

/* --- what ----------------------------------------------------------------------------------------------------------
 */

/* '{' or '[', and its end. */
void hw_json_open(struct hw_json *j, char bracket);
void hw_json_close(struct hw_json *j, char bracket);

/* Writes an element of an array: a number, or a text. */
void hw_json_element(struct hw_json *j, uint64_t v);
void hw_json_item(struct hw_json *j, const char *word);
void hw_json_item_bytes(struct hw_json *j, const char *text, size_t len);

/* Writes a key. The next call writes its value. */
void hw_json_key(struct hw_json *j, const char *key);

/* These functions write a key, which must need no escaping, and a value. `text` NULL: null. */
void hw_json_text(struct hw_json *j, const char *key, const char *text);
void hw_json_bytes(struct hw_json *j, const char *key, const char *text, size_t len);
void hw_json_int(struct hw_json *j, const char *key, int64_t v);
void hw_json_uint(struct hw_json *j, const char *key, uint64_t v);
/* Writes the shortest text that gives the same number. NaN and infinity become null. */
void hw_json_number(struct hw_json *j, const char *key, double v);
/* Writes a time or a length of time in seconds, with three decimals. */
void hw_json_seconds(struct hw_json *j, const char *key, int64_t ms);
void hw_json_bool(struct hw_json *j, const char *key, bool v);
void hw_json_null(struct hw_json *j, const char *key);
/* `text` is already JSON. */
void hw_json_raw(struct hw_json *j, const char *key, const char *text, size_t len);
/* Writes the members of `object`, a JSON object without white space. */
void hw_json_members(struct hw_json *j, const char *object, size_t len);
/* A key, and the '{' or '[' of its value. */
void hw_json_open_member(struct hw_json *j, const char *key, char bracket);
/* Like hw_json_text(), for a name that may need escaping. */
void hw_json_named_text(struct hw_json *j, const char *name, const char *text);
/* Writes the fields that the report has. */
void hw_json_report(struct hw_json *j, const struct hw_report *r);

/* Writes `text` (`len` bytes, usually UTF-8) as a JSON string with quotes. Each byte outside a valid character becomes
 * U+FFFD. Returns the length needed and ends its output with a NUL, as snprintf does. */
size_t hw_json_quote(const char *text, size_t len, char *buf, size_t cap);

#endif
