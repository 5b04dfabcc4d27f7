/* SPDX-License-Identifier: MIT */
/*
 * Random templates, and topics of a few short levels, so that they often match. A naive twin confirms what a template
 * matches, which values it finds, which topic it makes of values, and which filter covers another one. An id that is
 * made of values gives the same values back, so two devices never have the same id.
 *
 * The seeds are fixed; HW_SEED sets another one. The seed is printed.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "heartwheel/group.h"
#include "twin_topic.h"

/* ck_assert() writes to a pipe each time that it holds: too slow for so many. */
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s; '%s', '%s', topic '%s'", #truth, s.text, s.other, s.topic);        \
	} while (0)

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SEEDS    4
#define ROUNDS   60000
#define TEXT_MAX 128
#define OFTEN    500 /* of each kind there must have been so many */

static struct {
	char text[TEXT_MAX], other[TEXT_MAX], topic[TEXT_MAX];
} s;

static unsigned below(unsigned n)
{
	return (unsigned)(random64() % n);
}

static void add_level(char *text, const char *level, bool first)
{
	if (!first)
		strcat(text, "/");
	strcat(text, level);
}

static void draw_topic(char *text)
{
	static const char *const levels[] = {"a", "b", "c", "", "$x", "ab", "set"};
	unsigned n = 1 + below(5);
	*text = '\0';
	for (unsigned i = 0; i < n; i++)
		add_level(text, levels[below(COUNT(levels))], i == 0);
}

static void draw_template(char *text)
{
	static const char *const levels[] = {"a",    "b",   "c",   "",       "set", "+",
	                                     "{id}", "{x}", "{y}", "{x...}", "#",   "{id...}"};
	unsigned n = 1 + below(5);
	*text = '\0';
	for (unsigned i = 0; i < n; i++)
		add_level(text, levels[below(COUNT(levels))], i == 0);
}

static struct twin_text text_of(const char *text)
{
	return (struct twin_text){text, strlen(text)};
}

static bool twin_match(const char *pattern, const char *topic, struct twin_text *values)
{
	struct twin_levels p = twin_split(text_of(pattern)), t = twin_split(text_of(topic));
	return *topic && twin_rest(&p, 0, &t, 0, values);
}

static bool lacks_level(struct hw_value v)
{
	struct twin_levels levels = twin_split((struct twin_text){v.text, v.len});
	bool lacks = false;
	for (size_t k = 0; k < levels.n && k < TWIN_LEVELS; k++)
		lacks |= levels.level[k].len == 0;
	return lacks;
}

static bool compare_match(const struct hw_topic *t)
{
	struct twin_text want[HW_CAPTURES_MAX] = {{NULL, 0}};
	struct hw_value has[HW_CAPTURES_MAX];
	const char *id = NULL;
	char back[TEXT_MAX];
	size_t len = strlen(s.topic), id_len = 0;
	bool should = twin_match(s.text, s.topic, want), hidden = twin_hidden(text_of(s.text), text_of(s.topic));
	MUST(hw_topic_values(t, s.topic, len, has) == should);
	MUST(hw_topic_match(t, s.topic, len, &id, &id_len) == (should && !hidden));
	if (!should)
		return false;
	for (unsigned k = 0; k < t->n_captures; k++)
		MUST(has[k].text == want[k].at && has[k].len == want[k].len);
	if (!hidden && t->n_captures > 0)
		MUST(id == has[0].text && id_len == (lacks_level(has[0]) ? 0 : has[0].len));
	MUST(hidden || !hw_topic_excludes(t, s.topic, len));
	if (!t->wild) {
		MUST(hw_topic_compose(t, has, back, sizeof(back)) == (int)len);
		MUST(strcmp(back, s.topic) == 0);
	}
	return true;
}

/* Whether a broker delivers the topic to a subscriber of this filter. */
static bool brings(const char *filter, const char *topic)
{
	return twin_match(filter, topic, NULL) && !twin_hidden(text_of(filter), text_of(topic));
}

