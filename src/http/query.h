/* SPDX-License-Identifier: MIT */
/* Strict parsing of percent-encoded text. evhttp's own decoder keeps a broken `%zz`, and ends a string at `%00`. */
#ifndef HW_HTTP_QUERY_H
#define HW_HTTP_QUERY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes `len` bytes into `out`, which may be `text` itself. `plus`: '+' means a space, as in queries. Appends a NUL.
 * Returns the length, -EINVAL for a broken sequence or a NUL in the text, or -ENAMETOOLONG if `cap` is too small.
 */
int hw_percent_decode(const char *text, size_t len, bool plus, char *out, size_t cap);

/* The next `key=value` of a query string, decoded. */
struct hw_param {
	char key[32];
	char value[1024];
	size_t value_len;
};
int hw_query_next(const char **query, struct hw_param *p);

/* Entries per page: default and maximum of `limit`. */
#define HW_LIMIT_DEFAULT 100
#define HW_LIMIT_MAX     1000
/* Parses `limit`, 1 to HW_LIMIT_MAX. Returns NULL and sets *out, or returns what is wrong. */
const char *hw_query_limit(const char *text, size_t len, unsigned *out);

#endif
