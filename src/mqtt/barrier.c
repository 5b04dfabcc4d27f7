/* SPDX-License-Identifier: MIT */
/*
 * Writes and parses the payload of a barrier. The parser is strict, because a payload in any other form is not from a
 * monitor and proves nothing.
 */
#include "mqtt/barrier.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/print.h"

#define RUN_ID_DIGITS 16
#define NUMBER_AT     (RUN_ID_DIGITS + 1)
#define NUMBER_DIGITS 20

size_t hw_barrier_print(const struct hw_barrier *b, char to[HW_BARRIER_MAX])
{
	return hw_print(to, HW_BARRIER_MAX, "%016" PRIx64 " %" PRIu64, b->run_id, b->number);
}

bool hw_barrier_parse(const void *payload, size_t len, struct hw_barrier *b)
{
	const char *s = payload;
	*b = (struct hw_barrier){0};
	if (len <= NUMBER_AT || len > NUMBER_AT + NUMBER_DIGITS || s[RUN_ID_DIGITS] != ' ')
		return false;
	if (s[NUMBER_AT] == '0' && len > NUMBER_AT + 1)
		return false;
	for (size_t i = 0; i < RUN_ID_DIGITS; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = memchr(digits, s[i], 16);
		if (!d)
			return false;
		b->run_id = b->run_id << 4 | (uint64_t)(d - digits);
	}
	for (size_t i = NUMBER_AT; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		if (__builtin_mul_overflow(b->number, UINT64_C(10), &b->number) ||
		    __builtin_add_overflow(b->number, (uint64_t)(s[i] - '0'), &b->number))
			return false;
	}
	return true;
}
