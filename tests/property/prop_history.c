/* SPDX-License-Identifier: MIT */
/* Tests what reports are calculated with: spans against a twin that has a flag for each millisecond, months against
 * the C library, and the addresses of databases. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "history/calendar.h"
#include "history/entry.h"
#include "history/spans.h"
#include "history/sql.h"

#define LENGTH 300

static unsigned seed;

static int below(int n)
{
	return (int)((unsigned)rand() % (unsigned)n);
}

/* Spans at random, in any order, some empty; and their twin. */
static void make(struct hw_spans *s, bool twin[LENGTH])
{
	memset(twin, 0, LENGTH * sizeof(*twin));
	for (int n = below(12); n > 0; n--) {
		int from = below(LENGTH), to = from - 2 + below(60);
		to = to > LENGTH ? LENGTH : to;
		ck_assert_int_eq(hw_spans_add(s, from, to), 0);
		for (int i = from; i < to; i++)
			twin[i] = true;
	}
	hw_spans_order(s);
}

static void check(const struct hw_spans *s, const bool twin[LENGTH])
{
	int a = below(LENGTH + 20) - 10, b = below(LENGTH + 20) - 10, want = 0;
	for (int i = a < 0 ? 0 : a; i < b && i < LENGTH; i++)
		want += twin[i];
	ck_assert_msg(hw_spans_measure(s, a, b) == want, "seed %u: %lld, not %d", seed,
	              (long long)hw_spans_measure(s, a, b), want);
	for (size_t i = 0; i + 1 < s->n; i++)
		ck_assert_int_lt(s->at[i].to, s->at[i + 1].from);
}

START_TEST(spans_are_sets_of_moments)
{
	bool a[LENGTH], b[LENGTH];
	for (int round = 0; round < 2000; round++) {
		struct hw_spans x = {0}, y = {0}, less = {0};
		make(&x, a);
		make(&y, b);
		check(&x, a);
		ck_assert_int_eq(hw_spans_minus(&x, &y, &less), 0);
		hw_spans_order(&less);
		for (int i = 0; i < LENGTH; i++)
			a[i] = a[i] && !b[i];
		for (int i = 0; i < 20; i++)
			check(&less, a);
		hw_spans_fini(&x);
		hw_spans_fini(&y);
		hw_spans_fini(&less);
	}
}
END_TEST

START_TEST(months_are_those_of_the_calendar)
{
	for (int i = 0; i < 20000; i++) {
		time_t at = (time_t)below(2000000000) * 2;
		struct tm tm;
		gmtime_r(&at, &tm);
		int month = (tm.tm_year + 1900) * 100 + tm.tm_mon + 1;
		ck_assert_int_eq(hw_month_of((int64_t)at * 1000 + below(1000)), month);
		tm = (struct tm){.tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = 1};
		ck_assert_int_eq(hw_month_begin(month), (int64_t)timegm(&tm) * 1000);
		ck_assert_int_eq(hw_month_of(hw_month_begin(hw_month_next(month)) - 1), month);
		ck_assert_int_eq(hw_month_of(hw_month_begin(hw_month_next(month))), hw_month_next(month));
	}
	ck_assert_int_eq(hw_month_parse("2026-11"), 202611);
	ck_assert_int_eq(hw_month_parse("2026-13"), -1);
	ck_assert_int_eq(hw_month_parse("2026-00"), -1);
	ck_assert_int_eq(hw_month_parse("26-11"), -1);
	ck_assert_int_eq(hw_month_parse("2026-1x"), -1);
}
END_TEST

START_TEST(a_place_in_the_stream_is_one_number_that_sorts_as_it_does)
{
	for (int i = 0; i < 20000; i++) {
		struct hw_stream_id a = {1700000000000U + (uint64_t)below(3), (uint64_t)below(3)},
				    b = {1700000000000U + (uint64_t)below(3), (uint64_t)below(3)};
		int64_t x = hw_entry_number(a), y = hw_entry_number(b);
		int want = a.ms != b.ms ? (a.ms > b.ms) - (a.ms < b.ms) : (a.seq > b.seq) - (a.seq < b.seq);
		ck_assert_int_eq((x > y) - (x < y), want);
		ck_assert(hw_entry_id(x).ms == a.ms && hw_entry_id(x).seq == a.seq && x > 0);
	}
}
END_TEST

START_TEST(databases_have_addresses)
{
	static const char *const wrong[] = {"",
	                                    "sqlite:",
	                                    "sqlite:/",
	                                    "sqlite:history.db",
	                                    "mysql://",
	                                    "mysql://h/d",
	                                    "mysql://u@/d",
	                                    "mysql://u@h",
	                                    "mysql://u@h/",
	                                    "mysql://u@h:0/d",
	                                    "mysql://u@h:x/d",
	                                    "mysql://u@h:70000/d",
	                                    "mysql://u@[/s/d",
	                                    "postgres://u@h/d"};
	struct hw_sql_place p;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_msg(hw_sql_place_parse(wrong[i], &p) != NULL, "%s", wrong[i]);
	ck_assert_ptr_null(hw_sql_place_parse("sqlite:/a/b.db", &p));
	ck_assert(!p.mysql);
	ck_assert_str_eq(p.path, "/a/b.db");
	ck_assert_ptr_null(hw_sql_place_parse("mysql://me@db.example:3307/base", &p));
	ck_assert(p.mysql && p.port == 3307);
	ck_assert_str_eq(p.user, "me");
	ck_assert_str_eq(p.host, "db.example");
	ck_assert_str_eq(p.base, "base");
	ck_assert_ptr_null(hw_sql_place_parse("mysql://me@[/run/mysqld/mysqld.sock]/base", &p));
	ck_assert_str_eq(p.socket, "/run/mysqld/mysqld.sock");
	ck_assert_str_eq(p.host, "");
	ck_assert_ptr_null(hw_sql_place_parse("mysql://me@[::1]:3306/base", &p));
	ck_assert_str_eq(p.host, "::1");
}
END_TEST

int main(void)
{
	const char *text = getenv("HW_SEED");
	seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)time(NULL);
	printf("HW_SEED=%u\n", seed);
	srand(seed);
	Suite *s = suite_create("history");
	TCase *t = tcase_create("all");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, spans_are_sets_of_moments);
	tcase_add_test(t, months_are_those_of_the_calendar);
	tcase_add_test(t, a_place_in_the_stream_is_one_number_that_sorts_as_it_does);
	tcase_add_test(t, databases_have_addresses);
	suite_add_tcase(s, t);
	return suite_run(s);
}
