/* SPDX-License-Identifier: MIT */
/*
 * The trusted proxies of the address. Their X-Forwarded-For is used, so that each client behind a proxy has its own
 * address. Pure.
 */
#ifndef HW_HTTP_PROXIES_H
#define HW_HTTP_PROXIES_H

#include <stdbool.h>
#include <stddef.h>

#include "http/ip.h"

#define HW_PROXIES_MAX      32
#define HW_PROXIES_TEXT_MAX 1024 /* length of the list in bytes */

struct hw_network {
	unsigned char at[HW_IP_BYTES]; /* an IPv4 address is mapped into IPv6 */
	unsigned bits;                 /* prefix length, 0 .. 128 */
};

struct hw_proxies {
	struct hw_network at[HW_PROXIES_MAX];
	size_t n;
};

/* Parses a list of addresses and networks ("127.0.0.1, 10.0.0.0/8, ::1"), separated by commas or blanks. Returns NULL,
 * or what is wrong with the list. */
const char *hw_proxies_parse(struct hw_proxies *p, const char *text);
/*
 * Finds the address of the client; IPv4 is mapped to IPv6. `peer` is the numeric address that has connected.
 * `forwarded` is the header X-Forwarded-For, or NULL. The header is read from its end until an address is not that of a
 * proxy. Returns false if `peer` is no address.
 */
bool hw_proxies_client(const struct hw_proxies *p, const char *peer, const char *forwarded,
                       unsigned char client[HW_IP_BYTES]);

#endif
