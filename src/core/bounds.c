/* SPDX-License-Identifier: MIT */
/* See bounds.h. */
#include "heartwheel/bounds.h"

#include <string.h>

#include "heartwheel/utf8.h"

bool hw_bounds_text(char *to, size_t cap, const char *from, size_t len)
{
	size_t n = 0, at = 0;
	bool same = true;
	while (at < len) {
		uint32_t c = 0;
		size_t bytes = hw_utf8_next((const unsigned char *)from + at, len - at, &c);
		bool good = bytes > 0 && c != 0;
		bytes = good ? bytes : 1;
		if (n + bytes >= cap) {
			same = false;
			break;
		}
		memcpy(to + n, good ? from + at : "?", bytes);
		same &= good;
		n += bytes;
		at += bytes;
	}
	to[n] = '\0';
	return same;
}

bool hw_bounds_json(const char *text, size_t len)
{
	unsigned depth = 0;
	bool quoted = false;
	if (len > HW_BOUNDS_JSON_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '{' || text[i] == '[') && ++depth > HW_BOUNDS_DEPTH_MAX)
			return false;
		else if (!quoted && (text[i] == '}' || text[i] == ']') && depth > 0)
			depth--;
	}
	return true;
}
