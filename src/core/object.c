/* SPDX-License-Identifier: MIT */
/*
 * See object.h.
 *
 * cJSON accepts more than JSON: control characters, invalid UTF-8, and strings with \u0000 or a broken escape, which it
 * cuts there. So scan() checks the bytes first and refuses such texts. cJSON allocates memory for each value.
 * CJSON_NESTING_LIMIT limits the depth of its recursion.
 */
#include "core/object.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/json_tree.h"
#include "heartwheel/utf8.h"

/* --- parsing with cJSON ------------------------------------------------------- */

static bool is_space(unsigned char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Whether cJSON handles an escape correctly. It does not handle \u0000, which a C string cannot contain, or \u without
 * four hexadecimal digits, which cJSON reads as \u0000. */
static bool scan_escape(const unsigned char *s, size_t len)
{
	if (len < 2)
		return false;
	if (s[1] != 'u')
		return true;
	if (len < 6 || memcmp(s + 2, "0000", 4) == 0)
		return false;
	return isxdigit(s[2]) && isxdigit(s[3]) && isxdigit(s[4]) && isxdigit(s[5]);
}

/* Whether the bytes can be JSON: valid UTF-8, no control characters except white space between values, and only escapes
 * that scan_escape() accepts. */
static bool scan(const unsigned char *s, size_t len)
{
	bool quoted = false;
	uint32_t c;
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next(s + i, len - i, &c);
		if (n == 0 || (c < 0x20 && (quoted || !is_space((unsigned char)c))))
			return false;
		if (c == '"') {
			quoted = !quoted;
		} else if (c == '\\') {
			if (!scan_escape(s + i, len - i))
				return false;
			n = 2;
		}
	}
	return true;
}

/* Set if cJSON could not allocate memory. cJSON does not report why it failed, so its allocation hook sets this
 * flag. The hooks are global, and are set before a second thread starts. The flag exists once in each thread. */
static _Thread_local bool starved;

static void *take_memory(size_t size)
{
	void *p = malloc(size);
	starved |= !p;
	return p;
}

__attribute__((constructor)) static void set_hooks(void)
{
	cJSON_InitHooks(&(cJSON_Hooks){take_memory, free});
}

/* Parses the whole text into a tree. Returns NULL on an error, which is then in `*rc`. */
static cJSON *parse(const char *text, size_t len, int *rc)
{
	starved = false;
	cJSON *v = hw_json_tree(text, len);
	*rc = v ? 0 : starved ? -ENOMEM : -EINVAL;
	return v;
}

static struct hw_value value_in_tree(const cJSON *v)
{
	struct hw_value is = {.kind = HW_VALUE_NESTED, .tree = v};
	if (cJSON_IsString(v)) {
		is.kind = HW_VALUE_TEXT;
		is.text = v->valuestring;
		is.len = strlen(v->valuestring);
	} else if (cJSON_IsNumber(v)) {
		is.kind = HW_VALUE_NUMBER;
		is.number = v->valuedouble;
	} else if (cJSON_IsBool(v)) {
		is.kind = cJSON_IsTrue(v) ? HW_VALUE_TRUE : HW_VALUE_FALSE;
	} else if (cJSON_IsNull(v)) {
		is.kind = HW_VALUE_NULL;
	}
	return is;
}

int hw_object_open_tree(struct hw_object *o, const char *text, size_t len)
{
	int rc = -EINVAL;
	*o = (struct hw_object){.tree = NULL};
	while (len > 0 && is_space((unsigned char)text[len - 1]))
		len--;
	if (len > 0 && text[len - 1] == (text[0] == '{' ? '}' : '"') && scan((const unsigned char *)text, len))
		o->tree = parse(text, len, &rc);
	if (o->tree)
		o->root = value_in_tree(o->tree);
	return rc;
}

/* --- parsing in place --------------------------------------------------------- */

struct cursor {
	const char *s, *end;
};

/* Skips white space and returns the next byte; NUL at the end. */
static inline char peek(struct cursor *c)
{
	while (c->s < c->end && *c->s <= ' ' && is_space((unsigned char)*c->s))
		c->s++;
	return c->s < c->end ? *c->s : '\0';
}

static inline bool take(struct cursor *c, char what)
{
	bool there = peek(c) == what;
	c->s += there;
	return there;
}

/* Bytes that are the same in JSON and in the text: ASCII without quote, backslash and control characters. */
static const bool as_it_is[256] = {[0x20 ... 0x21] = true, [0x23 ... 0x5b] = true, [0x5d ... 0x7f] = true};

