/* SPDX-License-Identifier: MIT */
/* Takes a JSON object apart without a copy. The values of its members are the original bytes, so that a value is passed
 * on unchanged. Cost: two passes over the bytes, no allocation and no recursion, whatever the input. */
#ifndef HEARTWHEEL_JSON_H
#define HEARTWHEEL_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* `key` and `value` point into the object. The key is the text between its quotes, with its escapes. The value is
 * one JSON value, without the white space around it. */
struct hw_json_member {
	const char *key, *value;
	size_t key_len, value_len;
};

/* Whether the bytes are a JSON object (RFC 8259) in valid UTF-8, nested at most 1000 deep. */
bool hw_json_object_valid(const char *text, size_t len);
/* Like hw_json_object_valid(), for an array. Its elements are then read with hw_json_array_next(). */
bool hw_json_array_valid(const char *text, size_t len);
/* Like hw_json_object_valid(), for any value. */
bool hw_json_valid(const char *text, size_t len);

#define HW_JSON_NUMBER_MAX 63 /* longest number, in bytes, that every reader accepts, cJSON among them */

/*
 * Returns the length of the JSON value at the start of the bytes, if the value is plain; otherwise 0. Plain means: no
 * escapes, no number longer than HW_JSON_NUMBER_MAX, and nested at most 100 deep. Then every reader gets the same
 * value, and a string is its own bytes. Bytes after the value are not read.
 */
size_t hw_json_plain(const char *text, size_t len);

/* Reads the member at `*at` (0: the first) and advances `*at`. Returns false after the last member. Only for an object
 * that hw_json_object_valid() accepted, or that is inside such an object. */
bool hw_json_object_next(const char *text, size_t len, size_t *at, struct hw_json_member *m);

/* Like hw_json_object_next(), for the elements of an array, which have no key. */
bool hw_json_array_next(const char *text, size_t len, size_t *at, struct hw_json_member *m);

/* Decodes a JSON string (`len` bytes, valid, with its quotes) into `buf`, which has room for `len` bytes. Returns the
 * number of bytes written, or -EINVAL for half of a surrogate pair. */
int hw_json_unquote(const char *text, size_t len, char *buf);

#endif
