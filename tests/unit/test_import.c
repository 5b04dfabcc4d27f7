/* SPDX-License-Identifier: MIT */
/* An import: which rows are new, the same, different or wrong, and which entries they give. */
#include "../suite.h"
#include "heartwheel/fnv.h"
#include "inventory/import.h"

#include <stdio.h>
#include <string.h>

#define NOW "1764000000000"

static const char *const groups[] = {"pumps", "valves", NULL};
static const uint8_t key[16] = {7, 1, 4};
static struct hw_import *m;

static void begin(const char *text)
{
	m = hw_import_new(HW_ROWS_CSV, "a.csv", 1764000000000, groups, key);
	hw_import_feed(m, text, strlen(text));
	hw_import_end(m);
}

/* Compares a row with what is stored, merges, and returns the row's state. */
static int compared(size_t row, const char *values, const char *source)
{
	hw_import_compare(m, row, values, values ? strlen(values) : 0, source, 7);
	m->n_new = m->n_differ = m->n_same = 0; /* some tests merge twice */
	hw_import_merge(m);
	uint64_t n[4] = {0};
	for (size_t i = 0; i < m->n; i++)
		n[m->rows[i].state]++;
	ck_assert_uint_eq(m->n_new, n[HW_IMPORT_NEW]);
	ck_assert_uint_eq(m->n_differ, n[HW_IMPORT_DIFFERS]);
	ck_assert_uint_eq(m->n_same, n[HW_IMPORT_SAME]);
	return m->rows[row].state;
}

static const char *json(size_t row)
{
	static char text[HW_ENTRY_JSON_MAX];
	snprintf(text, sizeof(text), "%.*s", (int)m->rows[row].json_len, m->rows[row].json);
	return text;
}

START_TEST(rows_are_compared_with_what_is_stored)
{
	begin("id,name,label.site\na,A,north\n");
	ck_assert_uint_eq(m->n, 1);
	ck_assert_int_eq(compared(0, NULL, NULL), HW_IMPORT_NEW);
	ck_assert_str_eq(json(0),
	                 "{\"name\":\"A\",\"labels\":{\"site\":\"north\"},\"source\":\"a.csv\",\"since_ms\":" NOW "}");
	ck_assert_int_eq(compared(0, "{\"name\":\"A\",\"labels\":{\"site\":\"north\"}}", "a.csv"), HW_IMPORT_SAME);
	/* What the file does not name stays; so the row changes nothing. */
	hw_import_free(m);
	begin("id,name,label.site\na,A,north\n");
	ck_assert_int_eq(
		compared(0, "{\"name\":\"A\",\"labels\":{\"site\":\"north\",\"x\":\"y\"},\"note\":\"n\"}", "a.csv"),
		HW_IMPORT_SAME);
	hw_import_free(m);
	begin("id,name,label.site\na,A,north\n");
	ck_assert_int_eq(compared(0, "{\"name\":\"B\",\"labels\":{\"x\":\"y\"},\"timeout_ms\":1000}", "a.csv"),
	                 HW_IMPORT_DIFFERS);
	ck_assert_str_eq(
		json(0),
		"{\"name\":\"A\",\"labels\":{\"site\":\"north\",\"x\":\"y\"},\"timeout_ms\":1000,\"source\":\"a.csv\","
		"\"since_ms\":7}");
	/* A stored entry is checked as often as wanted. */
	static const char old[] = "{\"name\":\"B\",\"labels\":{\"x\":\"y\"},\"timeout_ms\":1000}";
	static const char now[] = "{\"name\":\"A\",\"labels\":{\"site\":\"north\",\"x\":\"y\"},\"timeout_ms\":1000}";
	for (int i = 0; i < 3; i++)
		ck_assert(!hw_import_is_stored(m, 0, old, strlen(old), "a.csv"));
	ck_assert(!hw_import_is_stored(m, 0, now, strlen(now), "b.csv"));
	ck_assert(!hw_import_is_stored(m, 0, NULL, 0, NULL));
	ck_assert(hw_import_is_stored(m, 0, now, strlen(now), "a.csv"));
	hw_import_free(m);
	/* The source alone differs. */
	begin("id,name\na,A\nb,\n");
	ck_assert_int_eq(compared(0, "{\"name\":\"A\"}", "b.csv"), HW_IMPORT_DIFFERS);
	ck_assert_int_eq(compared(1, "{}", "a.csv"), HW_IMPORT_SAME);
	ck_assert_int_eq(compared(1, "{\"name\":\"B\"}", "a.csv"), HW_IMPORT_DIFFERS);
	ck_assert_str_eq(json(1), "{\"source\":\"a.csv\",\"since_ms\":7}");
	hw_import_free(m);
}
END_TEST

