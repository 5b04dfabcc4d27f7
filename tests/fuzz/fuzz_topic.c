/* SPDX-License-Identifier: MIT */
/*
 * Topic templates. Input: a template, a NUL, a topic, a NUL, an id. What compiles must match what it renders, give the
 * same id back, and agree with the plain reading of MQTT's rules on every topic.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "heartwheel/topic.h"

struct text {
	const char *at;
	size_t len;
};

static struct text cut(struct text *rest)
{
	struct text t = *rest;
	const char *end = memchr(t.at, '\0', t.len);
	if (!end)
		return *rest = (struct text){t.at + t.len, 0}, t;
	t.len = (size_t)(end - t.at);
	*rest = (struct text){end + 1, rest->len - t.len - 1};
	return t;
}

/* The level at the beginning of a text. */
static struct text level(struct text t)
{
	const char *end = t.len ? memchr(t.at, '/', t.len) : NULL;
	return (struct text){t.at, end ? (size_t)(end - t.at) : t.len};
}

/* Steps over a level; false if it was the last one. */
static bool step(struct text *t, struct text l)
{
	if (t->len == l.len)
		return false;
	*t = (struct text){t->at + l.len + 1, t->len - l.len - 1};
	return true;
}

/* The naive twin: level by level, as MQTT 5 section 4.7 words it. */
static bool matches(struct text pattern, struct text topic, struct text *id)
{
	if (topic.len == 0)
		return false;
	if (topic.at[0] == '$' && (pattern.at[0] == '+' || pattern.at[0] == '#' || pattern.at[0] == '{'))
		return false;
	for (;;) {
		struct text p = level(pattern), t = level(topic);
		if (p.len == 1 && *p.at == '#')
			return true;
		if (p.len == 4 && memcmp(p.at, "{id}", 4) == 0)
			*id = t;
		else if (!(p.len == 1 && *p.at == '+') && (p.len != t.len || memcmp(p.at, t.at, p.len) != 0))
			return false;
		bool more = step(&pattern, p);
		if (step(&topic, t) != more) /* "a/#" matches "a" too */
			return more && pattern.len == 1 && *pattern.at == '#';
		if (!more)
			return true;
	}
}

static void check_match(const struct hw_topic *t, const char *pattern, struct text topic)
{
	const char *id = "?";
	size_t id_len = 1;
	struct text want = {0};
	bool does = hw_topic_match(t, topic.at, topic.len, &id, &id_len);
	bool should = matches((struct text){pattern, strlen(pattern)}, topic, &want);
	MUST(does == should);
	if (does)
		MUST(id_len == want.len && (id_len == 0 || id == want.at));
	else
		MUST(*id == '?' && id_len == 1);
}

static void check_render(const struct hw_topic *t, struct text id)
{
	static char topic[HW_TOPIC_MAX + 1];
	char small[16];
	const char *back;
	size_t back_len;
	int len = hw_topic_render(t, id.at, id.len, topic, sizeof(topic));
	int too_long = hw_topic_render(t, id.at, id.len, small, sizeof(small));
	if (len < 0) {
		MUST(len == -ENAMETOOLONG || len == -EINVAL);
		return;
	}
	MUST(strlen(topic) == (size_t)len);
	MUST(len < (int)sizeof(small) ? strcmp(small, topic) == 0 : too_long == -ENAMETOOLONG);
	if (topic[0] == '$' && t->filter[0] == '+')
		return; /* an id that begins with $ makes a topic that a wildcard does not match */
	MUST(hw_topic_match(t, topic, (size_t)len, &back, &back_len));
	MUST(back_len == id.len && memcmp(back, id.at, id.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text rest = {(const char *)data, size};
	struct text pattern = cut(&rest), topic = cut(&rest), id = cut(&rest);
	char *text = malloc(pattern.len + 1);
	MUST(text);
	memcpy(text, pattern.at, pattern.len);
	text[pattern.len] = '\0';
	bool good_id = hw_id_valid(id.at, id.len);
	for (int publishable = 0; publishable < 2; publishable++) {
		struct hw_topic t;
		const char *why = NULL;
		int rc = hw_topic_compile(&t, text, publishable, &why);
		if (rc != 0) {
			MUST(rc == -EINVAL && why && *why);
			continue;
		}
		MUST(strlen(t.filter) == t.filter_len && t.filter[t.id_at] == '+');
		check_match(&t, text, topic);
		if (publishable && good_id && !memchr(id.at, '/', id.len))
			check_render(&t, id);
		hw_topic_fini(&t);
	}
	free(text);
	return 0;
}