START_TEST(a_template_is_its_twin)
{
	struct hw_topic t, other;
	const char *why, *id;
	unsigned matched = 0, missed = 0, covered = 0;
	size_t id_len;
	random_begin((uint64_t)_i);
	for (int round = 0; round < ROUNDS; round++) {
		draw_template(s.text);
		draw_template(s.other);
		draw_topic(s.topic);
		if (hw_topic_compile(&t, s.text, HW_TOPIC_ANY, &why) != 0)
			continue;
		bool matches = compare_match(&t);
		matched += matches;
		missed += !matches;
		/* Whatever it matches is subscribed to. */
		if (hw_topic_match(&t, s.topic, strlen(s.topic), &id, &id_len))
			MUST(brings(t.filter, s.topic));
		if (*s.topic && hw_topic_compile(&other, s.other, HW_TOPIC_ANY, &why) == 0) {
			bool covers = hw_topic_covers(&other, &t) && t.tail == 0 && other.n_captures == 0;
			if (covers && hw_topic_match(&t, s.topic, strlen(s.topic), &id, &id_len)) {
				MUST(hw_topic_match(&other, s.topic, strlen(s.topic), &id, &id_len));
				covered++;
			}
			hw_topic_fini(&other);
		}
		hw_topic_fini(&t);
	}
	ck_assert_uint_gt(matched, OFTEN);
	ck_assert_uint_gt(missed, OFTEN);
	ck_assert_uint_gt(covered, OFTEN / 10);
}
END_TEST

/* --- ids ---------------------------------------------------------------------- */

static bool same_values(const struct hw_topic *t, const struct hw_value *a, const struct hw_value *b)
{
	for (unsigned k = 0; k < t->n_captures; k++)
		if (a[k].len != b[k].len || memcmp(a[k].text, b[k].text, a[k].len) != 0)
			return false;
	return true;
}

/* A random group of one or two filters, an id and a status; 0 if there can be such a group. */
static int draw_group(struct hw_groups *groups, char id[TEXT_MAX], char status[TEXT_MAX], const char **filters)
{
	static const char *const prefixes[] = {"", "p-", "$"};
	struct hw_group_spec spec = {.name = "g", .heartbeat = filters, .n_heartbeat = 1 + below(2), .id = id};
	draw_template(s.text);
	draw_template(s.other);
	if (below(2))
		strcpy(s.other, "c/"), strcat(s.other, s.text);
	draw_template(id);
	strcpy(status, "t/");
	strcat(status, id);
	spec.status = status;
	spec.id_prefix = prefixes[below(COUNT(prefixes))];
	return hw_groups_set(groups, &spec, 1);
}

START_TEST(an_id_says_what_it_is_made_of)
{
	struct hw_value v[2][HW_CAPTURES_MAX];
	char status[TEXT_MAX], form[TEXT_MAX], told[2 * TEXT_MAX], room[2][HW_ID_MAX], topic[2][TEXT_MAX];
	const char *filters[] = {s.text, s.other}, *id;
	unsigned made = 0, assembled = 0, differ = 0;
	size_t len[2], id_len;
	uint16_t group;
	random_begin((uint64_t)_i);
	for (int round = 0; round < 4 * ROUNDS; round++) {
		struct hw_groups groups;
		hw_groups_init(&groups);
		if (draw_group(&groups, form, status, filters) != 0) {
			hw_groups_fini(&groups);
			continue;
		}
		const struct hw_group *g = groups.all[0];
		made++;
		for (int one = 0; one < 2; one++) {
			const struct hw_topic *by = NULL;
			draw_topic(s.topic);
			strcpy(topic[one], s.topic);
			len[one] = 0;
			if (hw_groups_match(&groups, topic[one], strlen(topic[one]), false, &group, &id, &id_len,
			                    &by) != HW_MATCH_HEARTBEAT ||
			    !g->assembled)
				continue;
			MUST(hw_topic_values(by, topic[one], strlen(topic[one]), v[one]));
			len[one] = hw_group_id(g, by, topic[one], strlen(topic[one]), room[one]);
			if (len[one] == 0)
				continue;
			assembled++;
			MUST(hw_group_fits(g, room[one], len[one]));
			struct hw_value back[HW_CAPTURES_MAX];
			MUST(hw_topic_values(&g->form, room[one] + g->id_prefix_len, len[one] - g->id_prefix_len,
			                     back));
			MUST(same_values(&g->form, back, v[one]));
			int n = hw_group_status_topic(g, room[one], len[one], told, sizeof(told));
			MUST(n == (int)(len[one] - g->id_prefix_len) + 2);
			MUST(memcmp(told + 2, room[one] + g->id_prefix_len, len[one] - g->id_prefix_len) == 0);
		}
		if (len[0] > 0 && len[1] > 0) {
			bool same_id = len[0] == len[1] && memcmp(room[0], room[1], len[0]) == 0;
			MUST(same_id == same_values(&g->form, v[0], v[1]));
			differ += !same_id;
		}
		hw_groups_fini(&groups);
	}
	ck_assert_uint_gt(made, OFTEN);
	ck_assert_uint_gt(assembled, OFTEN);
	ck_assert_uint_gt(differ, OFTEN / 10);
}
END_TEST