static bool take_text(struct cursor *c, const char **text, size_t *len)
{
	const char *s = c->s + 1, *end = c->end;
	uint32_t code;
	for (*text = s;;) {
		while (s < end && as_it_is[(unsigned char)*s])
			s++;
		if (s == end || *s == '"')
			break;
		size_t n = hw_utf8_next((const unsigned char *)s, (size_t)(end - s), &code);
		if (n < 2)
			return false;
		s += n;
	}
	*len = (size_t)(s - *text);
	c->s = s + 1;
	return s < end;
}

/* Reads a number as cJSON does, with strtod(), which expects the decimal point of the locale. */
static double read_number(const char *text, size_t len)
{
	char copy[HW_JSON_NUMBER_MAX + 1];
	memcpy(copy, text, len);
	copy[len] = '\0';
	char *point = memchr(copy, '.', len);
	if (point)
		*point = *localeconv()->decimal_point;
	return strtod(copy, NULL);
}

static size_t take_digits(struct cursor *c, uint64_t *number)
{
	const char *from = c->s;
	for (unsigned digit; c->s < c->end && (digit = (unsigned)(*c->s - '0')) <= 9; c->s++)
		*number = *number * 10 + digit;
	return (size_t)(c->s - from);
}

/*
 * Reads a number without strtod(). For nearly every number that devices send, a double holds its digits exactly, and
 * also the power of ten by which they are divided. The quotient of the two is then rounded as strtod() rounds (Clinger,
 * "How to read floating point numbers accurately", PLDI 1990).
 */
static bool take_number(struct cursor *c, double *number)
{
	static const double tens[] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,
	                              1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17};
	const char *from = c->s;
	uint64_t digits = 0;
	bool negative = *from == '-';
	c->s += negative;
	size_t whole = take_digits(c, &digits), behind = 0;
	if (whole == 0 || (whole > 1 && from[negative] == '0'))
		return false;
	if (c->s < c->end && *c->s == '.') {
		c->s++;
		behind = take_digits(c, &digits);
		if (behind == 0)
			return false;
	}
	if (c->s - from > HW_JSON_NUMBER_MAX)
		return false;
	if (whole + behind > 17 || digits > UINT64_C(1) << 53 || FLT_EVAL_METHOD != 0) {
		*number = read_number(from, (size_t)(c->s - from));
	} else {
		*number = (double)digits / tens[behind];
		if (negative)
			*number = -*number;
	}
	return true;
}

static bool take_word(struct cursor *c, const char *word, size_t len)
{
	bool is = (size_t)(c->end - c->s) >= len && memcmp(c->s, word, len) == 0;
	c->s += is ? len : 0;
	return is;
}

static bool take_scalar(struct cursor *c, struct hw_value *v)
{
	v->text = c->s;
	switch (*c->s) {
	case 't':
		v->kind = HW_VALUE_TRUE;
		return take_word(c, "true", 4);
	case 'f':
		v->kind = HW_VALUE_FALSE;
		return take_word(c, "false", 5);
	case 'n':
		v->kind = HW_VALUE_NULL;
		return take_word(c, "null", 4);
	default:
		v->kind = HW_VALUE_NUMBER;
		return take_number(c, &v->number);
	}
}

/* Returns false if the value is not plain or not JSON. */
static bool take_value(struct cursor *c, struct hw_value *v)
{
	char first = peek(c);
	v->tree = NULL;
	if (first == '"') {
		v->kind = HW_VALUE_TEXT;
		return take_text(c, &v->text, &v->len);
	}
	if (first == '{' || first == '[') {
		v->kind = HW_VALUE_NESTED;
		v->text = c->s;
		v->len = hw_json_plain(c->s, (size_t)(c->end - c->s));
		c->s += v->len;
		return v->len > 0;
	}
	if (c->s == c->end || !take_scalar(c, v))
		return false;
	v->len = (size_t)(c->s - v->text);
	return true;
}

static bool take_members(struct cursor *c, struct hw_object *o)
{
	if (!take(c, '{'))
		return false;
	if (take(c, '}'))
		return true;
	do {
		struct hw_member *m = &o->members[o->n++];
		if (o->n > HW_OBJECT_PLAIN || peek(c) != '"' || !take_text(c, &m->name, &m->len) || !take(c, ':') ||
		    !take_value(c, &m->value))
			return false;
	} while (take(c, ','));
	return take(c, '}');
}

