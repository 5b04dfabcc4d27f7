/* SPDX-License-Identifier: MIT */
/* Globs of ids, groups and labels: `*` stands for any text and `?` for one byte. */
#ifndef HEARTWHEEL_GLOB_H
#define HEARTWHEEL_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `len` bytes of text match the glob. Cost: at most the product of both lengths. */
static inline bool hw_glob(const char *glob, const char *text, size_t len)
{
	const char *star = NULL;
	size_t at = 0, from = 0; /* `at`: position in the text; `from`: end of the text that the last `*` matches in
	                            this attempt */
	while (at < len) {
		if (*glob == '*') {
			star = ++glob;
			from = at;
		} else if (*glob && (*glob == '?' || *glob == text[at])) {
			glob++;
			at++;
		} else if (star) {
			glob = star;
			at = ++from;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

#endif
