/* SPDX-License-Identifier: MIT */
/*
 * Topic templates.
 *
 * Invariant of a compiled template: `filter` is a valid MQTT filter. If the template has exactly one capture, of one
 * level, filter[id_at] is the `+` of that capture. The bytes before it are the same in text and filter, so id_at is an
 * offset in both. Otherwise id_at is the end of the filter.
 *
 * Cost: matching a plain template takes two compares and a search through the id. A template with other wildcards,
 * several captures or {name...} is compared level by level. Both read the topic once and copy nothing.
 */
#include "heartwheel/topic.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "heartwheel/utf8.h"

#define SHARE  "$share/"
#define DOTS   "..."
#define CANARY "heartwheel-"

/* --- levels ------------------------------------------------------------------ */

/* Moves past the level at `*s` and its slash. After the last level, sets `*s` to NULL and returns false. */
static bool next_level(const char **s, const char *end, struct hw_value *level)
{
	if (!*s)
		return false;
	const char *slash = memchr(*s, '/', (size_t)(end - *s));
	*level = (struct hw_value){*s, (size_t)((slash ? slash : end) - *s)};
	*s = slash ? slash + 1 : NULL;
	return true;
}

static bool is(struct hw_value level, char c)
{
	return level.len == 1 && *level.text == c;
}

static bool is_capture(struct hw_value level)
{
	return level.len > 0 && *level.text == '{';
}

static bool same(struct hw_value a, struct hw_value b)
{
	return a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
}

static struct hw_value name_of(struct hw_value level, bool *several)
{
	size_t dots = sizeof(DOTS) - 1, len = level.len - 2;
	*several = len > dots && memcmp(level.text + 1 + len - dots, DOTS, dots) == 0;
	return (struct hw_value){level.text + 1, *several ? len - dots : len};
}

/* --- compiling --------------------------------------------------------------- */

static const char *check_bytes(const char *text, size_t len)
{
	uint32_t c;
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)text + i, len - i, &c);
		if (n == 0)
			return "is not valid UTF-8";
		if (hw_utf8_is_control(c))
			return "has a control character";
	}
	return NULL;
}

static const char *check_capture(const struct hw_topic *t, struct hw_value level)
{
	bool several;
	if (level.len < 3 || level.text[level.len - 1] != '}')
		return "{id} must be a whole level";
	struct hw_value name = name_of(level, &several);
	for (size_t i = 0; i < name.len; i++)
		if (!isalnum((unsigned char)name.text[i]) && name.text[i] != '_' && name.text[i] != '-')
			return "a name in braces consists of ASCII letters, digits, '_' and '-'";
	if (name.len > HW_CAPTURE_NAME)
		return "a name in braces has at most 32 characters";
	if (several && t->tail != UINT_MAX)
		return "must not have two names that end with ...}: where the first one ends would be unknown";
	if (t->n_captures == HW_CAPTURES_MAX)
		return "has more than 8 names in braces";
	for (unsigned k = 0; k < t->n_captures; k++) {
		bool other;
		if (same(hw_topic_capture(t, k, &other), name))
			return "has the same name in braces twice";
	}
	return NULL;
}

static const char *check_level(struct hw_value level, bool last, bool publishable)
{
	bool plus = memchr(level.text, '+', level.len) != NULL, hash = memchr(level.text, '#', level.len) != NULL;
	if (memchr(level.text, '{', level.len) || memchr(level.text, '}', level.len))
		return "{id} must be a whole level";
	if (publishable && (plus || hash))
		return "must not have wildcards";
	if (plus && level.len != 1)
		return "+ must be a whole level";
	if (hash && (level.len != 1 || !last))
		return "# must be the whole last level";
	return NULL;
}

