/* SPDX-License-Identifier: MIT */
/* See task_id.h. */
#include "tasks/task_id.h"

/* Where the hyphens of a UUID stand. */
static bool is_hyphen(size_t at)
{
	return at == 8 || at == 13 || at == 18 || at == 23;
}

void hw_task_id_text(const struct hw_task_id *id, char text[HW_TASK_TEXT + 1])
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;
	for (size_t k = 0; k < sizeof(id->bytes); k++) {
		if (is_hyphen(at))
			text[at++] = '-';
		text[at++] = digits[id->bytes[k] >> 4];
		text[at++] = digits[id->bytes[k] & 15];
	}
	text[at] = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hw_task_id_parse(struct hw_task_id *id, const char *text, size_t len)
{
	if (len != HW_TASK_TEXT)
		return false;
	for (size_t at = 0, k = 0; at < HW_TASK_TEXT; at++) {
		if (is_hyphen(at)) {
			if (text[at] != '-')
				return false;
			continue;
		}
		int high = digit(text[at]), low = digit(text[++at]);
		if (high < 0 || low < 0)
			return false;
		id->bytes[k++] = (uint8_t)(high << 4 | low);
	}
	return true;
}
