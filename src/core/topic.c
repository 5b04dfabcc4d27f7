/* SPDX-License-Identifier: MIT */
/*
 * Topic templates.
 *
 * Invariant of a compiled template: `filter` is a valid MQTT filter, and filter[id_at] is the `+` that stands for
 * `{id}`. Since there is exactly one such level, all bytes before it are those of the text, and id_at is an offset in
 * both. A batch's template has none: its filter is its text, and id_at is where that ends.
 *
 * Cost: a plain template is two compares and a search over the id. One with other wildcards is walked level by level;
 * the topic is read once either way, and nothing is copied.
 */
#include "heartwheel/topic.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/utf8.h"

#define ID     "{id}"
#define ID_LEN (sizeof(ID) - 1)
#define SHARE  "$share/"

enum kind { HEARTBEAT, STATUS, BATCH };

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

/* One level that is not `{id}`. */
static const char *check_level(const char *level, size_t len, bool last, bool publishable)
{
	bool plus = memchr(level, '+', len) != NULL, hash = memchr(level, '#', len) != NULL;

	if (memmem(level, len, ID, ID_LEN))
		return "{id} must be a whole level";
	if (publishable && (plus || hash))
		return "must not have wildcards";
	if (plus && len != 1)
		return "+ must be a whole level";
	if (hash && (len != 1 || !last))
		return "# must be the whole last level";
	return NULL;
}

static const char *check_levels(const char *text, size_t len, struct hw_topic *t, enum kind kind)
{
	const char *end = text + len, *why;
	unsigned ids = 0;

	t->plain = true;
	t->id_at = len;
	for (const char *s = text, *slash;; s = slash + 1) {
		slash = memchr(s, '/', (size_t)(end - s));
		size_t n = (size_t)((slash ? slash : end) - s);
		if (n == ID_LEN && memcmp(s, ID, ID_LEN) == 0) {
			t->id_at = (size_t)(s - text);
			ids++;
		} else if ((why = check_level(s, n, !slash, kind == STATUS))) {
			return why;
		} else if (n == 1 && (*s == '+' || *s == '#')) {
			t->plain = false;
		}
		if (!slash)
			break;
	}
	if (kind == BATCH)
		return ids == 0 ? NULL : "must not have {id}: the ids of a batch are in its payload";
	return ids == 1 ? NULL : "needs exactly one {id} level";
}

static const char *check(const char *text, size_t len, struct hw_topic *t, enum kind kind)
{
	const char *why;

	if (len == 0)
		return "is empty";
	if (len > HW_TOPIC_MAX - HW_ID_MAX)
		return "is too long";
	if ((why = check_bytes(text, len)))
		return why;
	/* The readers put this before a filter themselves when there are several of them. */
	if (strncmp(text, SHARE, sizeof(SHARE) - 1) == 0)
		return "must not begin with $share/";
	return check_levels(text, len, t, kind);
}

static int compile(struct hw_topic *t, const char *text, enum kind kind, const char **why)
{
	size_t len = text ? strlen(text) : 0;

	memset(t, 0, sizeof(*t));
	*why = check(text, len, t, kind);
	if (*why)
		return -EINVAL;
	t->filter_len = kind == BATCH ? len : len - ID_LEN + 1;
	t->filter = malloc(t->filter_len + 1);
	if (!t->filter) {
		*why = "finds no memory";
		return -ENOMEM;
	}
	memcpy(t->filter, text, t->id_at);
	t->filter[t->filter_len] = '\0';
	if (kind == BATCH)
		return 0;
	t->filter[t->id_at] = '+';
	/* With the NUL. */
	memcpy(t->filter + t->id_at + 1, text + t->id_at + ID_LEN, len - t->id_at - ID_LEN + 1);
	if (t->plain && t->id_at + 1 < t->filter_len)
		t->last = t->filter[t->filter_len - 1];
	return 0;
}

int hw_topic_compile(struct hw_topic *t, const char *text, bool publishable, const char **why)
{
	return compile(t, text, publishable ? STATUS : HEARTBEAT, why);
}

int hw_topic_compile_batch(struct hw_topic *t, const char *text, const char **why)
{
	return compile(t, text, BATCH, why);
}

void hw_topic_fini(struct hw_topic *t)
{
	free(t->filter);
	memset(t, 0, sizeof(*t));
}

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
			if (f == t->filter + t->id_at) {
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
		/* The filter goes on after this `/`. A topic that does not can only be the parent of a `#`. */
		if (!slash && f[1] != '#')
			return false;
		if (slash)
			s = slash + 1;
	}
	*id = found;
	*id_len = found_len;
	return true;
}

bool hw_topic_match(const struct hw_topic *t, const char *topic, size_t len, const char **id, size_t *id_len)
{
	if (!t->filter || len == 0)
		return false;
	/* The broker's own topics are not for filters that begin with a wildcard (MQTT 5, 4.7.2). */
	if (topic[0] == '$' && t->filter[0] == '+')
		return false;
	if (!t->plain)
		return match_levels(t, topic, len, id, id_len);
	return t->id_at < t->filter_len ? match_plain(t, topic, len, id, id_len)
	                                : match_whole(t, topic, len, id, id_len);
}

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
