/* SPDX-License-Identifier: MIT */
/* See attempts.h. Cost: a scan of the addresses with recent wrong tokens. */
#include "http/attempts.h"

#include <string.h>

void hw_attempts_key(const unsigned char address[HW_IP_BYTES], unsigned char from[HW_IP_BYTES])
{
	memcpy(from, address, HW_IP_BYTES);
	if (!hw_ip_is_four(address))
		memset(from + 8, 0, 8); /* The first 8 bytes of an IPv6 address are the customer's network; the customer
		                           chooses the other bytes. */
}

static bool is_old(const struct hw_attempt *a, int64_t now_ms)
{
	return now_ms - a->last_ms >= HW_ATTEMPTS_CLOSED_MS;
}

static size_t find(const struct hw_attempts *a, const unsigned char from[HW_IP_BYTES])
{
	size_t i = 0;
	while (i < a->n && memcmp(a->at[i].from, from, sizeof(a->at[i].from)) != 0)
		i++;
	return i;
}

int64_t hw_attempts_closed(const struct hw_attempts *a, const unsigned char from[HW_IP_BYTES], int64_t now_ms)
{
	size_t i = find(a, from);
	if (i == a->n || a->at[i].n < HW_ATTEMPTS_MAX || is_old(&a->at[i], now_ms))
		return 0;
	return a->at[i].last_ms + HW_ATTEMPTS_CLOSED_MS - now_ms;
}

/* Returns a slot for a new address: a free one, or that of the address whose last wrong token is the oldest. */
static struct hw_attempt *place(struct hw_attempts *a, const unsigned char from[HW_IP_BYTES])
{
	size_t oldest = 0;
	if (a->n < HW_ATTEMPTS_ADDRESSES)
		oldest = a->n++;
	else
		for (size_t i = 1; i < a->n; i++)
			if (a->at[i].last_ms < a->at[oldest].last_ms)
				oldest = i;
	struct hw_attempt *one = &a->at[oldest];
	memcpy(one->from, from, sizeof(one->from));
	one->n = 0;
	return one;
}

bool hw_attempts_wrong(struct hw_attempts *a, const unsigned char from[HW_IP_BYTES], int64_t now_ms)
{
	size_t i = find(a, from);
	struct hw_attempt *one = i < a->n ? &a->at[i] : place(a, from);
	if (one->n > 0 && is_old(one, now_ms))
		one->n = 0;
	one->last_ms = now_ms;
	return ++one->n == HW_ATTEMPTS_MAX;
}
