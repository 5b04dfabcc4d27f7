/* SPDX-License-Identifier: MIT */
/* Places in the event stream and their texts. Strict: what is read back is exactly what is written. */
#include "heartwheel/event.h"

#include <errno.h>

static char *digits(char *at, uint64_t n)
{
	char reversed[20];
	int len = 0;
	do
		reversed[len++] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	while (len > 0)
		*at++ = reversed[--len];
	return at;
}

/* How many digits were read; 0 if there are none, or too many. */
static size_t number(const char *text, size_t len, uint64_t *out)
{
	size_t i = 0;
	*out = 0;
	for (; i < len && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, text[i] - '0', out))
			return 0;
	return i > 1 && text[0] == '0' ? 0 : i;
}

int hw_event_id_parse(const char *text, size_t len, struct hw_event_id *out)
{
	struct hw_event_id at;
	size_t ms = number(text, len, &at.ms);
	if (ms == 0 || ms == len || text[ms] != '-')
		return -EINVAL;
	size_t n = number(text + ms + 1, len - ms - 1, &at.n);
	if (n == 0 || ms + 1 + n != len)
		return -EINVAL;
	*out = at;
	return 0;
}

int hw_event_id_text(struct hw_event_id at, char buf[HW_EVENT_ID_TEXT])
{
	char *end = digits(buf, at.ms);
	*end++ = '-';
	end = digits(end, at.n);
	*end = '\0';
	return (int)(end - buf);
}

int hw_event_id_compare(struct hw_event_id a, struct hw_event_id b)
{
	if (a.ms != b.ms)
		return a.ms < b.ms ? -1 : 1;
	return a.n == b.n ? 0 : a.n < b.n ? -1 : 1;
}
