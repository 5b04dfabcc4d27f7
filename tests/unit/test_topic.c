/* SPDX-License-Identifier: MIT */
/* Topic templates and ids, as tables. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/topic.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct {
	const char *text;
	const char *filter; /* NULL: refused */
	size_t id_at;
	bool plain;
} compiled[] = {
	{"nodes/{id}/heartbeat", "nodes/+/heartbeat", 6, true},
	{"{id}", "+", 0, true},
	{"/{id}", "/+", 1, true},
	{"{id}/", "+/", 0, true},
	{"a//{id}//b", "a//+//b", 3, true},
	{"+/{id}", "+/+", 2, false},
	{"a/{id}/+/x", "a/+/+/x", 2, false},
	{"a/{id}/#", "a/+/#", 2, false},
	{"+/+/{id}/#", "+/+/+/#", 4, false},
	{"$SYS/{id}", "$SYS/+", 5, true},
	{"$shared/{id}", "$shared/+", 8, true},
	{"caf\xc3\xa9/{id}", "caf\xc3\xa9/+", 6, true},
	{"{ID}/{id}", "{ID}/+", 5, true},
	{"", NULL, 0, false},
	{"nodes", NULL, 0, false},
	{"nodes/+/heartbeat", NULL, 0, false},
	{"{id}/{id}", NULL, 0, false},
	{"x{id}/a", NULL, 0, false},
	{"{id}x", NULL, 0, false},
	{"{id}/x{id}", NULL, 0, false},
	{"{id}/a+", NULL, 0, false},
	{"{id}/+a", NULL, 0, false},
	{"{id}/++", NULL, 0, false},
	{"{id}/a#", NULL, 0, false},
	{"{id}/##", NULL, 0, false},
	{"{id}/#/a", NULL, 0, false},
	{"#/{id}", NULL, 0, false},
	{"{id}/a\tb", NULL, 0, false},
	{"{id}/a\x7f", NULL, 0, false},
	{"{id}/a\xc2\x85", NULL, 0, false}, /* C1 */
	{"{id}/\xff", NULL, 0, false},
	{"{id}/\xc3", NULL, 0, false},
	{"$share/g/{id}", NULL, 0, false},
};

START_TEST(compile)
{
	struct hw_topic t;
	const char *why = "unset";
	int rc = hw_topic_compile(&t, compiled[_i].text, false, &why);

	if (!compiled[_i].filter) {
		ck_assert_msg(rc == -EINVAL, "%s was taken", compiled[_i].text);
		ck_assert_ptr_nonnull(why);
		ck_assert(*why != '\0' && why[strlen(why) - 1] != '.');
		ck_assert_ptr_null(t.filter);
		return;
	}
	ck_assert_msg(rc == 0, "%s: %s", compiled[_i].text, why);
	ck_assert_str_eq(t.filter, compiled[_i].filter);
	ck_assert_uint_eq(t.filter_len, strlen(compiled[_i].filter));
	ck_assert_uint_eq(t.id_at, compiled[_i].id_at);
	ck_assert_int_eq(t.plain, compiled[_i].plain);
	hw_topic_fini(&t);
	ck_assert_ptr_null(t.filter);
}
END_TEST

static const struct {
	const char *text, *why;
} reasons[] = {
	{"", "is empty"},
	{NULL, "is empty"},
	{"a/b", "needs exactly one {id} level"},
	{"a/{id}b", "{id} must be a whole level"},
	{"{id}/+", "must not have wildcards"},
	{"{id}/#", "must not have wildcards"},
	{"$share/a/{id}", "must not begin with $share/"},
	{"{id}/\x01", "has a control character"},
	{"{id}/\xed\xa0\x80", "is not valid UTF-8"},
};

START_TEST(publishable)
{
	struct hw_topic t;
	const char *why = NULL;

	ck_assert_int_eq(hw_topic_compile(&t, reasons[_i].text, true, &why), -EINVAL);
	ck_assert_str_eq(why, reasons[_i].why);
	ck_assert_int_eq(hw_topic_compile(&t, "nodes/{id}/status", true, &why), 0);
	hw_topic_fini(&t);
}
END_TEST

