/* SPDX-License-Identifier: MIT */
/* See proxies.h. Cost: a scan of the proxies for each address in the header, up to the first one that is no proxy. */
#include "http/proxies.h"

#include <stdlib.h>
#include <string.h>

#define SEPARATORS ", \t"

static const char *parse_network(struct hw_network *w, const char *text, size_t len)
{
	const char *slash = memchr(text, '/', len);
	size_t address = slash ? (size_t)(slash - text) : len;
	if (!hw_ip_parse(text, address, w->at))
		return "is not a list of addresses and networks such as 127.0.0.1, 10.0.0.0/8, ::1";
	bool four = hw_ip_is_four(w->at);
	w->bits = 128;
	if (!slash)
		return NULL;
	size_t digits = strspn(slash + 1, "0123456789");
	unsigned long bits = digits >= 1 && digits <= 3 ? strtoul(slash + 1, NULL, 10) : 999;
	if (digits != len - address - 1 || bits > (four ? 32 : 128))
		return "has a network whose size is not 0 to 32 (IPv4) or 0 to 128 (IPv6) bits";
	w->bits = (unsigned)bits + (four ? 96 : 0);
	return NULL;
}

const char *hw_proxies_parse(struct hw_proxies *p, const char *text)
{
	p->n = 0;
	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		size_t len = strcspn(text, SEPARATORS);
		if (p->n == HW_PROXIES_MAX)
			return "has more than 32 addresses";
		const char *why = parse_network(&p->at[p->n++], text, len);
		if (why)
			return why;
		text += len;
	}
	return NULL;
}

static bool has(const struct hw_network *w, const unsigned char a[HW_IP_BYTES])
{
	size_t whole = w->bits / 8;
	unsigned rest = w->bits % 8;
	return memcmp(w->at, a, whole) == 0 && (!rest || (w->at[whole] ^ a[whole]) >> (8 - rest) == 0);
}

static bool is_proxy(const struct hw_proxies *p, const unsigned char a[HW_IP_BYTES])
{
	for (size_t i = 0; i < p->n; i++)
		if (has(&p->at[i], a))
			return true;
	return false;
}

bool hw_proxies_client(const struct hw_proxies *p, const char *peer, const char *forwarded,
                       unsigned char client[HW_IP_BYTES])
{
	unsigned char next[HW_IP_BYTES];
	if (!hw_ip_parse(peer, strlen(peer), client))
		return false;
	size_t end = forwarded ? strlen(forwarded) : 0;
	while (end > 0 && is_proxy(p, client)) {
		while (end > 0 && strchr(SEPARATORS, forwarded[end - 1]))
			end--;
		size_t begin = end;
		while (begin > 0 && !strchr(SEPARATORS, forwarded[begin - 1]))
			begin--;
		if (begin == end || !hw_ip_parse(forwarded + begin, end - begin, next))
			break; /* not written by a proxy: stop */
		memcpy(client, next, sizeof(next));
		end = begin;
	}
	return true;
}
