/* SPDX-License-Identifier: MIT */
/* Decodes percent-encoded text: one pass, in place if needed, no allocation. */
#include "http/query.h"

#include <errno.h>
#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int hw_percent_decode(const char *text, size_t len, bool plus, char *out, size_t cap)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c == '%') {
			int high = i + 2 < len ? hex(text[i + 1]) : -1;
			int low = high >= 0 ? hex(text[i + 2]) : -1;
			if (low < 0)
				return -EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (plus && c == '+') {
			c = ' ';
		}
		if (c == '\0')
			return -EINVAL;
		if (n + 1 >= cap)
			return -ENAMETOOLONG;
		out[n++] = c;
	}
	if (cap == 0)
		return -ENAMETOOLONG;
	out[n] = '\0';
	return (int)n;
}

int hw_query_next(const char **query, struct hw_param *p)
{
	const char *q = *query;
	while (*q == '&')
		q++;
	if (*q == '\0') {
		*query = q;
		return 0;
	}
	size_t len = strcspn(q, "&");
	const char *equals = memchr(q, '=', len);
	if (!equals)
		return -EINVAL;
	int rc = hw_percent_decode(q, (size_t)(equals - q), true, p->key, sizeof(p->key));
	if (rc < 0)
		return rc;
	rc = hw_percent_decode(equals + 1, (size_t)(q + len - equals - 1), true, p->value, sizeof(p->value));
	if (rc < 0)
		return rc;
	p->value_len = (size_t)rc;
	*query = q + len;
	return 1;
}

#define TEXT_OF(n) #n
#define AS_TEXT(n) TEXT_OF(n)

const char *hw_query_limit(const char *text, size_t len, unsigned *out)
{
	unsigned n = 0;
	for (size_t i = 0; i < len && n <= HW_LIMIT_MAX; i++) {
		if (text[i] < '0' || text[i] > '9')
			return "'limit' is not a number";
		n = n * 10 + (unsigned)(text[i] - '0');
	}
	if (n < 1 || n > HW_LIMIT_MAX)
		return "'limit' is out of its range, 1 to " AS_TEXT(HW_LIMIT_MAX);
	*out = n;
	return NULL;
}