START_TEST(longest_template)
{
	static char text[HW_TOPIC_MAX + 1];
	struct hw_topic t;
	const char *why;

	memset(text, 'a', sizeof(text));
	memcpy(text, "{id}/", 5);
	text[HW_TOPIC_MAX - HW_ID_MAX] = '\0';
	ck_assert_int_eq(hw_topic_compile(&t, text, true, &why), 0);
	hw_topic_fini(&t);
	text[HW_TOPIC_MAX - HW_ID_MAX] = 'a';
	text[HW_TOPIC_MAX - HW_ID_MAX + 1] = '\0';
	ck_assert_int_eq(hw_topic_compile(&t, text, true, &why), -EINVAL);
	ck_assert_str_eq(why, "is too long");
}
END_TEST

static const struct {
	const char *text, *topic;
	const char *id; /* NULL: no match */
} matches[] = {
	{"nodes/{id}/heartbeat", "nodes/a/heartbeat", "a"},
	{"nodes/{id}/heartbeat", "nodes/sensor-17/heartbeat", "sensor-17"},
	{"nodes/{id}/heartbeat", "nodes//heartbeat", ""},
	{"nodes/{id}/heartbeat", "nodes/heartbeat", NULL}, /* the ends must not share the slash */
	{"nodes/{id}/heartbeat", "nodes/a/b/heartbeat", NULL},
	{"nodes/{id}/heartbeat", "nodes/a/heartbeats", NULL},
	{"nodes/{id}/heartbeat", "nodes/a/heartbea", NULL},
	{"nodes/{id}/heartbeat", "modes/a/heartbeat", NULL},
	{"nodes/{id}/heartbeat", "nodes/a/heartbeat/", NULL},
	{"nodes/{id}/heartbeat", "nodes/a", NULL},
	{"nodes/{id}/heartbeat", "n", NULL},
	{"nodes/{id}/heartbeat", "", NULL},
	{"nodes/{id}", "nodes/a", "a"},
	{"nodes/{id}", "nodes/", ""},
	{"nodes/{id}", "nodes", NULL},
	{"nodes/{id}", "nodes/a/b", NULL},
	{"{id}/up", "a/up", "a"},
	{"{id}/up", "/up", ""},
	{"{id}/up", "$SYS/up", NULL},
	{"{id}", "$SYS", NULL},
	{"{id}", "a", "a"},
	{"{id}", "", NULL},
	{"{id}", "a/", NULL},
	{"$SYS/{id}", "$SYS/broker", "broker"},
	{"a/{id}", "a/$b", "$b"},
	{"+/{id}/up", "x/a/up", "a"},
	{"+/{id}/up", "/a/up", "a"},
	{"+/{id}/up", "$SYS/a/up", NULL},
	{"+/{id}/up", "x/y/a/up", NULL},
	{"+/{id}/up", "x/a/down", NULL},
	{"+/{id}/up", "x/a/u", NULL},
	{"+/{id}/up", "x/a/upper", NULL},
	{"+/{id}/up", "x/a", NULL},
	{"+/{id}/up", "x", NULL},
	{"+/{id}/up", "x/a/up/", NULL},
	{"{id}/+/up", "a/x/up", "a"},
	{"{id}/+/up", "a//up", "a"},
	{"{id}/+/up", "$a/x/up", NULL},
	{"a/{id}/+", "a/b/c", "b"},
	{"a/{id}/+", "a/b/", "b"},
	{"a/{id}/+", "a/b", NULL},
	{"a/{id}/+", "a/b/c/d", NULL},
	{"a/{id}/#", "a/b", "b"}, /* `#` includes the level above it */
	{"a/{id}/#", "a/b/", "b"},
	{"a/{id}/#", "a/b/c/d/e", "b"},
	{"a/{id}/#", "a//c", ""},
	{"a/{id}/#", "a", NULL},
	{"a/{id}/#", "b/b", NULL},
	{"{id}/#", "a", "a"},
	{"{id}/#", "a/b", "a"},
	{"{id}/#", "$SYS/b", NULL},
	{"+/{id}/", "x/a/", "a"},
	{"+/{id}/", "x/a", NULL},
	{"+//{id}", "x//a", "a"},
	{"+//{id}", "x/y/a", NULL},
	{"a/+/{id}/b/#", "a/x/i/b", "i"},
	{"a/+/{id}/b/#", "a/x/i/b/c", "i"},
	{"a/+/{id}/b/#", "a/x/i/c", NULL},
	{"a/+/{id}/b/#", "a/x/i", NULL},
};

