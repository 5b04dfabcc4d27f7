/* SPDX-License-Identifier: MIT */
/* Numeric addresses as 16 bytes: IPv6, or IPv4 mapped into IPv6 (RFC 4291, 2.5.5.2). Pure. */
#ifndef HW_HTTP_IP_H
#define HW_HTTP_IP_H

#include <stdbool.h>
#include <stddef.h>

#define HW_IP_BYTES 16

/* Parses `len` bytes; "%interface" may follow an IPv6 address. False: not an address. */
bool hw_ip_parse(const char *text, size_t len, unsigned char to[HW_IP_BYTES]);
/* Writes the address as text, cut to `cap`. */
void hw_ip_text(const unsigned char a[HW_IP_BYTES], char *text, size_t cap);
bool hw_ip_is_four(const unsigned char a[HW_IP_BYTES]);
bool hw_ip_is_loopback(const unsigned char a[HW_IP_BYTES]);

#endif
