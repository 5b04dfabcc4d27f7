/* SPDX-License-Identifier: MIT */
/* See batch.h. A reader stands at a byte and never goes past the end; brackets are kept on a stack of its own, so that
 * no input can make it recurse. */
#include "core/batch.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "core/utf8.h"

#define DEPTH 1000

struct reader {
	const unsigned char *s, *end;
};

/* The next byte that is not white space, or -1 at the end. */
static int peek(struct reader *r)
{
	while (r->s < r->end && (*r->s == ' ' || *r->s == '\t' || *r->s == '\n' || *r->s == '\r'))
		r->s++;
	return r->s < r->end ? *r->s : -1;
}

/* --- judging ------------------------------------------------------------------ */

static bool escape(struct reader *r)
{
	size_t left = (size_t)(r->end - r->s);
	if (left < 2 || !r->s[1] || !strchr("\"\\/bfnrtu", r->s[1]))
		return false;
	if (r->s[1] != 'u') {
		r->s += 2;
		return true;
	}
	if (left < 6 || !isxdigit(r->s[2]) || !isxdigit(r->s[3]) || !isxdigit(r->s[4]) || !isxdigit(r->s[5]))
		return false;
	r->s += 6;
	return true;
}

static bool string(struct reader *r)
{
	for (r->s++; r->s < r->end && *r->s != '"';) {
		uint32_t c;
		size_t n = hw_utf8_next(r->s, (size_t)(r->end - r->s), &c);
		if (n == 0 || c < 0x20)
			return false;
		if (c != '\\')
			r->s += n;
		else if (!escape(r))
			return false;
	}
	return r->s++ < r->end;
}

static bool digits(struct reader *r)
{
	const unsigned char *from = r->s;
	while (r->s < r->end && isdigit(*r->s))
		r->s++;
	return r->s > from;
}

static bool take(struct reader *r, const char *any_of)
{
	bool there = r->s < r->end && *r->s && strchr(any_of, *r->s);
	r->s += there;
	return there;
}

static bool number(struct reader *r)
{
	take(r, "-");
	if (!take(r, "0") && !digits(r))
		return false;
	if (take(r, ".") && !digits(r))
		return false;
	if (!take(r, "eE"))
		return true;
	take(r, "+-");
	return digits(r);
}

static bool word(struct reader *r, const char *text)
{
	size_t n = strlen(text);
	bool is = (size_t)(r->end - r->s) >= n && memcmp(r->s, text, n) == 0;
	r->s += is ? n : 0;
	return is;
}

static bool scalar(struct reader *r, int first)
{
	switch (first) {
	case '"':
		return string(r);
	case 't':
		return word(r, "true");
	case 'f':
		return word(r, "false");
	case 'n':
		return word(r, "null");
	default:
		return number(r);
	}
}

enum want { VALUE, FIRST_VALUE, KEY, FIRST_KEY, NEXT };

struct nest {
	size_t depth;
	char open[DEPTH];
};

/* What may follow a value: a comma, or the end of what it stands in. */
static bool after_value(struct reader *r, struct nest *n, int c, enum want *want)
{
	bool array = n->open[n->depth - 1] == '[';
	if (c == ',')
		*want = array ? VALUE : KEY;
	else if (c == (array ? ']' : '}'))
		n->depth--;
	else
		return false;
	r->s++;
	return true;
}

static bool key(struct reader *r, int c)
{
	if (c != '"' || !string(r) || peek(r) != ':')
		return false;
	r->s++;
	return true;
}

static bool open_bracket(struct reader *r, struct nest *n, int c, enum want *want)
{
	if (n->depth == DEPTH)
		return false;
	n->open[n->depth++] = (char)c;
	*want = c == '[' ? FIRST_VALUE : FIRST_KEY;
	r->s++;
	return true;
}

/* One step; false if it cannot go on. */
static bool step(struct reader *r, struct nest *n, int c, enum want *want)
{
	if (*want == NEXT)
		return after_value(r, n, c, want);
	if ((*want == FIRST_VALUE && c == ']') || (*want == FIRST_KEY && c == '}')) {
		*want = NEXT;
		n->depth--;
		r->s++;
		return true;
	}
	if (*want == KEY || *want == FIRST_KEY) {
		*want = VALUE;
		return key(r, c);
	}
	if (c == '[' || c == '{')
		return open_bracket(r, n, c, want);
	*want = NEXT;
	return scalar(r, c);
}

bool hw_batch_valid(const char *text, size_t len)
{
	struct reader r = {(const unsigned char *)text, (const unsigned char *)text + len};
	struct nest n;
	enum want want = VALUE;
	n.depth = 0;
	int c = peek(&r);
	if (c != '[')
		return false;
	do {
		if (!step(&r, &n, c, &want))
			return false;
		c = peek(&r);
	} while (n.depth > 0);
	return c < 0;
}

/* --- taking apart ------------------------------------------------------------- */

static void skip_string(struct reader *r)
{
	for (r->s++; *r->s != '"'; r->s++)
		r->s += *r->s == '\\';
	r->s++;
}

static void skip_nested(struct reader *r)
{
	size_t depth = 0;
	do {
		if (*r->s == '"') {
			skip_string(r);
			continue;
		}
		if (*r->s == '[' || *r->s == '{')
			depth++;
		else if (*r->s == ']' || *r->s == '}')
			depth--;
		r->s++;
	} while (depth > 0);
}

bool hw_batch_next(const char *text, size_t len, size_t *at, struct hw_element *e)
{
	struct reader r = {(const unsigned char *)text + *at, (const unsigned char *)text + len};
	int c = peek(&r);
	if (c == (*at ? ',' : '[')) {
		r.s++;
		c = peek(&r);
	}
	*at = (size_t)(r.s - (const unsigned char *)text);
	if (c == ']' || c < 0)
		return false;
	e->text = (const char *)r.s;
	if (c == '"')
		skip_string(&r);
	else if (c == '[' || c == '{')
		skip_nested(&r);
	else
		while (!strchr(",] \t\r\n", *r.s))
			r.s++;
	e->len = (size_t)((const char *)r.s - e->text);
	*at = (size_t)(r.s - (const unsigned char *)text);
	return true;
}
