/* SPDX-License-Identifier: MIT */
/*
 * A JSON value of a payload, and its members. There are two parsers, which give the same result for every text. A plain
 * text, as devices write it (hw_json_plain()), is read in place without a copy. cJSON parses every other text. Callers
 * do not see which one was used. Private to the core.
 *
 * Cost: two passes and no allocation for a plain text; otherwise one pass, and one or two allocations for each member.
 */
#ifndef HW_CORE_OBJECT_H
#define HW_CORE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

enum hw_value_kind {
	HW_VALUE_ABSENT,
	HW_VALUE_NULL,
	HW_VALUE_FALSE,
	HW_VALUE_TRUE,
	HW_VALUE_NUMBER,
	HW_VALUE_TEXT,
	HW_VALUE_NESTED /* an object or an array */
};

struct cJSON;

/* A value. It points into its object, and is valid as long as the object. */
struct hw_value {
	enum hw_value_kind kind;
	const char *text; /* kind TEXT: its bytes, valid UTF-8 without NUL; other kinds: the source text, if `tree` is
	                     NULL */
	size_t len;
	double number; /* infinite if too large for a double */
	const struct cJSON *tree;
};

struct hw_member {
	const char *name;
	size_t len;
	struct hw_value value;
};

#define HW_OBJECT_PLAIN 24 /* most members of an object that is read in place */

struct hw_object {
	struct hw_value root; /* kind NESTED: the text is an object */
	struct cJSON *tree;   /* owned; NULL: read in place */
	size_t n;             /* members, if read in place */
	struct hw_member members[HW_OBJECT_PLAIN];
};

/* An iteration over members. All zero at the start. */
struct hw_walk {
	struct hw_member at;
	size_t next;
	const struct cJSON *tree;
};

/*
 * Parses `len` > 0 bytes that begin with '{' or '"': an object or a text. The bytes must outlive the object. Returns 0;
 * the caller then calls hw_object_close().
 *
 * Returns -EINVAL if the bytes are not JSON, or have white space before or other bytes after the value. Invalid UTF-8,
 * a raw control character in a text, and a thousand nested brackets are also -EINVAL. So is \u0000, which a C string
 * cannot hold. Returns -ENOMEM if there is no memory.
 */
int hw_object_open(struct hw_object *o, const char *text, size_t len);

/* Like hw_object_open(), but always with cJSON; tests compare both. */
int hw_object_open_tree(struct hw_object *o, const char *text, size_t len);
void hw_object_close(struct hw_object *o);

/* Moves to the next member. Returns false after the last member. Also returns false if the value is a text, which
 * has no members. */
bool hw_object_next(const struct hw_object *o, struct hw_walk *w);

/* Returns the value at a path of names that are separated by dots. Of several members with the same name the first
 * counts. */
struct hw_value hw_object_at(const struct hw_object *o, const char *path);

/* Writes a value as compact JSON, with a NUL. Returns its length. -E2BIG: longer than `cap` - 1; -ERANGE: it contains a
 * number too large for a double, such as 1e999; -ENOMEM: no memory. */
int hw_value_print(const struct hw_value *v, char *buf, size_t cap);

#endif
