/* SPDX-License-Identifier: MIT */
/* See names.h. The cost is quadratic in the number of names, of which there are few. */
#include "names.h"

#include <stdio.h>
#include <string.h>

const char *hw_names_filter_end(const char *text, enum hw_names_of of)
{
	return text + strcspn(text, of == HW_NAMES_GOODBYE ? " \t" : "");
}

bool hw_names_next(const char **text, const char *end, const char **name, size_t *len, bool *several)
{
	const char *s = *text;
	while (s < end) {
		const char *slash = memchr(s, '/', (size_t)(end - s));
		size_t n = (size_t)((slash ? slash : end) - s);
		if (*s == '{' && n > 2 && s[n - 1] == '}') {
			*name = s + 1;
			*len = n - 2;
			*several = *len > 3 && memcmp(s + n - 4, "...", 3) == 0;
			*len -= *several ? 3 : 0;
			*text = s + n;
			return true;
		}
		s += n + (s + n < end);
	}
	return false;
}

bool hw_names_any(const char *text)
{
	const char *name;
	size_t len;
	bool several;
	return hw_names_next(&text, text + strlen(text), &name, &len, &several);
}

bool hw_names_has(const char *text, const char *end, const char *name, size_t len)
{
	const char *other;
	size_t n;
	bool several;
	while (hw_names_next(&text, end, &other, &n, &several))
		if (n == len && memcmp(other, name, n) == 0)
			return true;
	return false;
}

/* Finds the first {name} in `id` that is missing in the template from `text` to `end`. Returns false if none is
 * missing. */
static bool find_missing(const char *id, const char *text, const char *end, const char **name, size_t *len)
{
	bool several;
	for (const char *id_end = id + strlen(id); hw_names_next(&id, id_end, name, len, &several);)
		if (!hw_names_has(text, end, *name, *len))
			return true;
	return false;
}

/* Finds the first {name} in the template that is missing in `id`. Without `all`, a missing {id} is allowed: in a filter
 * it acts like a `+`. */
static bool find_unused(const char *text, const char *end, const char *id, bool all, const char **name, size_t *len)
{
	bool several;
	while (hw_names_next(&text, end, name, len, &several)) {
		bool spare = !all && *len == 2 && memcmp(*name, "id", 2) == 0;
		if (!spare && !hw_names_has(id, id + strlen(id), *name, *len))
			return true;
	}
	return false;
}

bool hw_names_wrong(const char *text, const char *id, enum hw_names_of of, char *why, size_t cap)
{
	const char *name, *end = hw_names_filter_end(text, of);
	size_t len;
	if (find_unused(text, end, id, of == HW_NAMES_STATUS, &name, &len)) {
		snprintf(why, cap,
		         of == HW_NAMES_STATUS
		                 ? "{%.*s} is not part of the id, from which the topic is built: use it "
		                   "in id, or remove it"
		                 : "{%.*s} is not used by id or parent: use it there, or write + in its place",
		         (int)len, name);
		return true;
	}
	if (of == HW_NAMES_IGNORE || !find_missing(id, text, end, &name, &len))
		return false;
	snprintf(why, cap,
	         of == HW_NAMES_STATUS
	                 ? "lacks {%.*s}: several devices would share one retained status"
	                 : "lacks {%.*s}, which id or parent uses: each filter of a group has the same names",
	         (int)len, name);
	return true;
}