/* Checks and counts the levels. `tail` is UINT_MAX until a {name...} is found. */
static const char *check_levels(struct hw_topic *t, size_t len, bool publishable)
{
	const char *s = t->text, *why = NULL;
	struct hw_value level;
	bool several;
	t->tail = UINT_MAX;
	while (!why && next_level(&s, t->text + len, &level)) {
		if (!is_capture(level)) {
			why = check_level(level, !s, publishable);
			t->wild |= is(level, '+') || is(level, '#');
			if (t->tail != UINT_MAX && is(level, '#'))
				why = "must not have a # after {name...}";
			t->tail += t->tail != UINT_MAX;
			continue;
		}
		why = check_capture(t, level);
		if (why)
			break;
		name_of(level, &several);
		t->slot[t->n_captures] = (uint8_t)t->n_captures;
		t->n_captures++;
		t->tail = several ? 0 : t->tail == UINT_MAX ? UINT_MAX : t->tail + 1;
	}
	t->walked = t->n_captures > 1 || t->tail != UINT_MAX;
	t->tail = t->tail == UINT_MAX ? 0 : t->tail;
	return why;
}

static const char *check(struct hw_topic *t, enum hw_topic_kind kind)
{
	size_t len = strlen(t->text);
	const char *why;
	if (len == 0)
		return "is empty";
	if (len > HW_TOPIC_MAX - HW_ID_MAX)
		return "is too long";
	if ((why = check_bytes(t->text, len)))
		return why;
	/* With several readers, heartwheel itself puts $share in front of a filter. */
	if (strncmp(t->text, SHARE, sizeof(SHARE) - 1) == 0)
		return "must not begin with $share/";
	if ((why = check_levels(t, len, kind == HW_TOPIC_STATUS || kind == HW_TOPIC_FORM)))
		return why;
	if (kind == HW_TOPIC_BATCH && t->n_captures > 0)
		return "must not have {id}: the device ids of a batch are in its payload";
	if ((kind == HW_TOPIC_HEARTBEAT || kind == HW_TOPIC_STATUS) && t->n_captures == 0)
		return "needs exactly one {id} level";
	return NULL;
}

/* Writes the filter of a template. The filter is never longer than the text, because a capture has at least three
 * bytes. */
static void write_filter(struct hw_topic *t)
{
	const char *s = t->text, *end = s + strlen(s);
	struct hw_value level;
	bool several = false;
	char *to = t->filter;
	t->id_at = SIZE_MAX;
	while (!several && next_level(&s, end, &level)) {
		if (is_capture(level)) {
			name_of(level, &several);
			t->id_at = (size_t)(to - t->filter);
			*to++ = several ? '#' : '+';
		} else {
			memcpy(to, level.text, level.len);
			to += level.len;
		}
		if (s && !several)
			*to++ = '/';
	}
	*to = '\0';
	t->filter_len = (size_t)(to - t->filter);
	t->value_at = t->id_at;
	if (t->walked || t->n_captures == 0)
		t->id_at = t->filter_len;
	t->plain = !t->wild && !t->walked;
	/* If the last level is fixed text, a topic can match only if it ends with the last byte of its template. */
	if ((t->plain || t->walked) && t->n_captures > 0 && !is_capture(level) && !is(level, '+') && !is(level, '#') &&
	    !s)
		t->last = end[-1];
}

/* Finds the capture of the first value in the filter. If the template has no {name...}, its filter can then match
 * topics by itself. */
static void find_first_value(struct hw_topic *t)
{
	unsigned k = 0, level = 0;
	const char *s = t->text, *end = s + strlen(s);
	struct hw_value one;
	t->by_levels = t->walked && strlen(t->filter) == t->filter_len && !strstr(t->text, DOTS "}");
	for (; t->by_levels && next_level(&s, end, &one); level++)
		if (is_capture(one) && t->slot[k++] == 0)
			break;
	const char *f = t->filter;
	for (; t->by_levels && level > 0; level--)
		f = strchr(f, '/') + 1;
	t->value_at = t->by_levels ? (size_t)(f - t->filter) : t->value_at;
}

static unsigned count_slashes(const char *s, const char *end)
{
	unsigned n = 0;
	for (; s < end; s++)
		n += *s == '/';
	return n;
}

static void find_span(struct hw_topic *t)
{
	const char *end = t->text + strlen(t->text), *first = strchr(t->text, '{'), *last = strrchr(t->text, '}');
	if (!first || !last)
		return;
	last++;
	t->wild_before = memchr(t->text, '+', (size_t)(first - t->text));
	t->before = (uint16_t)(t->wild_before ? count_slashes(t->text, first) : (size_t)(first - t->text));
	t->wild_after = strpbrk(last, "+#");
	t->after = (uint16_t)(end - last);
	t->levels = (uint16_t)(count_slashes(first, last) + 1);
}

