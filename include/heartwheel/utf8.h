/* SPDX-License-Identifier: MIT */
/* One character of UTF-8, for checking and showing ids, topics and JSON text. Well-formed is as in the Unicode
 * standard, table 3-7: no overlong form, no surrogate, nothing above U+10FFFF. */
#ifndef HW_UTF8_H
#define HW_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "heartwheel/print.h"

/* Decodes the character at `s`, of which `len` > 0 bytes remain. Returns its length in bytes and `*c`, or 0 if it is
 * malformed. */
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

/* Whether the character is a control character, is invisible, or changes the order of the characters in a line. */
static inline bool hw_utf8_is_invisible(uint32_t c)
{
	return hw_utf8_is_control(c) || c == 0xad || c == 0x061c || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Writes `text` with escapes for invisible characters (\u202e) and for bytes that are not UTF-8 (\xff), as far as it
 * fits: at most six times its length and one byte. `cap` > 0. Returns the length. */
static inline size_t hw_utf8_show(const char *text, size_t len, char *out, size_t cap)
{
	size_t at = 0, n;
	for (size_t i = 0; i < len; i += n) {
		char escape[16];
		const char *piece = text + i;
		uint32_t c;
		n = hw_utf8_next((const unsigned char *)piece, len - i, &c);
		size_t more = n;
		if (n == 0) {
			more = hw_print(escape, sizeof(escape), "\\x%02x", (unsigned)(unsigned char)*piece);
			piece = escape;
			n = 1;
		} else if (hw_utf8_is_invisible(c)) {
			more = hw_print(escape, sizeof(escape), "\\u%04x", (unsigned)c);
			piece = escape;
		}
		if (at + more >= cap)
			break;
		memcpy(out + at, piece, more);
		at += more;
	}
	out[at] = '\0';
	return at;
}

#endif
