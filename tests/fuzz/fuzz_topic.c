/* SPDX-License-Identifier: MIT */
/*
 * Topic templates, goodbyes. Input: a template, a NUL, a topic, a NUL, an id. What compiles must match what it renders,
 * give the same id back, and agree with the plain reading of MQTT's rules on every topic.
 */
#include <errno.h>
#include <string.h>

#include "../property/twin_topic.h"
#include "fuzz.h"
#include "heartwheel/group.h"

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

static void check_match(const struct hw_topic *t, struct text pattern, struct text topic)
{
	const char *id = "?";
	size_t id_len = 1;
	struct twin_text want[HW_CAPTURES_MAX] = {{topic.at, 0}};
	struct hw_value has[HW_CAPTURES_MAX];
	struct twin_text whole = {topic.at, topic.len}, text = {pattern.at, pattern.len};
	struct twin_levels p = twin_split(text), l = twin_split(whole);
	bool does = hw_topic_match(t, topic.at, topic.len, &id, &id_len);
	if (p.n > TWIN_LEVELS || l.n > TWIN_LEVELS)
		return; /* too many for the twin */
	bool fits = topic.len > 0 && twin_rest(&p, 0, &l, 0, want);
	MUST(does == (fits && !twin_hidden(text, whole)));
	MUST(hw_topic_values(t, topic.at, topic.len, has) == fits);
	for (unsigned k = 0; fits && k < t->n_captures; k++)
		MUST(has[k].len == want[k].len && (has[k].len == 0 || has[k].text == want[k].at));
	if (does)
		MUST(id_len == want[0].len && (id_len == 0 || id == want[0].at));
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
		int rc = hw_topic_compile(&t, text, publishable ? HW_TOPIC_STATUS : HW_TOPIC_HEARTBEAT, &why);
		if (rc != 0) {
			MUST(rc == -EINVAL && why && *why);
			continue;
		}
		MUST(strlen(t.filter) == t.filter_len &&
		     (t.walked ? t.id_at == t.filter_len : t.filter[t.id_at] == '+'));
		check_match(&t, (struct text){text, strlen(text)}, topic);
		if (publishable && !t.walked && good_id && !memchr(id.at, '/', id.len))
			check_render(&t, id);
		hw_topic_fini(&t);
	}
	struct hw_goodbye g;
	const char *why = NULL;
	if (hw_goodbye_compile(&g, text, &why) == 0)
		MUST(g.topic.filter && (!g.member || (*g.member && g.text && *g.text)));
	else
		MUST(why && *why && !g.topic.filter && !g.member && !g.text);
	hw_goodbye_fini(&g);
	free(text);
	return 0;
}
