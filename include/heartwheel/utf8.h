/* SPDX-License-Identifier: MIT */
/*
 * One character of UTF-8, for those who judge or show ids, topics and JSON text. Well-formed is what the Unicode
 * standard's table 3-7 lists: no overlong form, no surrogate, nothing above U+10FFFF.
 */
#ifndef HW_UTF8_H
#define HW_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character that starts at `s`, of which `len` > 0 bytes are left. Returns its length in bytes and `*c`, or
 * 0 if it is not well-formed. */
static inline size_t hw_utf8_next(const unsigned char *s, size_t len, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	if (s[0] < 0x80) {
		*c = s[0];
		return 1;
	}
	size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4 || n > len)
		return 0;
	uint32_t v = s[0] & (0xffU >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (s[i] & 0x3fU);
	}
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	*c = v;
	return n;
}

/* C0, DEL and C1. */
static inline bool hw_utf8_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

#endif
