/* SPDX-License-Identifier: MIT */
/* Topic templates and ids, as tables. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
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
	{"a/{site}/b", "a/+/b", 2, true}, /* whatever its name */
	{"{ID}/{id}", "+/+", 3, false},
	{"a/{id...}", "a/#", 3, false},
	{"a/{id...}/b/+", "a/#", 3, false},
	{"a/{s}/{id...}/b", "a/+/#", 5, false},
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
	{"{}", NULL, 0, false},
	{"{...}", NULL, 0, false},
	{"{id", NULL, 0, false},
	{"id}/{id}", NULL, 0, false},
	{"{id}/{a b}", NULL, 0, false},
	{"{id}/{a.b}", NULL, 0, false},
	{"{id..}", NULL, 0, false},
	{"{id...}/{x...}", NULL, 0, false},
	{"{id...}/#", NULL, 0, false},
	{"{id...}/a/#", NULL, 0, false},
	{"{a}/{b}/{a}", NULL, 0, false},
	{"{a}/{a...}", NULL, 0, false},
	{"{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", NULL, 0, false},
	{"{abcdefghijklmnopqrstuvwxyz0123456}", NULL, 0, false},
};

START_TEST(compile)
{
	struct hw_topic t;
	const char *why = "unset";
	int rc = hw_topic_compile(&t, compiled[_i].text, HW_TOPIC_HEARTBEAT, &why);
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
	ck_assert_int_eq(hw_topic_compile(&t, reasons[_i].text, HW_TOPIC_STATUS, &why), -EINVAL);
	ck_assert_str_eq(why, reasons[_i].why);
	ck_assert_int_eq(hw_topic_compile(&t, "nodes/{id}/status", HW_TOPIC_STATUS, &why), 0);
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
	ck_assert_int_eq(hw_topic_compile(&t, text, HW_TOPIC_STATUS, &why), 0);
	hw_topic_fini(&t);
	text[HW_TOPIC_MAX - HW_ID_MAX] = 'a';
	text[HW_TOPIC_MAX - HW_ID_MAX + 1] = '\0';
	ck_assert_int_eq(hw_topic_compile(&t, text, HW_TOPIC_STATUS, &why), -EINVAL);
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
	{"z/{id...}", "z/a", "a"},
	{"z/{id...}", "z/a/b//c", ""},
	{"z/{id...}", "z//a", ""},
	{"z/{id...}", "z/a/", ""},
	{"z/{id...}/set", "z/a//set", ""},
	{"z/{id...}", "z/", ""},
	{"z/{id...}", "z", NULL},
	{"z/{id...}", "y/a", NULL},
	{"{id...}", "a/b", "a/b"},
	{"{id...}", "$SYS/b", NULL},
	{"z/{id...}/set", "z/a/set", "a"},
	{"z/{id...}/set", "z/a/b/set", "a/b"},
	{"z/{id...}/set", "z/set/set", "set"},
	{"z/{id...}/set", "z/set", NULL},
	{"z/{id...}/set", "z/a/reset", NULL},
	{"z/{id...}/set/+", "z/a/set/b", "a"},
	{"z/{id...}/set/+", "z/a/set", NULL},
	{"+/{id...}/set", "z/a/b/set", "a/b"},
};

START_TEST(match)
{
	struct hw_topic t;
	const char *why, *id = "untouched";
	size_t len = strlen(matches[_i].topic), id_len = 99;
	/* Exactly as long as it is, so that valgrind sees a read past it. */
	char *topic = malloc(len ? len : 1);
	memcpy(topic, matches[_i].topic, len);
	ck_assert_int_eq(hw_topic_compile(&t, matches[_i].text, HW_TOPIC_HEARTBEAT, &why), 0);
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

static const struct {
	const char *text, *topic;
	const char *values; /* parted by ','; NULL: no match */
} captured[] = {
	{"{a}", "x", "x"},
	{"$s/{a}", "$s/x", "x"},
	{"{a}/{b}", "$x/y", "$x,y"}, /* an id's values, too, are found by this */
	{"{a}/{b}", "x/y", "x,y"},
	{"{a}/{b}", "x", NULL},
	{"{a}/{b}", "x/y/z", NULL},
	{"s/{a}/+/{b}/t", "s/1/2/3/t", "1,3"},
	{"s/{a}/+/{b}/t", "s/1/2/3/u", NULL},
	{"{a}/{b}/#", "1/2", "1,2"},
	{"{a}/{b}/#", "1/2/3/4", "1,2"},
	{"{a}/{b}/#", "1", NULL},
	{"{a}/{b...}/x/{c}", "1/2/3/x/4", "1,2/3,4"},
	{"{a}/{b...}/x/{c}", "1/x/4", NULL},
	{"{a...}/{b}", "1/2/3", "1/2,3"},
	{"x/y", "x/y", ""},
	{"x/y", "x/z", NULL},
};

START_TEST(captures)
{
	struct hw_value v[HW_CAPTURES_MAX];
	struct hw_topic t;
	const char *why;
	char joined[128] = "", back[128];
	size_t len = strlen(captured[_i].topic);
	char *topic = malloc(len); /* exactly as long as it is */
	memcpy(topic, captured[_i].topic, len);
	ck_assert_int_eq(hw_topic_compile(&t, captured[_i].text, HW_TOPIC_ANY, &why), 0);
	bool matched = hw_topic_values(&t, topic, len, v);
	ck_assert_msg(matched == (captured[_i].values != NULL), "%s on %s", captured[_i].text, captured[_i].topic);
	for (unsigned k = 0; matched && k < t.n_captures; k++) {
		ck_assert(v[k].text >= topic && v[k].text + v[k].len <= topic + len);
		snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%.*s", k ? "," : "",
		         (int)v[k].len, v[k].text);
	}
	if (matched)
		ck_assert_str_eq(joined, captured[_i].values);
	if (matched && !t.wild) {
		ck_assert_int_eq(hw_topic_compose(&t, v, back, sizeof(back)), (int)len);
		ck_assert_mem_eq(back, topic, len);
		ck_assert_int_eq(hw_topic_compose(&t, v, back, len), -ENAMETOOLONG);
		ck_assert_int_eq(hw_topic_compose(&t, v, back, len + 1), (int)len);
	} else if (matched) {
		ck_assert_int_eq(hw_topic_compose(&t, v, back, sizeof(back)), -EINVAL);
	}
	hw_topic_fini(&t);
	free(topic);
}
END_TEST

