/* SPDX-License-Identifier: MIT */
/*
 * The proxies in front of the address: whose X-Forwarded-For is believed, so that each client behind them counts by its
 * own address. Pure.
 */
#ifndef HW_HTTP_PROXIES_H
#define HW_HTTP_PROXIES_H

#include <stdbool.h>
#include <stddef.h>

#include "http/ip.h"

#define HW_PROXIES_MAX      32
#define HW_PROXIES_TEXT_MAX 1024 /* bytes of the list */

struct hw_network {
	unsigned char at[HW_IP_BYTES]; /* an IPv4 address is mapped into IPv6 */
	unsigned bits;                 /* of them that count, 0 .. 128 */
};

struct hw_proxies {
	struct hw_network at[HW_PROXIES_MAX];
	size_t n;
};

/* Reads a list of addresses and networks ("127.0.0.1, 10.0.0.0/8, ::1"), separated by commas or blanks. NULL, or what
 * is wrong with it. */
const char *hw_proxies_parse(struct hw_proxies *p, const char *text);
/*
 * The client's address, IPv4 mapped. `peer`: the numeric address that connected. `forwarded`: the
 * header X-Forwarded-For, or NULL. It is read from its end for as long as each address is a proxy's. False: `peer` is
 * no address.
 */
bool hw_proxies_client(const struct hw_proxies *p, const char *peer, const char *forwarded,
                       unsigned char client[HW_IP_BYTES]);

#endif
