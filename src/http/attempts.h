/* SPDX-License-Identifier: MIT */
/*
 * Counts the wrong API tokens of each client address. An address is closed for a minute after ten wrong tokens, each
 * less than a minute after the one before. The table has a limit: a new address replaces the one whose last wrong token
 * is the oldest. So a flood from many addresses mostly replaces its own entries. Pure: time is a parameter.
 */
#ifndef HW_HTTP_ATTEMPTS_H
#define HW_HTTP_ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/ip.h"

#define HW_ATTEMPTS_MAX       10
#define HW_ATTEMPTS_CLOSED_MS 60000
#define HW_ATTEMPTS_ADDRESSES 1024

struct hw_attempt {
	unsigned char from[HW_IP_BYTES]; /* the client: an IPv4 address, mapped to IPv6, or the /64 network of an
	                                  * IPv6 address */
	int64_t last_ms;
	unsigned n; /* wrong tokens */
};

struct hw_attempts {
	struct hw_attempt at[HW_ATTEMPTS_ADDRESSES];
	size_t n;
};

/* Writes the key of an address. All addresses of an IPv6 /64 network share a key. */
void hw_attempts_key(const unsigned char address[HW_IP_BYTES], unsigned char from[HW_IP_BYTES]);
/* Returns for how many more ms the address is closed; 0: it is not closed. */
int64_t hw_attempts_closed(const struct hw_attempts *a, const unsigned char from[HW_IP_BYTES], int64_t now_ms);
/* Counts a wrong token. Returns true if it closes the address. */
bool hw_attempts_wrong(struct hw_attempts *a, const unsigned char from[HW_IP_BYTES], int64_t now_ms);

#endif
