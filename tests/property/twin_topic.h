/* SPDX-License-Identifier: MIT */
/*
 * The naive twin of a topic template: MQTT 5, section 4.7, and the rules of captures, applied level by level and by
 * trying all splits. It compiles nothing, and may be slow.
 */
#ifndef HW_TWIN_TOPIC_H
#define HW_TWIN_TOPIC_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define TWIN_LEVELS 64

struct twin_text {
	const char *at;
	size_t len;
};

struct twin_levels {
	struct twin_text level[TWIN_LEVELS];
	size_t n; /* TWIN_LEVELS + 1: too many to be looked at */
};

static inline struct twin_levels twin_split(struct twin_text t)
{
	struct twin_levels l = {.n = 0};
	for (size_t from = 0, at = 0; at <= t.len; at++) {
		if (at < t.len && t.at[at] != '/')
			continue;
		if (l.n == TWIN_LEVELS) {
			l.n = TWIN_LEVELS + 1;
			return l;
		}
		l.level[l.n++] = (struct twin_text){t.at + from, at - from};
		from = at + 1;
	}
	return l;
}

static inline bool twin_is(struct twin_text level, const char *text)
{
	return level.len == strlen(text) && memcmp(level.at, text, level.len) == 0;
}

static inline bool twin_several(struct twin_text level)
{
	return level.len > 5 && level.at[0] == '{' && memcmp(level.at + level.len - 4, "...}", 4) == 0;
}

/* The values are stored in `values`, in the order of the template. */
static inline bool twin_rest(const struct twin_levels *p, size_t i, const struct twin_levels *t, size_t j,
                             struct twin_text *values)
{
	if (i == p->n)
		return j == t->n;
	struct twin_text want = p->level[i];
	if (twin_is(want, "#"))
		return true;
	if (j == t->n)
		return false;
	struct twin_text has = t->level[j];
	if (twin_several(want)) {
		for (size_t end = j; end < t->n; end++) {
			size_t len = (size_t)(t->level[end].at + t->level[end].len - has.at);
			*values = (struct twin_text){has.at, len};
			if (twin_rest(p, i + 1, t, end + 1, values + 1))
				return true;
		}
		return false;
	}
	if (want.len > 0 && want.at[0] == '{') {
		*values = has;
		return twin_rest(p, i + 1, t, j + 1, values + 1);
	}
	if (!twin_is(want, "+") && (want.len != has.len || memcmp(want.at, has.at, has.len) != 0))
		return false;
	return twin_rest(p, i + 1, t, j + 1, values);
}

/* A wildcard on the first level does not match topics that begin with $. */
static inline bool twin_hidden(struct twin_text pattern, struct twin_text topic)
{
	return topic.len > 0 && topic.at[0] == '$' && pattern.len > 0 && strchr("+#{", pattern.at[0]);
}

#endif
