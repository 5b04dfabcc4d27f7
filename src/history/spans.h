/* SPDX-License-Identifier: MIT */
/* Sets of moments, as lists of spans [from, to) of milliseconds: what is put together, taken away, measured. Pure. */
#ifndef HW_HISTORY_SPANS_H
#define HW_HISTORY_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct hw_span {
	int64_t from, to;
	int64_t before; /* the length of those before it; once in order */
};

/* Zeroed storage is empty. */
struct hw_spans {
	struct hw_span *at;
	size_t n, cap;
};

/* In any order, overlapping or empty. 0 or -ENOMEM. */
int hw_spans_add(struct hw_spans *s, int64_t from, int64_t to);
/* Puts them in order, each moment in one at most: all below want that. */
void hw_spans_order(struct hw_spans *s);
/* Appends to `out` what of `a` is not in `b`. 0 or -ENOMEM. */
int hw_spans_minus(const struct hw_spans *a, const struct hw_spans *b, struct hw_spans *out);
/* Appends to `out` what of [from, to) is not in `s`, in order. 0 or -ENOMEM. */
int hw_spans_rest(const struct hw_spans *s, int64_t from, int64_t to, struct hw_spans *out);
/* How much of [from, to) is in it. */
int64_t hw_spans_measure(const struct hw_spans *s, int64_t from, int64_t to);
void hw_spans_fini(struct hw_spans *s);

#endif
