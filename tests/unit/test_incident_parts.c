/* SPDX-License-Identifier: MIT */
/* The parts of src/incident that stand alone: globs and matchers, windows, the heap of due times, the table of names,
 * the sentence. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "incident/due.h"
#include "incident/incidents.h"
#include "incident/match.h"
#include "incident/names.h"

START_TEST(globs)
{
	static const struct {
		const char *glob, *text;
		bool matches;
	} cases[] = {{"", "", true},           {"*", "", true},           {"*", "abc", true},   {"a*c", "abc", true},
	             {"a*c", "abcd", false},   {"?", "", false},          {"a?c", "abc", true}, {"*b*", "abc", true},
	             {"a*b*c", "axbxc", true}, {"a*b*c", "axcxb", false}, {"**a", "ba", true},  {"a", "A", false},
	             {"*ab", "aab", true},     {"abc", "ab", false}};
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++)
		ck_assert_msg(hw_glob(cases[k].glob, cases[k].text, strlen(cases[k].text)) == cases[k].matches, "%s %s",
		              cases[k].glob, cases[k].text);
}
END_TEST

static bool matches(const char *lines, const char *id, const char *group, const char *labels)
{
	struct hw_match *m = NULL;
	struct hw_match_subject subject = {id, group, labels};
	ck_assert_int_eq(hw_match_parse(lines, &m), 0);
	bool is = hw_match_is(m, &subject);
	hw_match_free(m);
	return is;
}

START_TEST(matchers)
{
	const char *labels = "site=north\nroom=boiler room";
	ck_assert(matches("", "w-1", "washers", NULL));
	ck_assert(matches("group:washers label:site=north id:w-*", "w-1", "washers", labels));
	ck_assert(!matches("group:washers label:site=north id:v-*", "w-1", "washers", labels));
	ck_assert(matches("id:v-*\nid:w-*", "w-1", "washers", labels));
	ck_assert(!matches("id:v-*\nid:w-* group:pumps", "w-1", "washers", labels));
	ck_assert(matches("label:room=\"boiler room\"", "w-1", NULL, labels));
	ck_assert(matches("\"label:room=boiler r*\"", "w-1", NULL, labels));
	ck_assert(!matches("label:sit=north", "w-1", NULL, labels));
	ck_assert(!matches("label:other=*", "w-1", NULL, labels));
	ck_assert(!matches("group:*", "w-1", NULL, labels)); /* its group is not known */
	ck_assert(matches("\n  \n id:w-1 \n", "w-1", NULL, NULL));
}
END_TEST

START_TEST(wrong_matchers)
{
	static const char *const wrong[] = {"pumps",    "name:x", "id:",        "label:site",
	                                    "label:=x", "id:\"a", "id:\"a\nb\""};
	struct hw_match *m = NULL;
	for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++)
		ck_assert_msg(hw_match_parse(wrong[k], &m) == -EINVAL, "%s", wrong[k]);
}
END_TEST

static bool in_force(const char *text, int day, int hour, int minute)
{
	struct hw_window w;
	struct tm reads = {.tm_wday = day, .tm_hour = hour, .tm_min = minute};
	ck_assert_int_eq(hw_window_parse(text, &w), 0);
	return hw_window_is_in_force(&w, &reads);
}

START_TEST(windows)
{
	ck_assert(in_force("Sun,Wed 02:00-04:00", 0, 2, 0));
	ck_assert(in_force("Sun,Wed 02:00-04:00", 3, 3, 59));
	ck_assert(!in_force("Sun,Wed 02:00-04:00", 3, 4, 0));
	ck_assert(!in_force("Sun,Wed 02:00-04:00", 1, 3, 0));
	ck_assert(in_force("* 22:00-06:00", 5, 23, 0));
	ck_assert(in_force("Fri 22:00-06:00", 6, 5, 59)); /* over midnight: its first day's */
	ck_assert(!in_force("Fri 22:00-06:00", 5, 5, 59));
	ck_assert(in_force("Sat 22:00-06:00", 0, 1, 0));
	ck_assert(in_force("mon 00:00-24:00", 1, 23, 59));
	ck_assert(in_force("* 12:00-12:00", 1, 3, 0));
	struct hw_window w;
	struct tm reads = {.tm_wday = 6, .tm_hour = 1, .tm_min = 30, .tm_sec = 5};
	ck_assert_int_eq(hw_window_parse("Fri 22:00-06:00", &w), 0);
	ck_assert_int_eq(hw_window_age_ms(&w, &reads), (3 * 3600 + 30 * 60 + 5) * 1000);
	static const char *const wrong[] = {"",
	                                    "Sun",
	                                    "Xyz 01:00-02:00",
	                                    "Sun 1:00-02:00",
	                                    "Sun 01:00-25:00",
	                                    "Sun 24:00-01:00",
	                                    "Sun, 01:00-02:00",
	                                    "Sun 01:60-02:00",
	                                    "Sun 01:00 02:00"};
	for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++)
		ck_assert_msg(hw_window_parse(wrong[k], &w) == -EINVAL, "%s", wrong[k]);
}
END_TEST

