/* SPDX-License-Identifier: MIT */
/* See spans.h. Cost: a measure is two binary searches. */
#include "history/spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hw_spans_add(struct hw_spans *s, int64_t from, int64_t to)
{
	if (from >= to)
		return 0;
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		struct hw_span *at = realloc(s->at, cap * sizeof(*at));
		if (!at)
			return -ENOMEM;
		s->at = at;
		s->cap = cap;
	}
	s->at[s->n++] = (struct hw_span){from, to, 0};
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct hw_span *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

void hw_spans_order(struct hw_spans *s)
{
	size_t n = 0;
	int64_t sum = 0;
	if (s->n > 1)
		qsort(s->at, s->n, sizeof(*s->at), by_begin);
	for (size_t i = 0; i < s->n; i++) {
		if (n > 0 && s->at[i].from <= s->at[n - 1].to) {
			if (s->at[i].to > s->at[n - 1].to)
				s->at[n - 1].to = s->at[i].to;
		} else {
			s->at[n++] = s->at[i];
		}
	}
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		s->at[i].before = sum;
		sum += s->at[i].to - s->at[i].from;
	}
}

int hw_spans_minus(const struct hw_spans *a, const struct hw_spans *b, struct hw_spans *out)
{
	size_t k = 0;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < a->n; i++) {
		int64_t from = a->at[i].from, to = a->at[i].to;
		while (k < b->n && b->at[k].to <= from)
			k++;
		for (size_t m = k; rc == 0 && m < b->n && b->at[m].from < to; m++) {
			rc = hw_spans_add(out, from, b->at[m].from);
			from = b->at[m].to;
		}
		if (rc == 0)
			rc = hw_spans_add(out, from, to);
	}
	return rc;
}

int hw_spans_rest(const struct hw_spans *s, int64_t from, int64_t to, struct hw_spans *out)
{
	struct hw_span whole = {from, to, 0};
	const struct hw_spans all = {.at = &whole, .n = from < to};
	int rc = hw_spans_minus(&all, s, out);
	hw_spans_order(out);
	return rc;
}

/* The length of the part before a time. */
static int64_t before(const struct hw_spans *s, int64_t ms)
{
	size_t low = 0, high = s->n;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (s->at[mid].from < ms)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return 0;
	const struct hw_span *last = &s->at[low - 1];
	return last->before + (ms < last->to ? ms : last->to) - last->from;
}

int64_t hw_spans_measure(const struct hw_spans *s, int64_t from, int64_t to)
{
	return from < to ? before(s, to) - before(s, from) : 0;
}

void hw_spans_fini(struct hw_spans *s)
{
	free(s->at);
	memset(s, 0, sizeof(*s));
}
