/* SPDX-License-Identifier: MIT */
/* See pattern.h. Cost: one pass over the text. */
#include "heartwheel/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/utf8.h"

/* Finds the next part of a pattern: a name in braces, or the text before the next brace. Returns false at the end. */
static bool next_part(const char **s, struct hw_value *part, bool *is_name)
{
	if (!**s)
		return false;
	*is_name = **s == '{';
	size_t n = strcspn(*s + *is_name, *is_name ? "}" : "{");
	*part = (struct hw_value){*s + *is_name, n};
	*s += n + (*is_name ? 2 : 0);
	return true;
}

static const char *check_name(struct hw_value name)
{
	if (name.len == 0 || name.len > HW_CAPTURE_NAME)
		return "a name in braces has 1 to 32 characters";
	for (size_t i = 0; i < name.len; i++)
		if (!isalnum((unsigned char)name.text[i]) && name.text[i] != '_' && name.text[i] != '-')
			return "a name in braces consists of ASCII letters, digits, '_' and '-'";
	return NULL;
}

/* Checks that each opening brace has a closing one, so that next_part() finds the end of each name. */
static const char *check_braces(const char *s)
{
	for (const char *open = NULL; *s || open; s++) {
		if (!*s || (*s == '{' && open) || (*s == '}' && !open))
			return "has a brace that is no part of a name in braces";
		open = *s == '{' ? s : *s == '}' ? NULL : open;
	}
	return NULL;
}

static const char *check_text(const char *text)
{
	uint32_t c;
	size_t len = strlen(text);
	if (len == 0)
		return "is empty";
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)text + i, len - i, &c);
		if (n == 0 || hw_utf8_is_control(c) || c == '+' || c == '#')
			return "must be valid UTF-8 without control characters, + and #, as the id of a device";
	}
	return check_braces(text);
}

int hw_pattern_compile(struct hw_pattern *p, const char *text, const char **why)
{
	struct hw_value part;
	bool is_name;
	*p = (struct hw_pattern){.n_names = 0};
	*why = check_text(text);
	for (const char *s = text; !*why && next_part(&s, &part, &is_name);) {
		if (is_name && p->n_names == HW_CAPTURES_MAX)
			*why = "has more than 8 names in braces";
		else if (is_name && !(*why = check_name(part)))
			p->n_names++;
		else if (!is_name && part.len > HW_ID_MAX)
			*why = "is longer than an id can be, 255 bytes";
	}
	if (*why)
		return -EINVAL;
	p->text = strdup(text);
	return p->text ? 0 : -ENOMEM;
}

void hw_pattern_fini(struct hw_pattern *p)
{
	free(p->text);
	*p = (struct hw_pattern){.n_names = 0};
}

struct hw_value hw_pattern_name(const struct hw_pattern *p, unsigned k)
{
	struct hw_value part;
	bool is_name;
	for (const char *s = p->text; next_part(&s, &part, &is_name);)
		if (is_name && k-- == 0)
			return part;
	return (struct hw_value){"", 0};
}

size_t hw_pattern_compose(const struct hw_pattern *p, const struct hw_value *values, char *buf, size_t cap)
{
	struct hw_value part;
	size_t at = 0;
	bool is_name;
	unsigned k = 0;
	for (const char *s = p->text; next_part(&s, &part, &is_name);) {
		if (is_name)
			part = values[p->slot[k++]];
		if (part.len == 0 || at + part.len > cap)
			return 0;
		memcpy(buf + at, part.text, part.len);
		at += part.len;
	}
	return at;
}
