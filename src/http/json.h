/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON into an evbuffer through a small buffer, so that an answer with a thousand devices needs few allocations.
 * The writer adds the commas. If an allocation fails, the writer remembers that: hw_json_end() then returns -ENOMEM,
 * and the text must not be sent.
 */
#ifndef HW_HTTP_JSON_H
#define HW_HTTP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;
struct hw_report;

struct hw_json {
	struct evbuffer *out; /* borrowed */
	size_t n;             /* bytes in buf that are not in `out` yet */
	bool failed;
	bool fresh; /* the next element is the first of its object or array */
	char buf[4096];
};

/* Begins to append to `out`. */
void hw_json_begin(struct hw_json *j, struct evbuffer *out);
/* Like hw_json_begin(), but the caller appends elements of an array, without its brackets. hw_json_array() later
 * writes the array. */
void hw_json_append(struct hw_json *j, struct evbuffer *elements);
/* Writes all to the evbuffer; the writer may still be used. Returns 0, or -ENOMEM if anything was lost since
 * hw_json_begin(). */
int hw_json_end(struct hw_json *j);

/* '{' or '[', and its end. */
void hw_json_open(struct hw_json *j, char bracket);
void hw_json_close(struct hw_json *j, char bracket);

/* Writes an element of an array: a number, or a short text. */
void hw_json_element(struct hw_json *j, uint64_t v);
void hw_json_item(struct hw_json *j, const char *word);
void hw_json_item_bytes(struct hw_json *j, const char *text, size_t len);

/* Writes a key, which needs no escaping. The next call writes its value. */
void hw_json_key(struct hw_json *j, const char *key);

/* Write a key and a value. `text` NULL: null. */
void hw_json_text(struct hw_json *j, const char *key, const char *text);
void hw_json_bytes(struct hw_json *j, const char *key, const char *text, size_t len);
void hw_json_int(struct hw_json *j, const char *key, int64_t v);
void hw_json_uint(struct hw_json *j, const char *key, uint64_t v);
/* Writes the shortest text that gives the same number. NaN and infinity become null. */
void hw_json_number(struct hw_json *j, const char *key, double v);
void hw_json_bool(struct hw_json *j, const char *key, bool v);
void hw_json_null(struct hw_json *j, const char *key);
/* `text` is already JSON. */
void hw_json_raw(struct hw_json *j, const char *key, const char *text, size_t len);
/* A key, and the '{' or '[' of its value. */
void hw_json_open_member(struct hw_json *j, const char *key, char bracket);
/* Writes an array, and takes its elements out of the evbuffer. NULL: an empty array. */
void hw_json_array(struct hw_json *j, const char *key, struct evbuffer *elements);
/* Writes the fields that the report has. */
void hw_json_report(struct hw_json *j, const struct hw_report *r);

#endif
