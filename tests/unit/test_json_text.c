/* SPDX-License-Identifier: MIT */
/* Numbers and texts as we write them in JSON. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/payload.h"
#include "heartwheel/print.h"
#include "heartwheel/report.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define B(s)     s, sizeof(s) - 1

static const struct {
	double v;
	const char *text;
} numbers[] = {
	{87, "87"},
	{-60.5, "-60.5"},
	{0, "0"},
	{0.1, "0.1"},
	{0.1 + 0.2, "0.30000000000000004"},
	{1.0 / 3, "0.3333333333333333"},
	{1234567890.123, "1234567890.123"},
	{1234567890123456.0, "1234567890123456"},
	{9007199254740991.0, "9007199254740991"},
	{1e22, "1e+22"},
	{1.5e300, "1.5e+300"},
	{DBL_MAX, "1.7976931348623157e+308"},
	{5e-324, "4.94065645841247e-324"},
	{-DBL_MAX, "-1.7976931348623157e+308"},
	{INFINITY, "null"},
	{-INFINITY, "null"},
	{NAN, "null"},
};

START_TEST(number)
{
	char text[32];
	ck_assert_int_eq(hw_number_text(numbers[_i].v, text, sizeof(text)), (int)strlen(numbers[_i].text));
	ck_assert_str_eq(text, numbers[_i].text);
}
END_TEST

START_TEST(random_numbers)
{
	char text[32];
	double v;
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = random64();
		memcpy(&v, &bits, sizeof(v));
		if (!isfinite(v))
			continue;
		int n = hw_number_text(v, text, sizeof(text));
		if (n != (int)strlen(text) || strtod(text, NULL) != v)
			ck_abort_msg("%a became %s", v, text);
	}
}
END_TEST

static const struct {
	const char *bytes;
	size_t len;
	const char *json;
} quotes[] = {
	{B(""), "\"\""},
	{B("abc/"), "\"abc/\""},
	{B("a\"b\\c"), "\"a\\\"b\\\\c\""},
	{B("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
	{B("\0\x01\x1f"), "\"\\u0000\\u0001\\u001f\""},
	{B("\x7f\xc2\x85"), "\"\x7f\xc2\x85\""},
	{B("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
	{B("a\xff"
           "b"),
         "\"a\xef\xbf\xbd"
         "b\""},
	{B("\xc3"), "\"\xef\xbf\xbd\""},
	{B("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	{B("\xc3\""), "\"\xef\xbf\xbd\\\"\""},
	{B("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
};

START_TEST(quote)
{
	size_t need = strlen(quotes[_i].json);
	char *exact = malloc(quotes[_i].len ? quotes[_i].len : 1);
	memcpy(exact, quotes[_i].bytes, quotes[_i].len);
	ck_assert_uint_eq(hw_json_quote(exact, quotes[_i].len, NULL, 0), need);
	for (size_t cap = 1; cap < need + 3; cap++) {
		char *buf = malloc(cap);
		memset(buf, 'z', cap);
		ck_assert_uint_eq(hw_json_quote(exact, quotes[_i].len, buf, cap), need);
		size_t kept = cap <= need ? cap - 1 : need;
		ck_assert_uint_eq(strlen(buf), kept);
		ck_assert_mem_eq(buf, quotes[_i].json, kept);
		free(buf);
	}
	free(exact);
}
END_TEST

/* What does not fit is cut, and the length is that of what stands in the buffer. */
START_TEST(print_cuts)
{
	size_t nothing = 0; /* a constant would be warned of */
	char *none = malloc(nothing), text[8];
	for (size_t cap = 1; cap < 12; cap++) {
		char *buf = malloc(cap);
		ck_assert_uint_eq(hw_print(buf, cap, "%s-%d", "abc", 1234), cap < 9 ? cap - 1 : 8);
		ck_assert_uint_eq(strlen(buf), cap < 9 ? cap - 1 : 8);
		free(buf);
	}
	ck_assert_uint_eq(hw_print(none, 0, "%s", "abc"), 0);
	size_t n = 0;
	for (int i = 0; i < 9; i++)
		n += hw_print(text + n, sizeof(text) - n, "ab");
	ck_assert_uint_eq(n, 7);
	ck_assert_str_eq(text, "abababa");
	free(none);
}
END_TEST

static void write_all(struct hw_json *j)
{
	static const struct hw_report report = {.has = HW_HAS_BATTERY, .battery = 87.5};
	hw_json_open(j, '{');
	hw_json_text(j, "a", "x\n");
	hw_json_null(j, "b");
	hw_json_open_member(j, "c", '[');
	hw_json_element(j, 7);
	hw_json_item(j, "\"");
	hw_json_close(j, ']');
	hw_json_open_member(j, "d", '{');
	hw_json_named_text(j, "\\", "y");
	hw_json_close(j, '}');
	hw_json_int(j, "e", -5);
	hw_json_seconds(j, "f", -1050);
	hw_json_seconds(j, "g", 1700000000007);
	hw_json_number(j, "h", NAN);
	hw_json_bool(j, "i", true);
	hw_json_raw(j, "k", "[1]", 3);
	hw_json_report(j, &report);
	hw_json_close(j, '}');
}

/* The same text wherever it goes; one that does not fit is an error, whatever was cut. */
START_TEST(writer)
{
	static const char whole[] =
		"{\"a\":\"x\\n\",\"b\":null,\"c\":[7,\"\\\"\"],\"d\":{\"\\\\\":\"y\"},\"e\":-5,"
		"\"f\":-1.050,\"g\":1700000000.007,\"h\":null,\"i\":true,\"k\":[1],\"battery\":87.5}";
	struct hw_json j;
	size_t len = strlen(whole), n;
	for (size_t cap = 1; cap < len + 3; cap++) {
		char *buf = malloc(cap);
		hw_json_begin_text(&j, buf, cap);
		write_all(&j);
		ck_assert_int_eq(hw_json_end_text(&j), cap > len ? (int)len : -1);
		ck_assert_uint_eq(j.n + j.lost, len);
		ck_assert_mem_eq(buf, whole, cap > len ? len + 1 : cap - 1);
		free(buf);
	}
	hw_json_begin_alloc(&j);
	hw_json_open(&j, '[');
	for (int k = 0; k < 500; k++)
		write_all(&j);
	hw_json_close(&j, ']');
	char *text = hw_json_end_alloc(&j, &n);
	ck_assert_uint_eq(n, 500 * (len + 1) + 1);
	ck_assert_uint_eq(strlen(text), n);
	for (int k = 0; k < 500; k++)
		ck_assert_mem_eq(text + 1 + (size_t)k * (len + 1), whole, len);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("json_text");
	TCase *tc = tcase_create("write");
	random_begin(random_seed_of_now());
	tcase_set_timeout(tc, 120); /* under valgrind */
	tcase_add_loop_test(tc, number, 0, COUNT(numbers));
	tcase_add_test(tc, random_numbers);
	tcase_add_loop_test(tc, quote, 0, COUNT(quotes));
	tcase_add_test(tc, print_cuts);
	tcase_add_test(tc, writer);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
