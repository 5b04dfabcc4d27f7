/* SPDX-License-Identifier: MIT */
/* A batch: what is one JSON array, and its elements one by one. Also against cJSON, on random text. */
#include <check.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "core/batch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static const struct {
	const char *text;
	const char *elements; /* each followed by a bar; NULL: no array */
} arrays[] = {
	{"[]", ""},
	{" \t\r\n[ \n] ", ""},
	{"[\"a\"]", "\"a\"|"},
	{" [ \"a\" , \"b\" ] ", "\"a\"|\"b\"|"},
	{"[{\"id\":\"a\"},{}]", "{\"id\":\"a\"}|{}|"},
	{"[1,-2.5e+3,0,0.1,1E5,true,false,null]", "1|-2.5e+3|0|0.1|1E5|true|false|null|"},
	{"[[],[[{}]],\"]\"]", "[]|[[{}]]|\"]\"|"},
	{"[\"\\\"\",\"\\\\\",\"a,b\",{\"]\":\"}\"}]", "\"\\\"\"|\"\\\\\"|\"a,b\"|{\"]\":\"}\"}|"},
	{"[\"\\u00e9\\/\\b\\f\\n\\r\\t\"]", "\"\\u00e9\\/\\b\\f\\n\\r\\t\"|"},
	{"[\"caf\xc3\xa9\"]", "\"caf\xc3\xa9\"|"},
	{"[ 1 ,2\t,\n3]", "1|2|3|"},
	{"[ { \"a\" : [ 1 , 2 ] , \"b\" : { } } ]", "{ \"a\" : [ 1 , 2 ] , \"b\" : { } }|"},
	{"", NULL},
	{" ", NULL},
	{"[", NULL},
	{"]", NULL},
	{"[,]", NULL},
	{"[1,]", NULL},
	{"[1 2]", NULL},
	{"[1],", NULL},
	{"[1]]", NULL},
	{"[1}", NULL},
	{"[{]", NULL},
	{"[{\"a\"}]", NULL},
	{"[{\"a\":}]", NULL},
	{"[{\"a\":1,}]", NULL},
	{"[{a:1}]", NULL},
	{"[{1:1}]", NULL},
	{"{}", NULL},
	{"\"a\"", NULL},
	{"1", NULL},
	{"[01]", NULL},
	{"[1.]", NULL},
	{"[.1]", NULL},
	{"[1e]", NULL},
	{"[+1]", NULL},
	{"[-]", NULL},
	{"[nul]", NULL},
	{"[True]", NULL},
	{"[NaN]", NULL},
	{"['a']", NULL},
	{"[\"a]", NULL},
	{"[\"\\", NULL},
	{"[\"\\x\"]", NULL},
	{"[\"\\u12\"]", NULL},
	{"[\"\\u12g4\"]", NULL},
	{"[\"a\nb\"]", NULL},
	{"[\"\xff\"]", NULL},
	{"[\"\xc3\"]", NULL},
	{"\xef\xbb\xbf[]", NULL},
};

START_TEST(table)
{
	const char *text = arrays[_i].text;
	/* A copy of its exact length: a byte that is read behind it is found by the sanitizers. */
	size_t len = strlen(text), at = 0;
	char *copy = malloc(len ? len : 1), got[256] = "";
	struct hw_element e;
	memcpy(copy, text, len);
	ck_assert_msg(hw_batch_valid(copy, len) == (arrays[_i].elements != NULL), "%s", text);
	while (arrays[_i].elements && hw_batch_next(copy, len, &at, &e)) {
		strncat(got, e.text, e.len);
		strcat(got, "|");
	}
	if (arrays[_i].elements)
		ck_assert_str_eq(got, arrays[_i].elements);
	free(copy);
}
END_TEST

START_TEST(every_beginning_of_an_array_is_none)
{
	static const char text[] = "[\"a\\u0041\\n\",{\"b\":[1.5e-3,true,false,null]},-0,\"\xc3\xa9\"]";
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		char *copy = malloc(len ? len : 1);
		memcpy(copy, text, len);
		ck_assert_uint_eq(hw_batch_valid(copy, len), 0);
		free(copy);
	}
	ck_assert(hw_batch_valid(text, sizeof(text) - 1));
	ck_assert(!hw_batch_valid("[\"a\0\"]", 6));
	ck_assert(!hw_batch_valid("[]\0", 3));
}
END_TEST

START_TEST(depth)
{
	char text[2100];
	for (size_t n = 999; n <= 1001; n++) {
		memset(text, '[', n);
		memset(text + n, ']', n);
		ck_assert(hw_batch_valid(text, 2 * n) == (n <= 1000));
	}
}
END_TEST

/* Random pieces put together: if they are an array, cJSON agrees, and counts as many elements. */
START_TEST(twin)
{
	static const char *const pieces[] = {"[",    "]", "[",      "]",           "{",  "}",    ",",
	                                     ",",    ":", "\"a\"",  "\"\\u00e9\"", "1",  "-0.5", "true",
	                                     "null", " ", "\"k\":", "1e",          "\"", "\\"};
	unsigned arrays_seen = 0;
	for (int run = 0; run < 300000; run++) {
		char text[128] = "[";
		size_t n = 1 + next() % 9, at = 0, len;
		struct hw_element e;
		for (size_t k = 0; k < n; k++)
			strcat(text, pieces[next() % COUNT(pieces)]);
		strcat(text, next() % 4 ? "]" : "");
		len = strlen(text);
		/* To cJSON infinity is not the same as itself. */
		if (!hw_batch_valid(text, len) || strstr(text, "1e1111"))
			continue;
		cJSON *v = cJSON_ParseWithOpts(text, NULL, 1);
		ck_assert_msg(cJSON_IsArray(v), "%s", text);
		int elements = 0;
		for (; hw_batch_next(text, len, &at, &e); elements++) {
			cJSON *one = cJSON_ParseWithLength(e.text, e.len);
			ck_assert_msg(cJSON_Compare(one, cJSON_GetArrayItem(v, elements), 1), "%s", text);
			cJSON_Delete(one);
		}
		ck_assert_msg(elements == cJSON_GetArraySize(v), "%s", text);
		arrays_seen++;
		cJSON_Delete(v);
	}
	ck_assert_uint_gt(arrays_seen, 1000);
}
END_TEST

int main(void)
{
	const char *text = getenv("HW_SEED");
	Suite *s = suite_create("batch");
	TCase *t = tcase_create("all");
	state = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) * 2654435761U;
	printf("HW_SEED=%" PRIu64 "\n", state);
	fflush(stdout);
	tcase_add_loop_test(t, table, 0, (int)COUNT(arrays));
	tcase_add_test(t, every_beginning_of_an_array_is_none);
	tcase_add_test(t, depth);
	tcase_add_test(t, twin);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return suite_run(s);
}
