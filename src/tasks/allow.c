/* SPDX-License-Identifier: MIT */
/* See allow.h. */
#include "tasks/allow.h"

#include <mosquitto.h>
#include <stdio.h>
#include <string.h>

#include "tasks/settings.h"

#define PARTS      3
#define FILTER_MAX 1024
#define SENDER     "{sender}"

/* Splits a rule into its three words. Returns false if it has more or fewer. */
static bool split(const char *text, struct hw_text parts[PARTS])
{
	for (size_t i = 0; i < PARTS; i++) {
		text += strspn(text, " \t");
		size_t len = strcspn(text, " \t");
		if (len == 0)
			return false;
		parts[i] = (struct hw_text){text, len};
		text += len;
	}
	return text[strspn(text, " \t")] == '\0';
}

/* Matches a text with a pattern in which `*` stands for any text. If the part after the last `*` does not match, this
 * `*` takes one more byte. The cost is at most the pattern's length times the text's. */
static bool matches(struct hw_text pattern, struct hw_text text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, taken = 0;
	while (t < text.len) {
		if (p < pattern.len && pattern.at[p] == '*') {
			star = p++;
			taken = t;
		} else if (p < pattern.len && pattern.at[p] == text.at[t]) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++taken;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.at[p] == '*')
		p++;
	return p == pattern.len;
}

const char *hw_allow_wrong(const char *text)
{
	struct hw_text parts[PARTS];
	return split(text, parts) ? NULL : "must be SENDER ACTION RECEIVER";
}

bool hw_allow_task(char *const *rules, size_t n, struct hw_text sender, struct hw_text action, struct hw_text receiver)
{
	struct hw_text parts[PARTS];
	for (size_t i = 0; i < n; i++)
		if (split(rules[i], parts) && matches(parts[0], sender) && matches(parts[1], action) &&
		    matches(parts[2], receiver))
			return true;
	return false;
}

/* Replaces {sender} in a filter. Returns false if the sender is empty or the result is too long. */
static bool with_sender(const char *filter, struct hw_text sender, char out[FILTER_MAX])
{
	size_t used = 0;
	while (*filter) {
		bool here = strncmp(filter, SENDER, strlen(SENDER)) == 0;
		struct hw_text next = here ? sender : (struct hw_text){filter, 1};
		if ((here && sender.len == 0) || used + next.len >= FILTER_MAX)
			return false;
		memcpy(out + used, next.at, next.len);
		used += next.len;
		filter += here ? strlen(SENDER) : 1;
	}
	out[used] = '\0';
	return true;
}

const char *hw_allow_filter_wrong(const char *text)
{
	char filter[FILTER_MAX];
	if (!with_sender(text, (struct hw_text){"x", 1}, filter) || strpbrk(filter, " \t") ||
	    mosquitto_sub_topic_check(filter) != MOSQ_ERR_SUCCESS)
		return "is not a topic filter";
	return filter[0] == '$' ? "begins with $: such topics are the broker's own" : NULL;
}

bool hw_filter_has(const char *filter, struct hw_text topic)
{
	const char *t = topic.at, *end = topic.at + topic.len;
	if (topic.len > 0 && topic.at[0] == '$' && filter[0] != '$')
		return false;
	for (;;) {
		size_t want = strcspn(filter, "/");
		const char *slash = memchr(t, '/', (size_t)(end - t));
		size_t level = (size_t)((slash ? slash : end) - t);
		if (want == 1 && filter[0] == '#')
			return true;
		if (!(want == 1 && filter[0] == '+') && (want != level || memcmp(filter, t, level) != 0))
			return false;
		filter += want;
		if (!slash) /* sport/# also matches sport */
			return *filter == '\0' || strcmp(filter, "/#") == 0;
		if (!*filter++)
			return false;
		t = slash + 1;
	}
}

static unsigned levels(const char *filter)
{
	unsigned n = 1;
	for (; *filter; filter++)
		n += *filter == '/';
	return n;
}

bool hw_filter_covers(const char *wide, const char *narrow)
{
	bool all = strchr(wide, '#') && levels(wide) <= levels(narrow);
	return hw_filter_has(wide, (struct hw_text){narrow, strlen(narrow)}) && (all || !strchr(narrow, '#'));
}

/* Returns the part of a topic that follows the levels `begin`. NULL: the topic does not begin with these levels. */
static const char *behind(const char *begin, const char *t, const char *end)
{
	size_t len = strlen(begin);
	if ((size_t)(end - t) < len || memcmp(t, begin, len) != 0)
		return NULL;
	t += len;
	return t == end || *t == '/' ? t : NULL;
}

bool hw_topic_is_ours(const char *root, const char *name, struct hw_text topic)
{
	const char *end = topic.at + topic.len, *t = behind(root, topic.at, end);
	return (t && t < end && behind(name, t + 1, end)) || behind("heartwheel", topic.at, end);
}

bool hw_allow_topic(char *const *filters, size_t n, struct hw_text sender, struct hw_text topic)
{
	char filter[FILTER_MAX];
	if (topic.len == 0 || topic.at[0] == '$' || mosquitto_pub_topic_check2(topic.at, topic.len) != MOSQ_ERR_SUCCESS)
		return false;
	for (size_t i = 0; i < n; i++)
		if (with_sender(filters[i], sender, filter) && hw_filter_has(filter, topic))
			return true;
	return false;
}

bool hw_allow_publish(const struct hw_tasks_settings *c, struct hw_text sender, struct hw_text topic)
{
	return hw_allow_topic(c->publish, c->n_publish, sender, topic) && !hw_topic_is_ours(c->root, c->name, topic);
}
