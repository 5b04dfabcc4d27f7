/* SPDX-License-Identifier: MIT */
/* See ip.h. */
#include "http/ip.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool hw_ip_parse(const char *text, size_t len, unsigned char to[HW_IP_BYTES])
{
	char plain[INET6_ADDRSTRLEN];
	const char *interface = memchr(text, '%', len);
	if (interface)
		len = (size_t)(interface - text);
	if (len >= sizeof(plain))
		return false;
	memcpy(plain, text, len);
	plain[len] = '\0';
	memcpy(to, mapped, sizeof(mapped));
	return inet_pton(AF_INET, plain, to + sizeof(mapped)) == 1 || inet_pton(AF_INET6, plain, to) == 1;
}

bool hw_ip_is_four(const unsigned char a[HW_IP_BYTES])
{
	return memcmp(a, mapped, sizeof(mapped)) == 0;
}

bool hw_ip_is_loopback(const unsigned char a[HW_IP_BYTES])
{
	static const unsigned char one[HW_IP_BYTES] = {[HW_IP_BYTES - 1] = 1};
	return hw_ip_is_four(a) ? a[12] == 127 : memcmp(a, one, sizeof(one)) == 0;
}

void hw_ip_text(const unsigned char a[HW_IP_BYTES], char *text, size_t cap)
{
	char full[INET6_ADDRSTRLEN];
	bool four = hw_ip_is_four(a);
	inet_ntop(four ? AF_INET : AF_INET6, four ? a + 12 : a, full, sizeof(full));
	snprintf(text, cap, "%s", full);
}
