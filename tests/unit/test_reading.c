/* SPDX-License-Identifier: MIT */
/* What is read from payloads that are not our own: Homie's words, elements of a batch, members, and named fields. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "heartwheel/payload.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static struct hw_payload p;

static void teardown(void)
{
	hw_payload_fini(&p);
	ck_assert_uint_eq(p.report.has, 0);
}

static const struct {
	const char *text;
	bool goodbye, has_timeout, asleep, malformed;
} homie[] = {
	{"init", false, true, false, false},
	{"ready", false, true, false, false},
	{"alert", false, true, false, false},
	{"sleeping", false, true, true, false},
	{"disconnected", true, false, false, false},
	{"lost", true, false, false, false},
	{"", false, false, false, true},
	{"Ready", false, false, false, true},
	{"ready ", false, false, false, true},
	{"read", false, false, false, true},
	{"{\"online\":false}", false, false, false, true},
};

START_TEST(homie_states)
{
	hw_payload_homie(&p, homie[_i].text, strlen(homie[_i].text));
	ck_assert(p.goodbye == homie[_i].goodbye);
	ck_assert(p.has_timeout == homie[_i].has_timeout);
	ck_assert(p.malformed == homie[_i].malformed);
	ck_assert(!p.has_timeout || (homie[_i].asleep ? isinf(p.timeout_s) : p.timeout_s == 0));
	hw_payload_fini(&p);
}
END_TEST

static const struct {
	const char *text, *id; /* NULL: names none */
} elements[] = {
	{"\"a\"", "a"},
	{"\"\"", ""},
	{"\"caf\\u00e9 \\\"\"", "caf\xc3\xa9 \""},
	{"{\"id\":\"a\"}", "a"},
	{"{\"battery\":5,\"id\":\"b\",\"id\":\"c\"}", "b"},
	{"{\"id\":\"\"}", ""},
	{"\"a\\u0000b\"", NULL},
	{"{\"id\":\"\\u0000\"}", NULL},
	{"{\"id\":5}", NULL},
	{"{}", NULL},
	{"{\"ID\":\"a\"}", NULL},
	{"5", NULL},
	{"null", NULL},
	{"true", NULL},
	{"[\"a\"]", NULL},
};

START_TEST(batch_elements)
{
	char id[8] = "unset";
	int n = hw_payload_element(&p, elements[_i].text, strlen(elements[_i].text), NULL, id, sizeof(id));
	hw_payload_fini(&p);
	if (!elements[_i].id) {
		ck_assert_int_eq(n, -EINVAL);
		return;
	}
	ck_assert_int_eq(n, (int)strlen(elements[_i].id));
	ck_assert_str_eq(id, elements[_i].id);
}
END_TEST

START_TEST(batch_element_fields)
{
	static const char text[] = "{\"id\":\"a\",\"battery\":5,\"timeout\":7,\"online\":false,\"rssi\":\"x\"}";
	static const char other[] = "{\"by\":\"m\",\"seq\":5,\"online\":true,\"id\":\"a\"}", ten[] = "\"0123456789\"";
	char id[8];
	ck_assert_int_eq(hw_payload_element(&p, text, sizeof(text) - 1, NULL, id, sizeof(id)), 1);
	ck_assert(p.goodbye && p.has_timeout && p.malformed);
	ck_assert(p.timeout_s == 7 && p.report.battery == 5);
	ck_assert_uint_eq(p.report.has, HW_HAS_BATTERY);
	hw_payload_fini(&p);
	ck_assert_int_eq(hw_payload_element(&p, other, sizeof(other) - 1, NULL, id, sizeof(id)), 1);
	ck_assert_int_eq(p.kind, HW_PAYLOAD_MONITOR);
	hw_payload_fini(&p);
	ck_assert_int_eq(hw_payload_element(&p, ten, sizeof(ten) - 1, NULL, id, sizeof(id)), 10);
	ck_assert_str_eq(id, "0123456");
	hw_payload_fini(&p);
}
END_TEST

