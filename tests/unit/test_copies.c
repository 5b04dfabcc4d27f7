/* SPDX-License-Identifier: MIT */
/* Copies of a message that a broker delivers once for each subscription. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "heartwheel/topic.h"
#include "mqtt/copies.h"

static const struct {
	const char *a, *b;
	bool overlap;
} pairs[] = {{"a/b", "a/b", true},     {"a/b", "a/c", false},   {"a/+", "+/b", true},    {"a/+", "b/+", false},
             {"a/+", "a/b/#", true},   {"a/+", "a/b/c", false}, {"a/#", "a", true},      {"a/#", "b/#", false},
             {"+/b/#", "a/+/c", true}, {"#", "x/y/z", true},    {"a/b", "a/b/c", false}, {"a+", "aa", false}};

START_TEST(test_which_filters_overlap)
{
	ck_assert_int_eq(hw_topic_filters_overlap(pairs[_i].a, pairs[_i].b), pairs[_i].overlap);
	ck_assert_int_eq(hw_topic_filters_overlap(pairs[_i].b, pairs[_i].a), pairs[_i].overlap);
}
END_TEST

static struct hw_copies copies;
static struct hw_copies_of of;

/* The topic is not NUL-terminated: the payload stands right behind it, as in the ring. */
static bool is_copy(const char *message, size_t topic_len, int64_t now_ms)
{
	return hw_copies_is_one(&copies, &of,
	                        &(struct hw_reader_event){.topic = message,
	                                                  .topic_len = topic_len,
	                                                  .payload = message + topic_len,
	                                                  .payload_len = strlen(message + topic_len)},
	                        now_ms);
}

START_TEST(test_as_many_as_filters_match)
{
	const struct hw_mqtt_filter filters[] = {{.filter = "a/+"}, {.filter = "a/b/#"}, {.filter = "c"}};
	ck_assert_int_eq(hw_copies_set(&copies, filters, 3), 0);
	ck_assert(!is_copy("a/bX", 3, 0));
	ck_assert(is_copy("a/bX", 3, 1));
	ck_assert(!is_copy("a/bX", 3, 2)); /* said again */
	ck_assert(!is_copy("a/bY", 3, 3)); /* a broker that delivers one copy */
	ck_assert(is_copy("a/bY", 3, 4));
	ck_assert(!is_copy("a/bR", 3, 4));
	hw_copies_of_forget(&of);
	ck_assert(!is_copy("a/bR", 3, 4)); /* retained, and delivered again */
	ck_assert(is_copy("a/bR", 3, 4));
	ck_assert(!is_copy("a/cX", 3, 5));
	ck_assert(!is_copy("a/cX", 3, 6));
	ck_assert(!is_copy("a/b", 3, 7));
	ck_assert(!is_copy("a/b", 3, 8 + HW_COPIES_WITHIN_MS)); /* too late to be one */
	ck_assert_int_eq(hw_copies_set(&copies, filters + 1, 2), 0);
	ck_assert_uint_eq(copies.n, 0);
	ck_assert(!is_copy("a/b", 3, 9));
	ck_assert(!is_copy("a/b", 3, 9));
	hw_copies_fini(&copies);
	hw_copies_of_fini(&of);
}
END_TEST

/* A topic that is a filter itself, beside one with wildcards that has it. */
START_TEST(test_a_topic_beside_a_filter)
{
	const struct hw_mqtt_filter filters[] = {{.filter = "a/+"}, {.filter = "a/b"}, {.filter = "c/+"}};
	ck_assert_int_eq(hw_copies_set(&copies, filters, 3), 0);
	ck_assert(!copies.wild);
	ck_assert(!is_copy("a/bX", 3, 0));
	ck_assert(is_copy("a/bX", 3, 1));
	ck_assert(!is_copy("a/bX", 3, 2));
	ck_assert(!is_copy("a/cX", 3, 3));
	ck_assert(!is_copy("a/cX", 3, 4));
	ck_assert(!is_copy("a/bbX", 4, 5));
	ck_assert(!is_copy("a/bbX", 4, 6));
	hw_copies_fini(&copies);
	hw_copies_of_fini(&of);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("copies");
	TCase *t = tcase_create("copies");
	tcase_add_loop_test(t, test_which_filters_overlap, 0, sizeof(pairs) / sizeof(pairs[0]));
	tcase_add_test(t, test_as_many_as_filters_match);
	tcase_add_test(t, test_a_topic_beside_a_filter);
	suite_add_tcase(s, t);
	return suite_run(s);
}
