/* SPDX-License-Identifier: MIT */
/* See batch.h and json.h. A reader holds a position in the bytes and never passes the end. Open brackets are kept on an
 * explicit stack, so that no input can cause recursion. */
#include "core/batch.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/utf8.h"

#define DEPTH       1000
#define PLAIN_DEPTH 100

struct reader {
	const unsigned char *s, *end;
	bool odd; /* the text is not plain: see hw_json_plain() */
};

/* Returns the next byte that is not white space, or -1 at the end. */
static int peek(struct reader *r)
{
	while (r->s < r->end && (*r->s == ' ' || *r->s == '\t' || *r->s == '\n' || *r->s == '\r'))
		r->s++;
	return r->s < r->end ? *r->s : -1;
}

/* --- checking ----------------------------------------------------------------- */

static bool escape(struct reader *r)
{
	size_t left = (size_t)(r->end - r->s);
	r->odd = true;
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
		if (*r->s >= 0x20 && *r->s < 0x80 && *r->s != '\\') {
			r->s++;
			continue;
		}
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
	while (r->s < r->end && *r->s >= '0' && *r->s <= '9')
		r->s++;
	return r->s > from;
}

static bool take(struct reader *r, unsigned char c)
{
	bool there = r->s < r->end && *r->s == c;
	r->s += there;
	return there;
}

static bool number(struct reader *r)
{
	const unsigned char *from = r->s;
	take(r, '-');
	if (!take(r, '0') && !digits(r))
		return false;
	if (take(r, '.') && !digits(r))
		return false;
	if (take(r, 'e') || take(r, 'E')) {
		if (!take(r, '-'))
			take(r, '+');
		if (!digits(r))
			return false;
	}
	r->odd |= r->s - from > HW_JSON_NUMBER_MAX;
	return true;
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

/* Checks the character after a value: a comma, or the end of the array or object that contains the value. */
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
	r->odd |= n->depth > PLAIN_DEPTH;
	*want = c == '[' ? FIRST_VALUE : FIRST_KEY;
	r->s++;
	return true;
}

/* One step; false if the text is invalid. */
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

/* Advances past the next value. */
static bool value(struct reader *r)
{
	struct nest n;
	enum want want = VALUE;
	n.depth = 0;
	do {
		if (!step(r, &n, peek(r), &want))
			return false;
	} while (n.depth > 0);
	return true;
}

static struct reader reader(const char *text, size_t len)
{
	return (struct reader){(const unsigned char *)text, (const unsigned char *)text + len, false};
}

static bool is_valid(const char *text, size_t len, int bracket)
{
	struct reader r = reader(text, len);
	return peek(&r) == bracket && value(&r) && peek(&r) < 0;
}

bool hw_batch_valid(const char *text, size_t len)
{
	return is_valid(text, len, '[');
}

bool hw_json_object_valid(const char *text, size_t len)
{
	return is_valid(text, len, '{');
}

bool hw_json_array_valid(const char *text, size_t len)
{
	return is_valid(text, len, '[');
}

bool hw_json_valid(const char *text, size_t len)
{
	struct reader r = reader(text, len);
	return value(&r) && peek(&r) < 0;
}

size_t hw_json_plain(const char *text, size_t len)
{
	struct reader r = reader(text, len);
	return value(&r) && !r.odd ? (size_t)(r.s - (const unsigned char *)text) : 0;
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

static void skip_value(struct reader *r, int first)
{
	if (first == '"')
		skip_string(r);
	else if (first == '[' || first == '{')
		skip_nested(r);
	else
		while (*r->s > ' ' && *r->s != ',' && *r->s != ']' && *r->s != '}')
			r->s++;
}

bool hw_batch_next(const char *text, size_t len, size_t *at, struct hw_element *e)
{
	struct reader r = reader(text + *at, len - *at);
	int c = peek(&r);
	if (c == (*at ? ',' : '[')) {
		r.s++;
		c = peek(&r);
	}
	*at = (size_t)(r.s - (const unsigned char *)text);
	if (c == ']' || c < 0)
		return false;
	e->text = (const char *)r.s;
	skip_value(&r, c);
	e->len = (size_t)((const char *)r.s - e->text);
	*at = (size_t)(r.s - (const unsigned char *)text);
	return true;
}

bool hw_json_object_next(const char *text, size_t len, size_t *at, struct hw_json_member *m)
{
	struct reader r = reader(text + *at, len - *at);
	int c = peek(&r);
	if (c == (*at ? ',' : '{')) {
		r.s++;
		c = peek(&r);
	}
	if (c != '"') {
		*at = (size_t)(r.s - (const unsigned char *)text);
		return false;
	}
	m->key = (const char *)r.s + 1;
	skip_string(&r);
	m->key_len = (size_t)((const char *)r.s - m->key - 1);
	(void)peek(&r); /* the colon */
	r.s++;
	c = peek(&r);
	m->value = (const char *)r.s;
	skip_value(&r, c);
	m->value_len = (size_t)((const char *)r.s - m->value);
	*at = (size_t)(r.s - (const unsigned char *)text);
	return true;
}

bool hw_json_array_next(const char *text, size_t len, size_t *at, struct hw_json_member *m)
{
	struct hw_element e;
	*m = (struct hw_json_member){0};
	if (!hw_batch_next(text, len, at, &e))
		return false;
	m->value = e.text;
	m->value_len = e.len;
	return true;
}

/* --- strings ------------------------------------------------------------------ */

static uint32_t hex(const unsigned char *s)
{
	uint32_t v = 0;
	for (unsigned k = 0; k < 4; k++)
		v = v << 4 | (uint32_t)(isdigit(s[k]) ? s[k] - '0' : (s[k] | 0x20) - 'a' + 10);
	return v;
}

/* Decodes the \u escape at `*s`. Returns false if the escape is one half of a surrogate pair without the other. */
static bool take_code(const unsigned char **s, const unsigned char *end, uint32_t *c)
{
	*c = hex(*s + 2);
	*s += 6;
	if (*c < 0xd800 || *c > 0xdfff)
		return true;
	if (*c > 0xdbff || end - *s < 6 || (*s)[0] != '\\' || (*s)[1] != 'u')
		return false;
	uint32_t low = hex(*s + 2);
	*s += 6;
	*c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
	return low >= 0xdc00 && low <= 0xdfff;
}

static char *put_utf8(char *to, uint32_t c)
{
	static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
	unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	*to++ = (char)(lead[more] | c >> 6 * more);
	while (more-- > 0)
		*to++ = (char)(0x80 | (c >> 6 * more & 0x3f));
	return to;
}

int hw_json_unquote(const char *text, size_t len, char *buf)
{
	static const char names[] = "bfnrt", bytes[] = "\b\f\n\r\t";
	const unsigned char *s = (const unsigned char *)text + 1, *end = (const unsigned char *)text + len - 1;
	char *to = buf;
	uint32_t c;
	while (s < end) {
		if (*s != '\\') {
			*to++ = (char)*s++;
		} else if (s[1] == 'u') {
			if (!take_code(&s, end, &c))
				return -EINVAL;
			to = put_utf8(to, c);
		} else {
			const char *name = strchr(names, s[1]);
			*to++ = name ? bytes[name - names] : (char)s[1];
			s += 2;
		}
	}
	return (int)(to - buf);
}