int hw_topic_compile(struct hw_topic *t, const char *text, enum hw_topic_kind kind, const char **why)
{
	memset(t, 0, sizeof(*t));
	t->text = strdup(text ? text : "");
	t->filter = t->text ? malloc(strlen(t->text) + 1) : NULL;
	*why = t->filter ? check(t, kind) : "finds no memory";
	if (*why) {
		int rc = t->filter ? -EINVAL : -ENOMEM;
		hw_topic_fini(t);
		return rc;
	}
	write_filter(t);
	find_span(t);
	find_first_value(t);
	return 0;
}

void hw_topic_fini(struct hw_topic *t)
{
	free(t->filter);
	free(t->text);
	memset(t, 0, sizeof(*t));
}

/* --- captures ---------------------------------------------------------------- */

struct hw_value hw_topic_capture(const struct hw_topic *t, unsigned k, bool *several)
{
	const char *s = t->text;
	struct hw_value level;
	while (next_level(&s, t->text + strlen(t->text), &level))
		if (is_capture(level) && k-- == 0)
			return name_of(level, several);
	return (struct hw_value){"", 0};
}

/* Returns the index of a name among the captures of a template, or HW_SLOT_NONE. */
static uint8_t find_capture(const struct hw_topic *t, struct hw_value name)
{
	bool several;
	for (unsigned k = 0; k < t->n_captures; k++)
		if (same(hw_topic_capture(t, k, &several), name))
			return (uint8_t)k;
	return HW_SLOT_NONE;
}

uint8_t hw_topic_find_value(const struct hw_topic *form, const struct hw_value *more, unsigned n_more,
                            struct hw_value name)
{
	uint8_t at = find_capture(form, name);
	for (unsigned k = 0; at == HW_SLOT_NONE && k < n_more; k++)
		if (same(more[k], name))
			at = (uint8_t)(form->n_captures + k);
	return at;
}

int hw_topic_bind(struct hw_topic *t, const struct hw_topic *form, const struct hw_value *more, unsigned n_more,
                  const char **why)
{
	bool several;
	*why = NULL;
	for (unsigned k = 0; k < t->n_captures; k++) {
		struct hw_value name = hw_topic_capture(t, k, &several);
		t->slot[k] = hw_topic_find_value(form, more, n_more, name);
		if (t->slot[k] == HW_SLOT_NONE && !same(name, (struct hw_value){"id", 2}))
			*why = "has a name in braces that neither the id nor a parent uses";
	}
	for (unsigned k = 0; k < form->n_captures + n_more; k++) {
		bool is_form = k < form->n_captures;
		struct hw_value name = is_form ? hw_topic_capture(form, k, &several) : more[k - form->n_captures];
		if (find_capture(t, name) == HW_SLOT_NONE)
			*why = is_form ? "lacks a name in braces that the id uses"
			               : "lacks a name in braces that a parent uses";
	}
	find_first_value(t);
	return *why ? -EINVAL : 0;
}

/* Skips `n` levels with their slashes. */
static const char *skip_levels(const char *s, const char *end, unsigned n)
{
	for (; n > 0 && s < end; n--) {
		const char *slash = memchr(s, '/', (size_t)(end - s));
		s = slash ? slash + 1 : end;
	}
	return s;
}

struct hw_value hw_topic_span(const struct hw_topic *t, const char *topic, size_t len)
{
	const char *end = topic + len, *from = topic + (t->before < len ? t->before : len);
	if (t->wild_before)
		from = skip_levels(topic, end, t->before);
	if (!t->wild_after)
		end -= t->after < end - from ? t->after : end - from;
	else if (t->tail == 0)
		end = skip_levels(from, end, t->levels);
	return (struct hw_value){from, (size_t)(end - from)};
}

/* --- matching ---------------------------------------------------------------- */

static bool match_plain(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len)
{
	size_t before = t->id_at, after = t->filter_len - before - 1;
	if (len < before + after || !hw_bytes_equal(topic, t->filter, before) ||
	    !hw_bytes_equal(topic + len - after, t->filter + before + 1, after))
		return false;
	if (hw_bytes_contain(topic + before, '/', len - before - after))
		return false;
	*id = topic + before;
	*id_len = len - before - after;
	return true;
}