static const struct {
	const char *text, *form, *why, *values; /* of a/b/c, if it fits */
} bound[] = {
	{"{id}/+/+", "{id}", NULL, "a"},
	{"{x}/{y}/{z}", "{z}/{x}/{y}", NULL, "c,a,b"},
	{"{x}/{id}/{z}", "{z}/{x}", NULL, "c,a"}, /* {id} may be left over */
	{"{x}/{y}/{z}", "{z}/{x}", "has a name in braces that neither the id nor a parent uses", NULL},
	{"{x}/+/{z}", "{z}/{x}/{y}", "lacks a name in braces that the id uses", NULL},
	{"{id}/b/c", "fixed", NULL, ""},
	{"{x}/b/c", "fixed", "has a name in braces that neither the id nor a parent uses", NULL},
	{"{x...}/c", "{x}", NULL, "a/b"},
};

START_TEST(binding)
{
	struct hw_value v[HW_CAPTURES_MAX];
	struct hw_topic t, form;
	const char *why = NULL;
	char joined[64] = "";
	ck_assert_int_eq(hw_topic_compile(&form, bound[_i].form, HW_TOPIC_FORM, &why), 0);
	ck_assert_int_eq(hw_topic_compile(&t, bound[_i].text, HW_TOPIC_HEARTBEAT, &why), 0);
	ck_assert_int_eq(hw_topic_bind(&t, &form, NULL, 0, &why), bound[_i].why ? -EINVAL : 0);
	if (bound[_i].why) {
		ck_assert_str_eq(why, bound[_i].why);
	} else {
		ck_assert(hw_topic_values(&t, "a/b/c", 5, v));
		for (unsigned k = 0; k < form.n_captures; k++)
			snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%.*s", k ? "," : "",
			         (int)v[k].len, v[k].text);
		ck_assert_str_eq(joined, bound[_i].values);
	}
	hw_topic_fini(&t);
	hw_topic_fini(&form);
}
END_TEST

static const struct {
	const char *wide, *narrow;
	bool covers;
} covers[] = {
	{"a/{id}", "a/{id}", true},
	{"a/{id}", "a/b", true},
	{"a/b", "a/{id}", false},
	{"a/{id}", "a/{id}/b", false},
	{"a/{id}/#", "a/{id}/b/c", true},
	{"a/{id}/#", "a/{id}", true},
	{"a/{id}/#", "a/+/#", true},
	{"a/{id}/+", "a/{id}/#", false},
	{"#", "a/{id}", true},
	{"#", "$SYS/{id}", false},
	{"{id}/b", "$a/b", false},
	{"a/{id...}", "a/b/{id}/c", true},
	{"a/{id...}/x", "a/b/x", false},
	{"a/{id...}/x", "a/{id...}/x", true},
	{"a/{id}/x", "a/{id...}/x", false},
	{"a/b", "a", false},
};

START_TEST(covering)
{
	struct hw_topic wide, narrow;
	const char *why;
	ck_assert_int_eq(hw_topic_compile(&wide, covers[_i].wide, HW_TOPIC_ANY, &why), 0);
	ck_assert_int_eq(hw_topic_compile(&narrow, covers[_i].narrow, HW_TOPIC_ANY, &why), 0);
	ck_assert_msg(hw_topic_covers(&wide, &narrow) == covers[_i].covers, "%s, %s", covers[_i].wide,
	              covers[_i].narrow);
	hw_topic_fini(&wide);
	hw_topic_fini(&narrow);
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
	ck_assert_int_eq(hw_topic_compile(&t, "nodes/{id}/status", HW_TOPIC_STATUS, &why), 0);
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

	ck_assert_int_eq(hw_topic_compile(&t, "{id}", HW_TOPIC_STATUS, &why), 0);
	ck_assert_int_eq(hw_topic_render(&t, "a", 1, buf, sizeof(buf)), 1);
	ck_assert_str_eq(buf, "a");
	hw_topic_fini(&t);

	ck_assert_int_eq(hw_topic_compile(&t, "+/{id}", HW_TOPIC_HEARTBEAT, &why), 0);
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
	int rc = hw_topic_compile(&t, batches[_i].text, HW_TOPIC_BATCH, &why);
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
	tcase_add_loop_test(tc, captures, 0, COUNT(captured));
	tcase_add_loop_test(tc, binding, 0, COUNT(bound));
	tcase_add_loop_test(tc, covering, 0, COUNT(covers));
	tcase_add_test(tc, nothing_matches_no_template);
	tcase_add_test(tc, render);
	tcase_add_loop_test(tc, batch, 0, COUNT(batches));
	tcase_add_loop_test(tc, id, 0, COUNT(ids));
	tcase_add_test(tc, id_lengths);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