START_TEST(match)
{
	struct hw_topic t;
	const char *why, *id = "untouched";
	size_t len = strlen(matches[_i].topic), id_len = 99;
	/* Exactly as long as it is, so that valgrind sees a read past it. */
	char *topic = malloc(len ? len : 1);

	memcpy(topic, matches[_i].topic, len);
	ck_assert_int_eq(hw_topic_compile(&t, matches[_i].text, false, &why), 0);
	bool matched = hw_topic_match(&t, topic, len, &id, &id_len);
	ck_assert_msg(matched == (matches[_i].id != NULL), "%s on %s", matches[_i].text, matches[_i].topic);
	if (matched) {
		ck_assert_uint_eq(id_len, strlen(matches[_i].id));
		ck_assert(id >= topic && id + id_len <= topic + len);
		ck_assert_mem_eq(id, matches[_i].id, id_len);
	} else {
		ck_assert_str_eq(id, "untouched");
		ck_assert_uint_eq(id_len, 99);
	}
	hw_topic_fini(&t);
	free(topic);
}
END_TEST

START_TEST(nothing_matches_no_template)
{
	struct hw_topic t = {0};
	const char *id;
	size_t id_len;
	char buf[8];

	ck_assert(!hw_topic_match(&t, "a", 1, &id, &id_len));
	ck_assert_int_eq(hw_topic_render(&t, "a", 1, buf, sizeof(buf)), -EINVAL);
}
END_TEST

START_TEST(render)
{
	struct hw_topic t;
	const char *why;
	char buf[300], long_id[HW_ID_MAX + 1];

	ck_assert_int_eq(hw_topic_compile(&t, "nodes/{id}/status", true, &why), 0);
	ck_assert_int_eq(hw_topic_render(&t, "abc-", 3, buf, sizeof(buf)), 16);
	ck_assert_str_eq(buf, "nodes/abc/status");
	ck_assert_int_eq(hw_topic_render(&t, "xyz", 3, buf, 17), 16);
	ck_assert_str_eq(buf, "nodes/xyz/status");
	ck_assert_int_eq(hw_topic_render(&t, "abc", 3, buf, 16), -ENAMETOOLONG);
	ck_assert_str_eq(buf, "nodes/xyz/status");
	ck_assert_int_eq(hw_topic_render(&t, "abc", 3, buf, 0), -ENAMETOOLONG);
	memset(long_id, 'i', sizeof(long_id));
	ck_assert_int_eq(hw_topic_render(&t, long_id, HW_ID_MAX, buf, sizeof(buf)), 13 + HW_ID_MAX);
	ck_assert_int_eq(hw_topic_render(&t, long_id, HW_ID_MAX + 1, buf, sizeof(buf)), -ENAMETOOLONG);
	hw_topic_fini(&t);

	ck_assert_int_eq(hw_topic_compile(&t, "{id}", true, &why), 0);
	ck_assert_int_eq(hw_topic_render(&t, "a", 1, buf, sizeof(buf)), 1);
	ck_assert_str_eq(buf, "a");
	hw_topic_fini(&t);

	ck_assert_int_eq(hw_topic_compile(&t, "+/{id}", false, &why), 0);
	ck_assert_int_eq(hw_topic_render(&t, "a", 1, buf, sizeof(buf)), -EINVAL);
	hw_topic_fini(&t);
}
END_TEST

static const struct {
	const char *id;
	bool valid;
} ids[] = {
	{"", false},
	{"a", true},
	{"sensor-17.b:c", true},
	{" a b ", true},
	{"$x", true},
	{"a/b", true}, /* no topic level, but a key may name it */
	{"+", false},
	{"a+", false},
	{"a#", false},
	{"a\x1f", false},
	{"a\x7f", false},
	{"\xc2\x80", false}, /* C1 */
	{"\xc2\x9f", false},
	{"\xc2\xa0", true},
	{"\xc3\xa9", true},
	{"\xe2\x82\xac", true},
	{"\xf0\x9f\x98\x80", true},
	{"\xef\xbf\xbd", true},
	{"\x80", false},             /* a continuation alone */
	{"\xc3", false},             /* cut off */
	{"\xe2\x82", false},         /* cut off */
	{"\xf0\x9f\x98", false},     /* cut off */
	{"\xc3(", false},            /* no continuation */
	{"\xe2\x82(", false},        /* no continuation */
	{"\xc0\xaf", false},         /* overlong, 2 bytes */
	{"\xc1\xbf", false},         /* overlong, 2 bytes */
	{"\xe0\x80\xaf", false},     /* overlong, 3 bytes */
	{"\xe0\x9f\xbf", false},     /* overlong, 3 bytes */
	{"\xe0\xa0\x80", true},      /* U+0800 */
	{"\xf0\x80\x80\xaf", false}, /* overlong, 4 bytes */
	{"\xf0\x8f\xbf\xbf", false}, /* overlong, 4 bytes */
	{"\xf0\x90\x80\x80", true},  /* U+10000 */
	{"\xed\x9f\xbf", true},      /* U+D7FF */
	{"\xed\xa0\x80", false},     /* U+D800 */
	{"\xed\xbf\xbf", false},     /* U+DFFF */
	{"\xee\x80\x80", true},      /* U+E000 */
	{"\xf4\x8f\xbf\xbf", true},  /* U+10FFFF */
	{"\xf4\x90\x80\x80", false}, /* U+110000 */
	{"\xf5\x80\x80\x80", false},
	{"\xff", false},
};