/* The clock of libc, in a zone with summer time: an hour is skipped, another one repeated. */
START_TEST(summer_time)
{
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	struct hw_window w;
	struct tm reads;
	unsigned spring = 0, autumn = 0;
	ck_assert_int_eq(hw_window_parse("Sun 02:00-03:00", &w), 0);
	for (int64_t minute = 0; minute < 1440; minute++) {
		hw_window_libc(INT64_C(1774738800000) + minute * 60000, false, &reads); /* Sunday, 29 March 2026 */
		spring += hw_window_is_in_force(&w, &reads);
		hw_window_libc(INT64_C(1792879200000) + minute * 60000, false, &reads); /* Sunday, 25 October 2026 */
		autumn += hw_window_is_in_force(&w, &reads);
	}
	ck_assert_uint_eq(spring, 0);
	ck_assert_uint_eq(autumn, 120);
}
END_TEST

#define DUES 200

START_TEST(due_times_against_a_scan)
{
	struct hw_dues q = {0};
	struct hw_due dues[DUES] = {0};
	random_begin(random_seed_of_now());
	ck_assert_int_eq(hw_dues_reserve(&q, DUES), 0);
	for (int step = 0; step < 20000; step++) {
		unsigned k = random_below(DUES);
		hw_dues_set(&q, &dues[k], random_below(3) == 0 ? HW_DUE_NEVER : (int64_t)random_below(1000));
		int64_t least = HW_DUE_NEVER;
		for (unsigned i = 0; i < DUES; i++)
			if (dues[i].at_pos && dues[i].at < least)
				least = dues[i].at;
		const struct hw_due *first = hw_dues_first(&q);
		ck_assert_int_eq(first ? first->at : HW_DUE_NEVER, least);
	}
	hw_dues_fini(&q);
}
END_TEST

#define NAMES 500

START_TEST(names_against_flags)
{
	static struct hw_named entries[NAMES];
	static char texts[NAMES][8];
	static bool in[NAMES];
	struct hw_names t;
	random_begin(random_seed_of_now());
	hw_names_init(&t, random64());
	for (int step = 0; step < 20000; step++) {
		unsigned k = random_below(NAMES);
		snprintf(texts[k], sizeof(texts[k]), "n%u", k);
		ck_assert_ptr_eq(hw_names_find(&t, texts[k]), in[k] ? &entries[k] : NULL);
		if (in[k]) {
			hw_names_remove(&t, &entries[k]);
		} else {
			entries[k].name = texts[k];
			ck_assert_int_eq(hw_names_add(&t, &entries[k]), 0);
		}
		in[k] = !in[k];
	}
	hw_names_fini(&t);
}
END_TEST

static void utc(int64_t wall_ms, bool is_utc, struct tm *out)
{
	(void)is_utc;
	hw_window_libc(wall_ms, true, out);
}

static const char *sentence(const struct hw_incident_view *v)
{
	static char buf[HW_INCIDENT_TEXT];
	return hw_incident_sentence(v, utc, buf, sizeof(buf));
}