START_TEST(an_empty_cell_clears_a_stored_label)
{
	begin("id,label.x,label.y\na,,1\n");
	ck_assert_int_eq(compared(0, "{\"labels\":{\"x\":\"1\",\"z\":\"2\"}}", "a.csv"), HW_IMPORT_DIFFERS);
	ck_assert_str_eq(json(0), "{\"labels\":{\"y\":\"1\",\"z\":\"2\"},\"source\":\"a.csv\",\"since_ms\":7}");
	hw_import_free(m);
}
END_TEST

START_TEST(wrong_rows_are_counted_and_listed_by_line)
{
	char stored[600] = "{\"labels\":{", *at = stored + strlen(stored);
	begin("id,group,label.more\na,pumps,1\na,,\nb,pump,\n,pumps,\nc,valves,\n");
	ck_assert_uint_eq(m->n_rows, 5);
	ck_assert_uint_eq(m->n_wrong, 3);
	ck_assert_uint_eq(m->n, 2);
	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s\"l%02d\":\"v\"", i ? "," : "", i);
	sprintf(at, "}}");
	ck_assert_int_eq(compared(0, stored, "a.csv"), HW_IMPORT_WRONG);
	ck_assert_uint_eq(m->n_wrong, 4);
	static const char *const says[] = {"more than 16 labels", "'a' is in line 2 already",
	                                   "monitor.conf has no group 'pump'; did you mean 'pumps'?",
	                                   "the id is missing"};
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(m->errors[i].line, i + 2);
		ck_assert_str_eq(m->errors[i].what.message, says[i]);
	}
	hw_import_free(m);
}
END_TEST

START_TEST(many_rows_are_found_again)
{
	char line[64];
	m = hw_import_new(HW_ROWS_CSV, "a.csv", 1, groups, key);
	hw_import_feed(m, "id\n", 3);
	for (int i = 0; i < 50000; i++)
		hw_import_feed(m, line, (size_t)sprintf(line, "pump-%d\n", i));
	for (int i = 0; i < 500; i++)
		hw_import_feed(m, line, (size_t)sprintf(line, "pump-%d\n", i * 7));
	hw_import_end(m);
	ck_assert_uint_eq(m->n, 50000);
	ck_assert_uint_eq(m->n_wrong, 500);
	ck_assert_uint_eq(m->n_errors, HW_IMPORT_ERRORS_MAX);
	ck_assert(hw_import_names(m, "pump-49999", 10));
	ck_assert(!hw_import_names(m, "pump-50000", 10));
	hw_import_free(m);
}
END_TEST

/* The ids have the same low bits of a hash that anyone can compute: with it, they would fill neighbouring slots. */
START_TEST(a_file_cannot_make_its_ids_collide)
{
	enum { ROWS = 512, SLOTS = 4096, LONGEST = 40 };
	char text[16];
	m = hw_import_new(HW_ROWS_CSV, "a.csv", 1764000000000, groups, key);
	hw_import_feed(m, "id\n", 3);
	for (unsigned k = 0, n = 0; n < ROWS; k++) {
		int len = snprintf(text, sizeof(text), "d%u\n", k);
		if ((hw_fnv64(HW_FNV64_BEGIN, text, (size_t)len - 1) & (SLOTS - 1)) != 0)
			continue;
		hw_import_feed(m, text, (size_t)len);
		n++;
	}
	hw_import_end(m);
	ck_assert_uint_eq(m->n, ROWS);
	ck_assert_uint_eq(m->index_cap, SLOTS);
	unsigned run = 0, longest = 0;
	for (size_t at = 0; at < m->index_cap; at++) {
		run = m->index[at] ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	ck_assert_uint_lt(longest, LONGEST);
	hw_import_free(m);
}
END_TEST

START_TEST(a_cancelled_import_takes_no_more_rows)
{
	m = hw_import_new(HW_ROWS_CSV, "a.csv", 1764000000000, groups, key);
	hw_import_feed(m, "id\na\n", 5);
	m->cancelled = true;
	hw_import_feed(m, "b\nc\n", 4);
	ck_assert_uint_eq(m->n, 1);
	hw_import_free(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("import");
	TCase *t = tcase_create("all");
	tcase_add_test(t, rows_are_compared_with_what_is_stored);
	tcase_add_test(t, an_empty_cell_clears_a_stored_label);
	tcase_add_test(t, wrong_rows_are_counted_and_listed_by_line);
	tcase_add_test(t, many_rows_are_found_again);
	tcase_add_test(t, a_file_cannot_make_its_ids_collide);
	tcase_add_test(t, a_cancelled_import_takes_no_more_rows);
	suite_add_tcase(s, t);
	return suite_run(s);
}