START_TEST(id)
{
	size_t len = strlen(ids[_i].id);
	char *exact = malloc(len ? len : 1);

	memcpy(exact, ids[_i].id, len);
	ck_assert_int_eq(hw_id_valid(exact, len), ids[_i].valid);
	free(exact);
}
END_TEST

START_TEST(id_lengths)
{
	char text[HW_ID_MAX + 1];

	memset(text, 'x', sizeof(text));
	ck_assert(hw_id_valid(text, HW_ID_MAX));
	ck_assert(!hw_id_valid(text, HW_ID_MAX + 1));
	ck_assert(!hw_id_valid("a\0b", 3));
	memcpy(text + HW_ID_MAX - 2, "\xe2\x82\xac", 3); /* its last byte stands outside */
	ck_assert(!hw_id_valid(text, HW_ID_MAX));
}
END_TEST

static const struct {
	const char *text, *topic;
	bool matches; /* false and `topic` NULL: does not compile */
} batches[] = {
	{"gw/heard", "gw/heard", true},
	{"gw/heard", "gw/heard/x", false},
	{"gw/heard", "gw/hear", false},
	{"gw/heard", "gw/hearD", false},
	{"gw/+/heard", "gw/7/heard", true},
	{"gw/+/heard", "gw//heard", true},
	{"gw/+/heard", "gw/7/8/heard", false},
	{"gw/#", "gw", true},
	{"gw/#", "gw/a/b", true},
	{"#", "a", true},
	{"+", "$SYS", false},
	{"$SYS/x", "$SYS/x", true},
	{"gw/{id}", NULL, false},
	{"{id}", NULL, false},
	{"a{id}", NULL, false},
	{"gw/a+", NULL, false},
	{"#/a", NULL, false},
	{"", NULL, false},
	{"$share/g/a", NULL, false},
};

START_TEST(batch)
{
	struct hw_topic t;
	const char *why = NULL, *found = "unset", *topic = batches[_i].topic;
	size_t id_len = 9;
	char buf[64];
	int rc = hw_topic_compile_batch(&t, batches[_i].text, &why);

	if (!topic) {
		ck_assert_int_eq(rc, -EINVAL);
		ck_assert_ptr_nonnull(why);
		return;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_str_eq(t.filter, batches[_i].text);
	ck_assert_uint_eq(t.filter_len, strlen(t.filter));
	ck_assert(hw_topic_match(&t, topic, strlen(topic), &found, &id_len) == batches[_i].matches);
	ck_assert_uint_eq(id_len, batches[_i].matches ? 0 : 9);
	ck_assert_int_eq(hw_topic_render(&t, "x", 1, buf, sizeof(buf)), -EINVAL);
	hw_topic_fini(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("topic");
	TCase *tc = tcase_create("tables");

	tcase_add_loop_test(tc, compile, 0, COUNT(compiled));
	tcase_add_loop_test(tc, publishable, 0, COUNT(reasons));
	tcase_add_test(tc, longest_template);
	tcase_add_loop_test(tc, match, 0, COUNT(matches));
	tcase_add_test(tc, nothing_matches_no_template);
	tcase_add_test(tc, render);
	tcase_add_loop_test(tc, batch, 0, COUNT(batches));
	tcase_add_loop_test(tc, id, 0, COUNT(ids));
	tcase_add_test(tc, id_lengths);
	suite_add_tcase(s, tc);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
