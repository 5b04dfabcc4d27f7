/* SPDX-License-Identifier: MIT */
/* Whether an object says the same where it stands as cJSON makes of it: for random text and for the fuzzer. */
#ifndef HW_TESTS_TWIN_OBJECT_H
#define HW_TESTS_TWIN_OBJECT_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/object.h"

static inline bool same_print(const struct hw_value *a, const struct hw_value *b)
{
	static char one[1 << 17], other[1 << 17];
	int n = hw_value_print(a, one, sizeof(one)), m = hw_value_print(b, other, sizeof(other));
	return n == m && (n < 0 || memcmp(one, other, (size_t)n + 1) == 0);
}

static inline bool same_value(const struct hw_value *a, const struct hw_value *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == HW_VALUE_TEXT && (a->len != b->len || memcmp(a->text, b->text, a->len) != 0))
		return false;
	if (a->kind == HW_VALUE_NUMBER && (a->number != b->number || !signbit(a->number) != !signbit(b->number)))
		return false;
	return a->kind == HW_VALUE_ABSENT || same_print(a, b);
}

static inline const char *same_members(const struct hw_object *a, const struct hw_object *b)
{
	static const char *const paths[] = {"a",    "a.b",    "a.b.c",       "b.a",
	                                    "time", "data.a", "data.rssi.a", "x y.\xc3\xa9"};
	struct hw_walk one = {.next = 0}, other = {.next = 0};
	for (;;) {
		bool more = hw_object_next(a, &one);
		if (more != hw_object_next(b, &other))
			return "another number of members";
		if (!more)
			break;
		if (one.at.len != other.at.len || memcmp(one.at.name, other.at.name, one.at.len) != 0)
			return "another name";
		if (!same_value(&one.at.value, &other.at.value))
			return "another value";
	}
	for (size_t k = 0; k < sizeof(paths) / sizeof(paths[0]); k++) {
		struct hw_value v = hw_object_at(a, paths[k]), w = hw_object_at(b, paths[k]);
		if (!same_value(&v, &w))
			return "another value at a path";
	}
	return NULL;
}

/* NULL, or what differs. `len` > 0 bytes that begin with '{' or '"'; `*plain`: it was read where it stands. */
static inline const char *object_differs(const char *text, size_t len, bool *plain)
{
	struct hw_object here, tree;
	const char *why = NULL;
	int rc = hw_object_open(&here, text, len), tree_rc = hw_object_open_tree(&tree, text, len);
	*plain = !rc && !here.tree;
	if (rc != tree_rc)
		why = rc ? "refused" : "accepted";
	else if (!rc && !(*text == '{' ? here.root.kind == tree.root.kind : same_value(&here.root, &tree.root)))
		why = "another root";
	else if (!rc)
		why = same_members(&here, &tree);
	if (!rc)
		hw_object_close(&here);
	if (!tree_rc)
		hw_object_close(&tree);
	return why;
}

#endif