static const struct {
	const char *text, *path, *value;
	bool is;
} members[] = {
	{"{\"state\":\"offline\"}", "state", "offline", true},
	{" {\"state\":\"offline\"} ", "state", "offline", true},
	{"{\"state\":\"offline\"}", "state", "off", false},
	{"{\"state\":\"offline\"}", "stat", "offline", false},
	{"{\"a\":{\"b\":{\"c\":0}}}", "a.b.c", "0", true},
	{"{\"a\":{\"b\":{\"c\":0}}}", "a.b.c", "0.0", true},
	{"{\"a\":{\"b\":{\"c\":0}}}", "a.b.c", "", false},
	{"{\"a\":{\"b\":{\"c\":0}}}", "a.b.c", "0x", false},
	{"{\"a\":{\"b\":{\"c\":0}}}", "a.b", "0", false},
	{"{\"a\":{\"b\":{\"c\":0}}}", "a.b.c.d", "0", false},
	{"{\"a\":{\"b\":{\"c\":0}}}", "a..c", "0", false},
	{"{\"on\":false}", "on", "false", true},
	{"{\"on\":true}", "on", "false", false},
	{"{\"on\":\"false\"}", "on", "false", true},
	{"{\"on\":null}", "on", "null", true},
	{"{\"on\":[]}", "on", "", false},
	{"{\"on\":false", "on", "false", false},
	{"[{\"on\":false}]", "on", "false", false},
	{"on=false", "on", "false", false},
	{"", "on", "false", false},
};

START_TEST(member)
{
	size_t len = strlen(members[_i].text);
	char *exact = malloc(len + 1);
	memcpy(exact, members[_i].text, len);
	ck_assert_int_eq(hw_payload_member_is(exact, len, members[_i].path, members[_i].value), members[_i].is);
	free(exact);
}
END_TEST

/* What is read where; `has` in the order rssi, battery, version, data. NAN and NULL: not reported. */
static const struct {
	const char *fields[4];
	bool plain;
	const char *text;
	double rssi, battery;
	const char *version, *data;
	bool malformed;
} readings[] = {
	{{"rssi a.b"}, false, "{\"a\":{\"b\":-5},\"rssi\":7,\"battery\":3}", -5, 3, NULL, NULL, false},
	{{"rssi a.b"}, false, "{\"rssi\":7}", NAN, NAN, NULL, NULL, false}, /* it is nowhere else */
	{{"rssi a", "rssi b.c"}, false, "{\"b\":{\"c\":1}}", 1, NAN, NULL, NULL, false},
	{{"rssi a", "rssi b.c"}, false, "{\"b\":{\"c\":1},\"a\":2}", 2, NAN, NULL, NULL, false},
	{{"rssi a", "rssi b"}, false, "{\"a\":null,\"b\":2}", 2, NAN, NULL, NULL, false},
	{{"rssi a"}, false, "{\"a\":null}", NAN, NAN, NULL, NULL, false},
	{{"rssi a", "rssi b"}, false, "{\"a\":\"x\",\"b\":2}", NAN, NAN, NULL, NULL, true},
	{{"version v", "data d.e"}, true, "{\"v\":\"1\",\"d\":{\"e\":[1,{}]}}", NAN, NAN, "1", "[1,{}]", false},
	{{"rssi a"},
         true,
         "{\"battery\":5,\"a\":1,\"online\":false,\"timeout\":9,\"time\":\"x\"}",
         1,
         NAN,
         NULL,
         NULL,
         false},
	{{NULL}, true, "{\"battery\":5}", NAN, NAN, NULL, NULL, false},
	{{NULL}, true, "{\"battery\":", NAN, NAN, NULL, NULL, false},
	{{NULL}, false, "{\"battery\":", NAN, NAN, NULL, NULL, true},
	{{"rssi a"}, true, "{\"a\":[1]}", NAN, NAN, NULL, NULL, true},
	{{"rssi d:0.x"}, true, "{\"d:0\":{\"x\":4}}", 4, NAN, NULL, NULL, false},
	{{"rssi a"}, true, "[{\"a\":1}]", NAN, NAN, NULL, NULL, false},
};

