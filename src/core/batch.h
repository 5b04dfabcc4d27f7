/* SPDX-License-Identifier: MIT */
/*
 * A batch: one JSON array whose elements are heartbeats. The whole array is checked before any element counts. It is
 * then taken apart without a copy, one element at a time, so that its processing can stop at any element. Private to
 * the core.
 *
 * Cost: two passes over the bytes, no allocation.
 */
#ifndef HW_BATCH_H
#define HW_BATCH_H

#include <stdbool.h>
#include <stddef.h>

struct hw_element {
	const char *text; /* points into the array at one JSON value, without the white space around it */
	size_t len;
};

/* Whether the bytes are a JSON array (RFC 8259) in valid UTF-8, nested at most 1000 deep. */
bool hw_batch_valid(const char *text, size_t len);

/* Reads the element at `*at` (0: the first) and advances `*at`. Returns false after the last element. Only for an array
 * that hw_batch_valid() accepted. */
bool hw_batch_next(const char *text, size_t len, size_t *at, struct hw_element *e);

#endif
