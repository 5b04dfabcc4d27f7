/* SPDX-License-Identifier: MIT */
/*
 * Takes percent-encoded text apart, strictly: evhttp's own decoder passes a broken `%zz` on as it is and lets `%00` end
 * a string early.
 */
#ifndef HW_HTTP_QUERY_H
#define HW_HTTP_QUERY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes `len` bytes into `out`, which may be `text` itself; `plus`: a '+' is a space, as in queries. Returns the
 * length, with a NUL behind it; or -EINVAL for a broken sequence or a NUL; or -ENAMETOOLONG if `cap` is too small.
 */
int hw_percent_decode(const char *text, size_t len, bool plus, char *out, size_t cap);

/*
 * The next `key=value` of a query string: moves `*query` on. Decodes both. 1; 0 at the end; -EINVAL if it is broken;
 * -ENAMETOOLONG if one of them does not fit.
 */
struct hw_param {
	char key[32];
	char value[1024];
	size_t value_len;
};
int hw_query_next(const char **query, struct hw_param *p);

/* How many entries a page has, unless `limit` says otherwise, and at most. */
#define HW_LIMIT_DEFAULT 100
#define HW_LIMIT_MAX     1000
/* A query's `limit`, from 1 to HW_LIMIT_MAX: NULL and *out, or what is wrong. */
const char *hw_query_limit(const char *text, size_t len, unsigned *out);

#endif
