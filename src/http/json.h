/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON straight into an evbuffer, through a small buffer of its own, so that a reply of a thousand devices is no
 * thousand allocations. Commas are put where they belong. A lack of memory is remembered: hw_json_end() tells, and what
 * was written meanwhile is not to be sent.
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
	size_t n;             /* bytes waiting in buf */
	bool failed;
	bool fresh; /* the next element is the first of its object or array */
	char buf[4096];
};

/* Starts to append to `out`. */
void hw_json_begin(struct hw_json *j, struct evbuffer *out);
/* Hands all that waits over to the evbuffer; the writer may be used on. 0, or -ENOMEM if anything was lost since
 * hw_json_begin(). */
int hw_json_end(struct hw_json *j);

/* '{' or '[', and its end. */
void hw_json_open(struct hw_json *j, char bracket);
void hw_json_close(struct hw_json *j, char bracket);

/* An element of an array: a number, or a word of a few letters. */
void hw_json_element(struct hw_json *j, uint64_t v);
void hw_json_item(struct hw_json *j, const char *word);

/* A member of an object: its key, which needs no escaping; the value is the next thing written. */
void hw_json_key(struct hw_json *j, const char *key);

/* Members with their values. `text` NULL: null. */
void hw_json_text(struct hw_json *j, const char *key, const char *text);
void hw_json_bytes(struct hw_json *j, const char *key, const char *text, size_t len);
void hw_json_int(struct hw_json *j, const char *key, int64_t v);
void hw_json_uint(struct hw_json *j, const char *key, uint64_t v);
/* With as many digits as it takes. Not a number: null. */
void hw_json_number(struct hw_json *j, const char *key, double v);
void hw_json_bool(struct hw_json *j, const char *key, bool v);
void hw_json_null(struct hw_json *j, const char *key);
/* A value that is JSON text already. */
void hw_json_raw(struct hw_json *j, const char *key, const char *text, size_t len);
/* The fields that a report has. */
void hw_json_report(struct hw_json *j, const struct hw_report *r);

#endif
