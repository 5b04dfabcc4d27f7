/* SPDX-License-Identifier: MIT */
/*
 * Wrong tokens, by the address that they came from: ten of them, none more than a minute after the one before, close it
 * for a minute. Pure: time comes in. What is remembered is bounded; of too many addresses the one goes that was wrong
 * least lately, so that a flood from everywhere makes nobody's guesses free but its own.
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
	unsigned char from[HW_IP_BYTES]; /* an IPv4 address, mapped; of an IPv6 address the network's 64 bits */
	int64_t last_ms;
	unsigned n; /* wrong tokens */
};

struct hw_attempts {
	struct hw_attempt at[HW_ATTEMPTS_ADDRESSES];
	size_t n;
};

/* The key of an address: all addresses of one IPv6 network have the same. */
void hw_attempts_key(const unsigned char address[HW_IP_BYTES], unsigned char from[HW_IP_BYTES]);
/* For how long the address is closed, ms; 0: it is not. */
int64_t hw_attempts_closed(const struct hw_attempts *a, const unsigned char from[HW_IP_BYTES], int64_t now_ms);
/* A wrong token came from it. True: that has just closed it. */
bool hw_attempts_wrong(struct hw_attempts *a, const unsigned char from[HW_IP_BYTES], int64_t now_ms);

#endif