/* --- many filters --------------------------------------------------------------- */

#define GROUPS  12
#define FILTERS 6 /* of each kind, at most */

static char texts[GROUPS][3 * FILTERS + 1][TEXT_MAX];

/* A template whose only capture is the id. */
static void draw_id_template(char *text, enum hw_topic_kind kind)
{
	struct hw_topic t = {0};
	const char *why;
	bool fits = false;
	while (!fits) {
		draw_template(text);
		fits = hw_topic_compile(&t, text, kind, &why) == 0 && t.n_captures == 1 && strstr(text, "{id");
		hw_topic_fini(&t);
	}
}

static unsigned draw_filters(const char **list, char (*text)[TEXT_MAX], unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		draw_id_template(text[k], HW_TOPIC_ANY);
		list[k] = text[k];
	}
	return n;
}

static int draw_groups(struct hw_groups *groups)
{
	static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13"};
	const char *lists[GROUPS][3][FILTERS];
	struct hw_group_spec spec[GROUPS] = {{0}};
	unsigned n = 1 + below(GROUPS), from = below(3);
	for (unsigned g = 0; g < n; g++) {
		char(*text)[TEXT_MAX] = texts[g];
		struct hw_group_spec *one = &spec[g];
		*one = (struct hw_group_spec){.name = names[g + from],
		                              .heartbeat = lists[g][0],
		                              .goodbye = lists[g][1],
		                              .ignore = lists[g][2]};
		one->n_heartbeat = draw_filters(lists[g][0], text, 1 + below(FILTERS));
		one->n_goodbye = draw_filters(lists[g][1], text + FILTERS, below(FILTERS));
		one->n_ignore = draw_filters(lists[g][2], text + 2 * FILTERS, below(FILTERS));
		draw_id_template(text[3 * FILTERS], HW_TOPIC_STATUS);
		one->status = below(4) == 0 ? NULL : text[3 * FILTERS];
	}
	return hw_groups_set(groups, spec, n);
}

/* The index finds the group, the template and the id that a search in the order of the file finds. Some groups retire
 * meanwhile. */
START_TEST(many_filters_are_searched_in_order)
{
	unsigned kinds[HW_MATCH_CLEARING + 1] = {0}, indexed = 0;
	random_begin((uint64_t)_i);
	for (int round = 0; round < ROUNDS / 200; round++) {
		struct hw_groups groups, plain;
		hw_groups_init(&groups);
		for (unsigned reloads = 1 + below(3); reloads > 0; reloads--)
			while (draw_groups(&groups) != 0)
				;
		plain = groups;
		plain.index = NULL;
		indexed += groups.index != NULL;
		for (int k = 0; k < 200; k++) {
			uint16_t at[2] = {0};
			const char *id[2] = {NULL};
			size_t len[2] = {0};
			const struct hw_topic *by[2] = {NULL};
			bool empty = below(2);
			draw_topic(s.topic);
			if (below(20) == 0)
				add_level(s.topic, below(2) ? "+" : "#", !*s.topic);
			size_t n = below((unsigned)strlen(s.topic) + 1);
			n = below(2) ? n : strlen(s.topic); /* not all topics end with a NUL */
			enum hw_match found =
				hw_groups_match(&groups, s.topic, n, empty, &at[0], &id[0], &len[0], &by[0]);
			MUST(found == hw_groups_match(&plain, s.topic, n, empty, &at[1], &id[1], &len[1], &by[1]));
			MUST(found == HW_MATCH_NONE || (at[0] == at[1] && id[0] == id[1] && len[0] == len[1]));
			MUST(found == HW_MATCH_NONE || found == HW_MATCH_IGNORED || found == HW_MATCH_CLEARING ||
			     by[0] == by[1]);
			MUST(hw_groups_is_status(&groups, s.topic, n) == hw_groups_is_status(&plain, s.topic, n));
			kinds[found]++;
		}
		hw_groups_fini(&groups);
	}
	ck_assert_uint_gt(indexed, ROUNDS / 800);
	for (int k = 0; k <= HW_MATCH_CLEARING; k++)
		ck_assert_msg(k == HW_MATCH_ANSWER || kinds[k] > OFTEN / 50, "%d: %u", k, kinds[k]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("topic (random)");
	TCase *tc = tcase_create("twin");
	int last = getenv("HW_SEED") || getenv("HW_FEW_ROUNDS") ? 2 : 1 + SEEDS;
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, a_template_is_its_twin, 1, last);
	tcase_add_loop_test(tc, an_id_says_what_it_is_made_of, 1, last);
	tcase_add_loop_test(tc, many_filters_are_searched_in_order, 1, last);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
