/* SPDX-License-Identifier: MIT */
/*
 * A JSON value that came in a payload, and its members. There are two ways to read it, which say the same of every
 * text: where it stands, without a copy, if it is written in the plain way that devices write (hw_json_plain()); and
 * all else by cJSON. Nobody but these functions need know which it was. Private to the core.
 *
 * Cost: two passes over the bytes of a plain one, no allocation; a pass, and an allocation or two per member,
 * otherwise.
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

/* Points into the object that it is a member of, and lives as long. */
struct hw_value {
	enum hw_value_kind kind;
	const char *text; /* of a text: its bytes, valid UTF-8 without a NUL among them; of others as it is written, if
	                     `tree` is not set */
	size_t len;
	double number; /* infinite if no double holds it */
	const struct cJSON *tree;
};

struct hw_member {
	const char *name;
	size_t len;
	struct hw_value value;
};

#define HW_OBJECT_PLAIN 24 /* members of an object that is read where it stands */

struct hw_object {
	struct hw_value root; /* nested: it is an object */
	struct cJSON *tree;   /* owned; NULL: it is read where it stands */
	size_t n;             /* of it then */
	struct hw_member members[HW_OBJECT_PLAIN];
};

/* A walk over members; it begins all zero. */
struct hw_walk {
	struct hw_member at;
	size_t next;
	const struct cJSON *tree;
};

/*
 * Reads `len` > 0 bytes that begin with '{' or '"': an object, or a text. They have to outlive it. Returns 0, and then
 * hw_object_close() is owed; -EINVAL: it is no JSON, or has white space before it, something else behind it, invalid
 * UTF-8, a raw control character in a text, a \u0000 (C has no place for it), or a thousand brackets in one another;
 * or -ENOMEM.
 */
int hw_object_open(struct hw_object *o, const char *text, size_t len);

/* The same by cJSON, whatever it is: for those who compare. */
int hw_object_open_tree(struct hw_object *o, const char *text, size_t len);
void hw_object_close(struct hw_object *o);

/* Goes on to the next member; false behind the last, and of a text. */
bool hw_object_next(const struct hw_object *o, struct hw_walk *w);

/* The value at a path of names parted by dots; of several members with one name the first counts. */
struct hw_value hw_object_at(const struct hw_object *o, const char *path);

/* Writes a value as compact JSON, with a NUL. Returns its length; -E2BIG: it is longer than `cap` - 1; -ERANGE: it
 * holds a number that no double does, 1e999; or -ENOMEM. */
int hw_value_print(const struct hw_value *v, char *buf, size_t cap);

#endif