static bool match_whole(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len)
{
	if (len != t->filter_len || memcmp(topic, t->filter, len) != 0)
		return false;
	*id = topic;
	*id_len = 0;
	return true;
}

static bool match_levels(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len)
{
	const char *f = t->filter, *f_end = f + t->filter_len, *end = topic + len, *found = topic;
	size_t found_len = 0;
	for (const char *s = topic; *f != '#'; f++) {
		const char *slash = memchr(s, '/', (size_t)(end - s));
		size_t n = (size_t)((slash ? slash : end) - s);
		if (*f == '+') {
			if (f == t->filter + t->value_at) {
				found = s;
				found_len = n;
			}
			f++;
		} else {
			const char *f_slash = memchr(f, '/', (size_t)(f_end - f));
			size_t f_n = (size_t)((f_slash ? f_slash : f_end) - f);
			if (f_n != n || memcmp(f, s, n) != 0)
				return false;
			f += n;
		}
		if (f == f_end) {
			if (slash)
				return false;
			break;
		}
		/* The filter has more levels. A topic that ends here matches only if `#` follows. */
		if (!slash && f[1] != '#')
			return false;
		if (slash)
			s = slash + 1;
	}
	*id = found;
	*id_len = found_len;
	return true;
}

/* Finds the value of {name...}: the levels of the topic without the last `tail`. Returns false if the topic has too few
 * levels. */
static bool take_several(const char *from, const char *end, unsigned tail, struct hw_value *value)
{
	for (; tail > 0; tail--) {
		const char *slash = memrchr(from, '/', (size_t)(end - from));
		if (!slash)
			return false;
		end = slash;
	}
	*value = (struct hw_value){from, (size_t)(end - from)};
	return true;
}

static bool walk(const struct hw_topic *t, const char *topic, size_t len, struct hw_value *values)
{
	const char *p = t->text, *p_end = p + strlen(p), *s = topic, *end = topic + len;
	struct hw_value found[HW_CAPTURES_MAX], want, has;
	unsigned k = 0;
	bool several;
	while (next_level(&p, p_end, &want)) {
		if (is(want, '#'))
			p = s = NULL; /* `#` also matches a topic that ends before it */
		else if (!next_level(&s, end, &has))
			return false;
		else if (is_capture(want)) {
			name_of(want, &several);
			if (several) {
				if (!take_several(has.text, end, t->tail, &has))
					return false;
				s = t->tail ? has.text + has.len + 1 : NULL;
			}
			found[k++] = has;
		} else if (!is(want, '+') && !same(want, has)) {
			return false;
		}
	}
	if (s)
		return false;
	for (k = 0; k < t->n_captures; k++)
		if (t->slot[k] != HW_SLOT_NONE)
			values[t->slot[k]] = found[k];
	return true;
}

bool hw_value_lacks_level(struct hw_value v)
{
	return v.len == 0 || v.text[0] == '/' || v.text[v.len - 1] == '/' || memmem(v.text, v.len, "//", 2);
}

bool hw_topic_values(const struct hw_topic *t, const char *topic, size_t len, struct hw_value *values)
{
	return t->filter && len > 0 && walk(t, topic, len, values);
}

static bool match_walked(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len)
{
	struct hw_value values[HW_CAPTURES_MAX] = {{topic, 0}};
	if (!walk(t, topic, len, values))
		return false;
	*id = values[0].text;
	*id_len = hw_value_lacks_level(values[0]) ? 0 : values[0].len;
	return true;
}

bool hw_topic_match(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len)
{
	if (!t->filter || len == 0)
		return false;
	/* A filter that begins with a wildcard does not match topics that begin with $ (MQTT 5, 4.7.2). */
	if (topic[0] == '$' && (t->filter[0] == '+' || t->filter[0] == '#'))
		return false;
	if (!t->plain)
		return t->walked && !t->by_levels ? match_walked(t, topic, len, id, id_len)
		                                  : match_levels(t, topic, len, id, id_len);
	return t->id_at < t->filter_len ? match_plain(t, topic, len, id, id_len)
	                                : match_whole(t, topic, len, id, id_len);
}

