/* SPDX-License-Identifier: MIT */
/*
 * A JSON object taken apart without a copy: its members' values are the bytes that stand there, so that what is only
 * passed on stays what it was. Cost: two passes over the bytes, no allocation; no input can make it recurse.
 */
#ifndef HEARTWHEEL_JSON_H
#define HEARTWHEEL_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* Both point into the object; the key is what stands between its quotes, escapes included; the value is one JSON value
 * without white space around it. */
struct hw_json_member {
	const char *key, *value;
	size_t key_len, value_len;
};

/* Whether the bytes are JSON text (RFC 8259) nested at most 1000 deep, in valid UTF-8, and its value an object. */
bool hw_json_object_valid(const char *text, size_t len);
/* The same of an array: then its elements are taken by hw_json_array_next(). */
bool hw_json_array_valid(const char *text, size_t len);
/* The same of any value. */
bool hw_json_valid(const char *text, size_t len);

#define HW_JSON_NUMBER_MAX 63 /* bytes of a number that every reader takes, cJSON among them */

/*
 * The length of the JSON value that the bytes begin with, whatever is behind it, if it is written in the plain way in
 * which nearly all is: without an escape, no number longer than HW_JSON_NUMBER_MAX, nested at most 100 deep. Then a
 * text in it stands for its own bytes, and every reader reads the same. Otherwise 0.
 */
size_t hw_json_plain(const char *text, size_t len);

/* The member at `*at` (0: the first), which moves behind it; false behind the last. Only for what
 * hw_json_object_valid() took, and for objects that stand in it. */
bool hw_json_object_next(const char *text, size_t len, size_t *at, struct hw_json_member *m);

/* The same of an array's elements, which have no key. */
bool hw_json_array_next(const char *text, size_t len, size_t *at, struct hw_json_member *m);

/*
 * Writes the bytes that a JSON string stands for (`len` bytes, its quotes included, which are valid) to `buf`, which
 * has room for as many. Returns their number, or -EINVAL: half of a surrogate pair.
 */
int hw_json_unquote(const char *text, size_t len, char *buf);

#endif