/* --- both parsers ------------------------------------------------------------- */

int hw_object_open(struct hw_object *o, const char *text, size_t len)
{
	struct cursor c = {text, text + len};
	o->tree = NULL;
	o->n = 0;
	o->root = (struct hw_value){.kind = HW_VALUE_NESTED, .text = text, .len = len};
	bool plain = text[0] == '{' ? take_members(&c, o) : take_value(&c, &o->root);
	if (plain && peek(&c) == '\0' && c.s == c.end)
		return 0;
	return hw_object_open_tree(o, text, len);
}

void hw_object_close(struct hw_object *o)
{
	cJSON_Delete(o->tree);
}

static bool next_in_tree(const cJSON *object, struct hw_walk *w)
{
	w->tree = w->tree ? w->tree->next : object->child;
	if (!w->tree)
		return false;
	w->at = (struct hw_member){w->tree->string, strlen(w->tree->string), value_in_tree(w->tree)};
	return true;
}

/* Moves to the next member of an object in a plain text. */
static bool next_in_text(const struct hw_value *object, struct hw_walk *w)
{
	struct hw_json_member m;
	if (!hw_json_object_next(object->text, object->len, &w->next, &m))
		return false;
	struct cursor c = {m.value, m.value + m.value_len};
	w->at = (struct hw_member){m.key, m.key_len, {.kind = HW_VALUE_NESTED, .text = m.value, .len = m.value_len}};
	if (*m.value == '{' || *m.value == '[')
		return true;
	if (!take_value(&c, &w->at.value) || c.s < c.end) /* a number with an exponent */
		w->at.value = (struct hw_value){HW_VALUE_NUMBER, m.value, m.value_len,
		                                read_number(m.value, m.value_len), NULL};
	return true;
}

bool hw_object_next(const struct hw_object *o, struct hw_walk *w)
{
	if (o->tree)
		return cJSON_IsObject(o->tree) && next_in_tree(o->tree, w);
	if (w->next == o->n)
		return false;
	w->at = o->members[w->next++];
	return true;
}

static bool is_named(const struct hw_member *m, const char *name, size_t len)
{
	return m->len == len && memcmp(m->name, name, len) == 0;
}

static bool next_within(const struct hw_value *v, struct hw_walk *w)
{
	if (v->kind != HW_VALUE_NESTED)
		return false;
	if (v->tree)
		return cJSON_IsObject(v->tree) && next_in_tree(v->tree, w);
	return v->text[0] == '{' && next_in_text(v, w);
}

struct hw_value hw_object_at(const struct hw_object *o, const char *path)
{
	struct hw_walk w = {.next = 0};
	size_t n = strcspn(path, ".");
	bool found = false;
	while (!found && hw_object_next(o, &w))
		found = is_named(&w.at, path, n);
	while (found && path[n]) {
		struct hw_value v = w.at.value;
		path += n + 1;
		n = strcspn(path, ".");
		w = (struct hw_walk){.next = 0};
		found = false;
		while (!found && next_within(&v, &w))
			found = is_named(&w.at, path, n);
	}
	return found ? w.at.value : (struct hw_value){.kind = HW_VALUE_ABSENT};
}

/* Whether all numbers are finite. 1e999 is valid JSON, but it cannot be written again. The parser limits the depth of
 * this recursion. */
static bool all_finite(const cJSON *v)
{
	const cJSON *m;
	if (cJSON_IsNumber(v))
		return isfinite(v->valuedouble);
	cJSON_ArrayForEach(m, v)
	{
		if (!all_finite(m))
			return false;
	}
	return true;
}

static int print_tree(const cJSON *v, char *buf, size_t cap)
{
	if (!all_finite(v))
		return -ERANGE;
	if (!cJSON_PrintPreallocated((cJSON *)(uintptr_t)v, buf, (int)cap, 0))
		return -E2BIG;
	return (int)strlen(buf);
}

int hw_value_print(const struct hw_value *v, char *buf, size_t cap)
{
	int rc;
	size_t quote = v->kind == HW_VALUE_TEXT;
	if (v->tree)
		return print_tree(v->tree, buf, cap);
	cJSON *tree = parse(v->text - quote, v->len + 2 * quote, &rc);
	if (tree)
		rc = print_tree(tree, buf, cap);
	cJSON_Delete(tree);
	return rc;
}
