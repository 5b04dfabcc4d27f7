/* SPDX-License-Identifier: MIT */
/* See id.h. */
#include "stream/id.h"

#include <errno.h>
#include <stdbool.h>

static char *print_number(char *to, uint64_t n)
{
	char reversed[20];
	int len = 0;
	do
		reversed[len++] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	while (len > 0)
		*to++ = reversed[--len];
	return to;
}

/* Returns the number of digits; 0 if the text does not begin with a number, or if the number exceeds 64 bits. */
static size_t parse_number(const char *text, size_t len, bool loose, uint64_t *out)
{
	size_t i = 0;
	*out = 0;
	for (; i < len && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, text[i] - '0', out))
			return 0;
	return i > 1 && text[0] == '0' && !loose ? 0 : i;
}

static int parse(const char *text, size_t len, bool loose, struct hw_stream_id *out)
{
	struct hw_stream_id id = {0, 0};
	size_t ms = parse_number(text, len, loose, &id.ms), seq = 0;
	if (ms > 0 && ms < len && text[ms] == '-')
		seq = parse_number(text + ms + 1, len - ms - 1, loose, &id.seq);
	bool whole = seq > 0 ? ms + 1 + seq == len : loose && ms > 0 && ms == len;
	if (whole)
		*out = id;
	return whole ? 0 : -EINVAL;
}

int hw_stream_id_parse(const char *text, size_t len, struct hw_stream_id *out)
{
	return parse(text, len, false, out);
}

int hw_stream_id_parse_loose(const char *text, size_t len, struct hw_stream_id *out)
{
	return parse(text, len, true, out);
}

const char *hw_stream_id_print(struct hw_stream_id id, char text[HW_STREAM_ID_TEXT])
{
	char *end = print_number(text, id.ms);
	*end++ = '-';
	*print_number(end, id.seq) = '\0';
	return text;
}

int hw_stream_id_compare(struct hw_stream_id a, struct hw_stream_id b)
{
	if (a.ms != b.ms)
		return a.ms < b.ms ? -1 : 1;
	return a.seq < b.seq ? -1 : a.seq > b.seq;
}

struct hw_stream_id hw_stream_id_next(struct hw_stream_id id)
{
	if (id.seq < UINT64_MAX)
		id.seq++;
	else if (id.ms < UINT64_MAX)
		id = (struct hw_stream_id){id.ms + 1, 0};
	return id;
}

struct hw_stream_id hw_stream_id_previous(struct hw_stream_id id)
{
	if (id.seq > 0)
		id.seq--;
	else if (id.ms > 0)
		id = (struct hw_stream_id){id.ms - 1, UINT64_MAX};
	return id;
}
