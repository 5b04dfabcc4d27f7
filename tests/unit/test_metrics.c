/* SPDX-License-Identifier: MIT */
/* The Prometheus text format: escapes, numbers, histograms. */
#include <check.h>
#include <event2/buffer.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "http/metrics.h"

static struct evbuffer *page;

static void setup(void)
{
	page = evbuffer_new();
}

static void teardown(void)
{
	evbuffer_free(page);
}

static void expect(const char *text)
{
	size_t n = evbuffer_get_length(page);
	char *got = calloc(1, n + 1);
	evbuffer_remove(page, got, n);
	ck_assert_str_eq(got, text);
	free(got);
}

START_TEST(family_is_announced)
{
	hw_metric_family(page, "owed", "gauge", "States.");
	expect("# HELP heartwheel_owed States.\n# TYPE heartwheel_owed gauge\n");
}
END_TEST

START_TEST(help_is_escaped)
{
	hw_metric_family(page, "owed", "gauge", "a\\b\n\"c\"");
	expect("# HELP heartwheel_owed a\\\\b\\n\"c\"\n# TYPE heartwheel_owed gauge\n");
}
END_TEST

START_TEST(labels_are_escaped)
{
	const char *labels[] = {"group", "a\"b\\c\nd", "state", "", NULL};
	hw_metric_sample(page, "devices", labels, 3);
	expect("heartwheel_devices{group=\"a\\\"b\\\\c\\nd\",state=\"\"} 3\n");
}
END_TEST

START_TEST(no_labels_no_braces)
{
	const char *none[] = {NULL};
	hw_metric_sample(page, "blind", NULL, 1);
	hw_metric_sample(page, "blind", none, 0);
	expect("heartwheel_blind 1\nheartwheel_blind 0\n");
}
END_TEST

START_TEST(numbers_read_back)
{
	static const double values[] = {0, 0.1, 12345678901.0, 9007199254740991.0, 1e-9, 0.033333333333333333, -2.5};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		hw_metric_sample(page, "x", NULL, values[i]);
		char *line = evbuffer_readln(page, NULL, EVBUFFER_EOL_LF), *end;
		ck_assert(strncmp(line, "heartwheel_x ", 13) == 0);
		ck_assert_double_eq(strtod(line + 13, &end), values[i]);
		ck_assert_str_eq(end, "");
		free(line);
	}
}
END_TEST

START_TEST(what_is_no_number_has_a_name)
{
	hw_metric_sample(page, "x", NULL, (double)NAN);
	hw_metric_sample(page, "x", NULL, (double)INFINITY);
	hw_metric_sample(page, "x", NULL, -(double)INFINITY);
	expect("heartwheel_x NaN\nheartwheel_x +Inf\nheartwheel_x -Inf\n");
}
END_TEST

START_TEST(histogram_accumulates)
{
	static const double bounds[] = {0.01, 0.1, 5};
	struct hw_histogram h = {.bounds = bounds, .n = 3};
	hw_histogram_add(&h, 0.01); /* on a bound: within */
	hw_histogram_add(&h, 0.0625);
	hw_histogram_add(&h, 0.0625);
	hw_histogram_add(&h, 4);
	hw_histogram_add(&h, 6);
	hw_metric_histogram(page, "delay_seconds", "Delay.", &h);
	expect("# HELP heartwheel_delay_seconds Delay.\n"
	       "# TYPE heartwheel_delay_seconds histogram\n"
	       "heartwheel_delay_seconds_bucket{le=\"0.01\"} 1\n"
	       "heartwheel_delay_seconds_bucket{le=\"0.1\"} 3\n"
	       "heartwheel_delay_seconds_bucket{le=\"5\"} 4\n"
	       "heartwheel_delay_seconds_bucket{le=\"+Inf\"} 5\n"
	       "heartwheel_delay_seconds_sum 10.135\n"
	       "heartwheel_delay_seconds_count 5\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("metrics");
	TCase *tc = tcase_create("metrics");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, family_is_announced);
	tcase_add_test(tc, help_is_escaped);
	tcase_add_test(tc, labels_are_escaped);
	tcase_add_test(tc, no_labels_no_braces);
	tcase_add_test(tc, numbers_read_back);
	tcase_add_test(tc, what_is_no_number_has_a_name);
	tcase_add_test(tc, histogram_accumulates);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
