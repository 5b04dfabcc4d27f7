/* SPDX-License-Identifier: MIT */
/*
 * An object read where it stands and the same by cJSON: which is read how, and that both say the same, of what devices
 * write, of what is at the edges, and of all that random changes make of these.
 */
#include <check.h>
#include <stdlib.h>

#include "../random.h"
#include "../suite.h"
#include "../twin_object.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* In a block that ends where it does, so that valgrind and the sanitizers see a read past it. */
static const char *differs(const char *text, size_t len, bool *plain)
{
	char *exact = malloc(len);
	ck_assert_ptr_nonnull(exact);
	memcpy(exact, text, len);
	const char *why = object_differs(exact, len, plain);
	free(exact);
	return why;
}

/* What devices write is read where it stands; what is not plain, by cJSON; what is no JSON is neither's. */
static const struct {
	const char *text;
	bool plain;
} texts[] = {
	{"{}", true},
	{"{ } \r\n\t", true},
	{"{\"time\":1700000000,\"online\":true,\"battery\":87,\"rssi\":-67.5,\"ip\":\"192.168.17.42\",\"a\":null}",
         true},
	{"{\"time\":1700000000.1234567}", true}, /* more digits than a double holds */
	{"{\"a\":-0,\"b\":0.1,\"c\":-0.0,\"d\":123456789012345678901234567890}", true},
	{"{\"a\":9007199254740992,\"b\":9007199254740993,\"c\":99999999999999999,\"d\":0.00000000000000001}", true},
	{"{\"a\":\"caf\xc3\xa9 \xf0\x9f\x98\x80 \x7f\"}", true},
	{"{\"x y.\xc3\xa9\":1, \"\":[], \"a\":{}}", true},
	{"{\"a\":{\"b\":{\"c\":-1.5e3}},\"data\":{\"a\":\"t\",\"rssi\":{\"a\":[1,{\"a\":true}]}}}", true},
	{"{\"a\":{\"b\":1,\"b\":2},\"a\":3}", true},
	{"{\"Time\":\"2026-11-23T17:00:00\",\"Wifi\":{\"AP\":1,\"RSSI\":62,\"Signal\":-69}}", true},
	{"{\"data\":[1e300,1E-7,2.50]}", true},
	{"\"id\"", true},
	{"\"\"", true},
	{"{\"a\":1e3}", false},
	{"{\"a\":1e999}", false},
	{"{\"a\":[\"\\u0061\"]}", false},
	{"{\"a\\n\":1}", false},
	{"\"i\\u0064\"", false},
	{"{\"a\":01}", false}, /* cJSON takes it */
	{"{\"a\":1.}", false},
	{"{\"a\":-}", false},
	{"{\"a\":.5}", false},
	{"{\"a\":1 2}", false},
	{"{\"a\":tru}", false},
	{"{\"a\":truee}", false},
	{"{\"a\":[1,]}", false},
	{"{\"a\":1,}", false},
	{"{,}", false},
	{"{\"a\" 1}", false},
	{"{\"a\":{\"b\":1}", false},
	{"{\"a\":\"\xc3\"}", false},
	{"{\"a\":\"\xed\xa0\x80\"}", false},
	{"{\"a\":\"\x1f\"}", false},
	{"{\"a\":\"", false},
	{"{\"a\":1}x", false},
	{"{\"a\":1}}", false},
	{"\"a\"b", false},
	{"\"", false},
	{"{", false},
	{"{\"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"10\":0,\"11\":0,\"12\":0,"
         "\"13\":0,\"14\":0,\"15\":0,\"16\":0,\"17\":0,\"18\":0,\"19\":0,\"20\":0,\"21\":0,\"22\":0,\"23\":0}",
         true}, /* as many as there is room for */
	{"{\"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"10\":0,\"11\":0,\"12\":0,"
         "\"13\":0,\"14\":0,\"15\":0,\"16\":0,\"17\":0,\"18\":0,\"19\":0,\"20\":0,\"21\":0,\"22\":0,\"23\":0,\"24\":0}",
         false},
};