START_TEST(sentences)
{
	struct hw_incident_view v = {.kind = HW_INCIDENT_DEVICE,
	                             .device = "ga",
	                             .group = "gates",
	                             .since_ms = 52756000,
	                             .down = 1,
	                             .unreachable = 25};
	ck_assert_str_eq(sentence(&v), "gateway ga is offline since 14:39:16: 25 devices behind it are unreachable");
	v.unreachable = 1;
	ck_assert_str_eq(sentence(&v), "gateway ga is offline since 14:39:16: 1 device behind it is unreachable");
	v.unreachable = 0;
	ck_assert_str_eq(sentence(&v), "device ga of group gates is offline since 14:39:16");
	v.name = "Pump 7";
	ck_assert_str_eq(sentence(&v), "device Pump 7 (ga) of group gates is offline since 14:39:16");
	v.unreachable = 1;
	ck_assert_str_eq(sentence(&v),
	                 "gateway Pump 7 (ga) is offline since 14:39:16: 1 device behind it is unreachable");
	v.unreachable = 0;
	v.name = "ga";
	ck_assert_str_eq(sentence(&v), "device ga of group gates is offline since 14:39:16");
	v.flapping = true;
	ck_assert_str_eq(sentence(&v),
	                 "device ga of group gates goes offline and returns again and again since 14:39:16");
	v.flapping = false;
	v.state = HW_INCIDENT_CLOSED;
	v.closed_ms = 52757000;
	ck_assert_str_eq(sentence(&v), "device ga of group gates was offline from 14:39:16 to 14:39:17");
	v.most = 25;
	ck_assert_str_eq(sentence(&v), "gateway ga was offline from 14:39:16 to 14:39:17, with 25 devices behind it");
	const char *mass =
		"1,500 of 3,000 devices of group valves are offline since 14:39:16; 1,497 still send heartbeats: "
		"probably their network or power";
	v = (struct hw_incident_view){.kind = HW_INCIDENT_MASS, .group = "valves", .since_ms = 52756000, .down = 1500};
	ck_assert_str_eq(sentence(&v),
	                 "1,500 devices of group valves are offline since 14:39:16: probably their network or power");
	v.online = 1497;
	v.offline = 1503;
	ck_assert_str_eq(sentence(&v), mass);
	v.online = 2900; /* of a time before most of them stopped */
	v.offline = 100;
	v.down = 1000;
	v.unreachable = 503;
	ck_assert_str_eq(sentence(&v),
	                 "1,503 of 3,000 devices of group valves are offline since 14:39:16; 1,497 still send "
	                 "heartbeats: probably their network or power");
	v = (struct hw_incident_view){
		.kind = HW_INCIDENT_BLIND, .cause = "deaf", .group = "valves", .since_ms = 52756000};
	ck_assert_str_eq(sentence(&v),
	                 "no message of group valves was received since 14:39:16: its devices are not judged");
	v = (struct hw_incident_view){.kind = HW_INCIDENT_BLIND, .cause = "monitor", .since_ms = 52756000};
	ck_assert_str_eq(sentence(&v),
	                 "no monitor has received the fleet's messages since 14:39:16: devices that stop now are "
	                 "not noticed");
	v.state = HW_INCIDENT_CLOSED;
	v.closed_ms = 52757000;
	ck_assert_str_eq(sentence(&v), "no monitor received the fleet's messages from 14:39:16 to 14:39:17");
	v = (struct hw_incident_view){
		.kind = HW_INCIDENT_UNSEEN_KIND, .group = "valves", .since_ms = 52756000, .down = 2};
	ck_assert_str_eq(sentence(&v), "2 devices of group valves never sent a heartbeat: unseen since 14:39:16");
	v = (struct hw_incident_view){.kind = HW_INCIDENT_TASK, .cause = "task reboot of p has expired"};
	ck_assert_str_eq(sentence(&v), "task reboot of p has expired");
	char small[8];
	v.kind = HW_INCIDENT_DEVICE;
	ck_assert_str_eq(hw_incident_sentence(&v, utc, small, sizeof(small)), "device ");
}
END_TEST

START_TEST(names_of_values)
{
	enum hw_news news;
	enum hw_incident_kind kind;
	enum hw_incident_class class;
	enum hw_incident_state state;
	for (unsigned k = 0; k < HW_NEWS_KINDS; k++) {
		ck_assert_int_eq(hw_news_parse(hw_news_name((enum hw_news)k), &news), 0);
		ck_assert_int_eq((int)news, (int)k);
	}
	for (unsigned k = 0; k < HW_INCIDENT_KINDS; k++) {
		ck_assert_int_eq(hw_incident_kind_parse(hw_incident_kind_name((enum hw_incident_kind)k), &kind), 0);
		ck_assert_int_eq((int)kind, (int)k);
	}
	ck_assert_int_eq(hw_incident_class_parse("unseen", &class), 0);
	ck_assert_int_eq((int)class, HW_CLASS_DOWN);
	ck_assert_int_eq(hw_incident_class_parse(hw_incident_class_name(HW_CLASS_UNREACHABLE), &class), 0);
	ck_assert_int_eq((int)class, HW_CLASS_UNREACHABLE);
	ck_assert_int_eq(hw_incident_state_parse("merged", &state), 0);
	ck_assert_int_eq(hw_news_parse("x", &news), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("parts of incidents");
	TCase *tc = tcase_create("parts");
	tcase_add_test(tc, globs);
	tcase_add_test(tc, matchers);
	tcase_add_test(tc, wrong_matchers);
	tcase_add_test(tc, windows);
	tcase_add_test(tc, summer_time);
	tcase_add_test(tc, due_times_against_a_scan);
	tcase_add_test(tc, names_against_flags);
	tcase_add_test(tc, sentences);
	tcase_add_test(tc, names_of_values);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