static bool is_number(bool has, double is, double want)
{
	return has ? is == want : isnan(want);
}

static bool is_text(const char *is, const char *want)
{
	return is && want ? strcmp(is, want) == 0 : is == want;
}

START_TEST(reading)
{
	struct hw_field places[4];
	struct hw_reading how = {places, 0, readings[_i].plain};
	const char *why;
	for (; how.n < 4 && readings[_i].fields[how.n]; how.n++)
		ck_assert_int_eq(hw_field_compile(&places[how.n], readings[_i].fields[how.n], &why), 0);
	hw_payload_read(&p, readings[_i].text, strlen(readings[_i].text), &how);
	ck_assert(is_number(p.report.has & HW_HAS_RSSI, p.report.rssi, readings[_i].rssi));
	ck_assert(is_number(p.report.has & HW_HAS_BATTERY, p.report.battery, readings[_i].battery));
	ck_assert(is_text(p.report.version, readings[_i].version));
	ck_assert(is_text(p.report.data, readings[_i].data));
	ck_assert_int_eq(p.malformed, readings[_i].malformed);
	ck_assert(!how.plain || (!p.goodbye && !p.has_timeout && !p.has_time));
	hw_payload_fini(&p);
	for (size_t i = 0; i < how.n; i++)
		hw_field_fini(&places[i]);
}
END_TEST

START_TEST(a_monitor_speaks_its_own_words)
{
	static const char text[] = "{\"by\":\"m\",\"seq\":5,\"online\":true,\"battery\":7}";
	const struct hw_reading how = {.plain = true};
	hw_payload_read(&p, text, sizeof(text) - 1, &how);
	ck_assert_int_eq(p.kind, HW_PAYLOAD_MONITOR);
	ck_assert(p.online && p.seq == 5 && p.report.battery == 7);
	hw_payload_fini(&p);
}
END_TEST

START_TEST(fields_of_an_element)
{
	static const char text[] = "{\"id\":\"x\",\"p\":{\"b\":4},\"online\":false}";
	struct hw_field place;
	const char *why;
	char id[8];
	ck_assert_int_eq(hw_field_compile(&place, "battery  p.b", &why), 0);
	for (int plain = 0; plain < 2; plain++) {
		const struct hw_reading how = {&place, 1, plain};
		ck_assert_int_eq(hw_payload_element(&p, text, sizeof(text) - 1, &how, id, sizeof(id)), 1);
		ck_assert_str_eq(id, "x");
		ck_assert(p.report.has == HW_HAS_BATTERY && p.report.battery == 4);
		ck_assert_int_eq(p.goodbye, !plain);
		hw_payload_fini(&p);
	}
	hw_field_fini(&place);
}
END_TEST

START_TEST(fields_that_are_none)
{
	static const char *const bad[] = {"",       "rssi",    "rssi ",   " rssi a",   "colour a", "rss a",
	                                  "rssi .", "rssi a.", "rssi .a", "rssi a..b", "online a", "time a"};
	struct hw_field f;
	for (int i = 0; i < COUNT(bad); i++) {
		const char *why = NULL;
		ck_assert_msg(hw_field_compile(&f, bad[i], &why) == -EINVAL, "'%s'", bad[i]);
		ck_assert(why && *why);
		ck_assert_ptr_null(f.path);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reading");
	TCase *tc = tcase_create("decode");
	tcase_set_timeout(tc, 120); /* under valgrind */
	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_loop_test(tc, homie_states, 0, COUNT(homie));
	tcase_add_loop_test(tc, batch_elements, 0, COUNT(elements));
	tcase_add_test(tc, batch_element_fields);
	tcase_add_loop_test(tc, member, 0, COUNT(members));
	tcase_add_loop_test(tc, reading, 0, COUNT(readings));
	tcase_add_test(tc, a_monitor_speaks_its_own_words);
	tcase_add_test(tc, fields_of_an_element);
	tcase_add_test(tc, fields_that_are_none);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