START_TEST(known_texts)
{
	bool plain;
	const char *why = differs(texts[_i].text, strlen(texts[_i].text), &plain);
	ck_assert_msg(!why, "%s: %s", texts[_i].text, why);
	ck_assert_msg(plain == texts[_i].plain, "%s is read %s", texts[_i].text,
	              plain ? "where it stands" : "by cJSON");
}
END_TEST

/* Once of each length, around the longest number that cJSON takes, and of each depth around the deepest plain one. */
START_TEST(long_and_deep)
{
	char text[4096];
	bool plain;
	for (int n = 1; n < 80; n++) {
		for (int dot = 0; dot < 2; dot++) {
			int len = snprintf(
				text, sizeof(text), "{\"a\":%.*s%.*s,\"b\":[%.*s]}", dot * 2, "0.", n,
				"3141592653589793238462643383279502884197169399375105820974944592307816406286208998", n,
				"11111111111111111111111111111111111111111111111111111111111111111111111111111111");
			const char *why = differs(text, (size_t)len, &plain);
			ck_assert_msg(!why, "%s: %s", text, why);
		}
	}
	for (int n = 90; n < 1100; n += n < 110 ? 1 : 97) {
		memcpy(text, "{\"a\":", 5);
		memset(text + 5, '[', (size_t)n);
		memset(text + 5 + n, ']', (size_t)n);
		text[5 + 2 * n] = '}';
		const char *why = differs(text, (size_t)(6 + 2 * n), &plain);
		ck_assert_msg(!why, "%d deep: %s", n, why);
		ck_assert_int_eq(plain, n <= 100);
	}
}
END_TEST

/* One change: a byte, a piece that means something, a cut, a part that comes twice. Returns the new length. */
static size_t change(char *text, size_t len, size_t cap)
{
	static const char *const pieces[] = {"{",       "}",        "\"",     ",",       ":",   "[",     "]",
	                                     "\\",      "\\u0000",  "null",   "true",    "1e5", "1e999", "-",
	                                     "9",       "\xc3",     " ",      "\n",      "0",   ".",     "\x1f",
	                                     "\\ud83d", "\xc3\xa9", "\"a\":", "\"b\":1", "{}",  "[]"};
	size_t at = random64() % (len + 1), n;
	const char *piece;
	switch (random64() % 4) {
	case 0:
		if (at < len)
			text[at] = (char)random64();
		return len;
	case 1:
		piece = pieces[random64() % (uint64_t)COUNT(pieces)];
		n = strlen(piece);
		if (len + n > cap)
			return len;
		memmove(text + at + n, text + at, len - at);
		memcpy(text + at, piece, n);
		return len + n;
	case 2:
		n = random64() % 4;
		if (at + n > len)
			return len;
		memmove(text + at, text + at + n, len - at - n);
		return len - n;
	default:
		n = random64() % 24;
		if (at + n > len || len + n > cap)
			return len;
		memmove(text + at + n, text + at, len - at);
		return len + n;
	}
}

START_TEST(whatever_becomes_of_them)
{
	unsigned plain_ones = 0, rounds = 60000;
	char text[2048];
	for (unsigned round = 0; round < rounds; round++) {
		const char *from = texts[random64() % (uint64_t)COUNT(texts)].text;
		size_t len = strlen(from);
		bool plain;
		memcpy(text, from, len);
		for (uint64_t k = random64() % 6; k < 6; k++)
			len = change(text, len, sizeof(text));
		if (len == 0 || (text[0] != '{' && text[0] != '"'))
			continue;
		const char *why = differs(text, len, &plain);
		ck_assert_msg(!why, "%.*s: %s", (int)len, text, why);
		plain_ones += plain;
	}
	ck_assert_uint_gt(plain_ones, rounds / 20);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("object");
	TCase *tc = tcase_create("twin");
	random_begin(random_seed_of_now());
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, known_texts, 0, COUNT(texts));
	tcase_add_test(tc, long_and_deep);
	tcase_add_test(tc, whatever_becomes_of_them);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
