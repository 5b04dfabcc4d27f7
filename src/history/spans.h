/* SPDX-License-Identifier: MIT */
/* Sets of times as lists of spans [from, to) in milliseconds: union, difference, length. Pure. */
#ifndef HW_HISTORY_SPANS_H
#define HW_HISTORY_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct hw_span {
	int64_t from, to;
	int64_t before; /* total length of all spans before this one; set by hw_spans_order() */
};

/* Zeroed storage is an empty set. */
struct hw_spans {
	struct hw_span *at;
	size_t n, cap;
};

/* Adds a span. Spans may come in any order, overlap, or be empty. Returns 0 or -ENOMEM. */
int hw_spans_add(struct hw_spans *s, int64_t from, int64_t to);
/* Sorts and merges the spans. Must be called before each function below. */
void hw_spans_order(struct hw_spans *s);
/* Appends the parts of `a` that are not in `b` to `out`. Returns 0 or -ENOMEM. */
int hw_spans_minus(const struct hw_spans *a, const struct hw_spans *b, struct hw_spans *out);
/* Appends the parts of [from, to) that are not in `s` to `out`, in order. Returns 0 or -ENOMEM. */
int hw_spans_rest(const struct hw_spans *s, int64_t from, int64_t to, struct hw_spans *out);
/* Returns the length of the part of [from, to) that is in the set. */
int64_t hw_spans_measure(const struct hw_spans *s, int64_t from, int64_t to);
void hw_spans_fini(struct hw_spans *s);

#endif