bool hw_topic_covers(const struct hw_topic *wide, const struct hw_topic *narrow)
{
	const char *w = wide->filter, *w_end = w + wide->filter_len, *n = narrow->filter,
		   *n_end = n + narrow->filter_len;
	struct hw_value a, b;
	if (wide->tail > 0)
		return strcmp(wide->text, narrow->text) == 0;
	if (*n == '$' && (*w == '+' || *w == '#'))
		return false;
	while (next_level(&w, w_end, &a)) {
		if (is(a, '#'))
			return true;
		if (!next_level(&n, n_end, &b) || is(b, '#') || (!is(a, '+') && !same(a, b)))
			return false;
	}
	return !n;
}

/* --- filters ----------------------------------------------------------------- */

static bool is_level(const char *a, size_t n, char wildcard)
{
	return n == 1 && *a == wildcard;
}

bool hw_topic_filters_overlap(const char *a, const char *b)
{
	for (;;) {
		size_t la = strcspn(a, "/"), lb = strcspn(b, "/");
		if (is_level(a, la, '#') || is_level(b, lb, '#'))
			return true;
		if (!is_level(a, la, '+') && !is_level(b, lb, '+') && (la != lb || memcmp(a, b, la) != 0))
			return false;
		a += la;
		b += lb;
		if (!*a || !*b) /* a/# matches a as well */
			return (!*a && !*b) || strcmp(a, "/#") == 0 || strcmp(b, "/#") == 0;
		a++;
		b++;
	}
}

/* --- rendering --------------------------------------------------------------- */

int hw_topic_render(const struct hw_topic *t, const char *id, size_t id_len, char *buf, size_t cap)
{
	if (!t->filter || !t->plain || t->id_at == t->filter_len)
		return -EINVAL;
	size_t before = t->id_at, after = t->filter_len - before - 1;
	if (id_len > HW_ID_MAX || before + id_len + after >= cap)
		return -ENAMETOOLONG;
	memcpy(buf, t->filter, before);
	memcpy(buf + before, id, id_len);
	memcpy(buf + before + id_len, t->filter + before + 1, after + 1);
	return (int)(before + id_len + after);
}

int hw_topic_compose(const struct hw_topic *t, const struct hw_value *values, char *buf, size_t cap)
{
	const char *s = t->text, *end;
	struct hw_value level;
	size_t at = 0;
	unsigned k = 0;
	if (!t->filter || t->wild)
		return -EINVAL;
	end = s + strlen(s);
	while (next_level(&s, end, &level)) {
		if (is_capture(level) && t->slot[k++] != HW_SLOT_NONE)
			level = values[t->slot[k - 1]];
		if (at + level.len >= cap)
			return -ENAMETOOLONG;
		memcpy(buf + at, level.text, level.len);
		at += level.len;
		if (s)
			buf[at++] = '/';
	}
	buf[at] = '\0';
	return (int)at;
}

static bool is_wild(struct hw_value level)
{
	return is_capture(level) || is(level, '+') || is(level, '#');
}

char *hw_topic_canary(const struct hw_topic *t, const char *node)
{
	size_t before = sizeof(CANARY) - 1, node_len = strlen(node), len = strlen(t->text) + 1;
	const char *s = t->text, *end = t->text + len - 1;
	struct hw_value level;
	while (next_level(&s, end, &level))
		len += is_wild(level) ? before + node_len : 0;
	char *topic = malloc(len), *to = topic;
	if (!topic)
		return NULL;
	s = t->text;
	while (next_level(&s, end, &level)) {
		if (is_wild(level)) {
			memcpy(to, CANARY, before);
			memcpy(to + before, node, node_len);
			to += before + node_len;
		} else {
			memcpy(to, level.text, level.len);
			to += level.len;
		}
		*to++ = s ? '/' : '\0';
	}
	return topic;
}

bool hw_id_valid(const char *id, size_t len)
{
	uint32_t c;
	if (len == 0 || len > HW_ID_MAX)
		return false;
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)id + i, len - i, &c);
		if (n == 0 || hw_utf8_is_control(c) || c == '+' || c == '#')
			return false;
	}
	return true;
}
