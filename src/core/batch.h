/* SPDX-License-Identifier: MIT */
/*
 * A batch: one JSON array whose elements are heartbeats. It is judged as a whole before any of it counts, and then
 * taken apart without a copy, an element at a time, so that whoever works it off can stop anywhere. Private to the
 * core.
 *
 * Cost: two passes over the bytes, no allocation.
 */
#ifndef HW_BATCH_H
#define HW_BATCH_H

#include <stdbool.h>
#include <stddef.h>

struct hw_element {
	const char *text; /* points into the array: one JSON value, without white space around it */
	size_t len;
};

/* Whether the bytes are JSON text (RFC 8259) nested at most 1000 deep, in valid UTF-8, and its value an array. */
bool hw_batch_valid(const char *text, size_t len);

/* The element at `*at` (0: the first), which moves behind it; false behind the last. Only for what hw_batch_valid()
 * took. */
bool hw_batch_next(const char *text, size_t len, size_t *at, struct hw_element *e);

#endif
