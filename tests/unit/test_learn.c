/* SPDX-License-Identifier: MIT */
/* The estimator of timeouts: what it promises about outages, new habits and mistakes, on random devices. */
#include "../random.h"
#include "../suite.h"
#include "core/learn.h"

#include <math.h>

#define DAY_MS INT64_C(86400000)

/* A device: its gaps, what was learned, and how often it was called offline. */
struct device {
	struct hw_gaps gaps;
	struct hw_learn_rules rules;
	int64_t now_ms, timeout_ms;
	unsigned offline;
};

static void begin(struct device *d, unsigned mistakes, int64_t per_ms, unsigned least_gaps)
{
	*d = (struct device){.now_ms = 1800000000000 + (int64_t)random_below(DAY_MS)};
	hw_learn_rules_init(&d->rules, 1000, DAY_MS, mistakes, per_ms, least_gaps);
	d->timeout_ms = DAY_MS;
}

static void gap(struct device *d, double seconds)
{
	int64_t ms = llround(seconds * 1000);
	d->offline += ms > d->timeout_ms;
	d->now_ms += ms;
	d->timeout_ms = hw_learn_gap(&d->gaps, &d->rules, d->now_ms, ms);
}

static double uniform(double from, double to)
{
	return from + (to - from) * (double)random_below(1000001) / 1e6;
}

/* `n` gaps of about `seconds`, up to a twentieth shorter or longer. */
static void steady(struct device *d, double seconds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		gap(d, seconds * uniform(.95, 1.05));
}

/* Each allowed rate of mistakes, from 4 a day to one in ten years. */
static const struct {
	unsigned mistakes;
	int64_t per_ms;
} allowed[] = {{4, DAY_MS}, {1, DAY_MS}, {1, 30 * DAY_MS}, {1, 3650 * DAY_MS}};
#define N_ALLOWED ((int)(sizeof(allowed) / sizeof(*allowed)))

START_TEST(test_a_device_that_is_steady)
{
	struct device d;
	begin(&d, allowed[_i].mistakes, allowed[_i].per_ms, 1);
	ck_assert_int_eq(hw_learned_ms(&d.gaps, &d.rules), 0);
	steady(&d, 30, HW_LEARN_FIRST_GAPS - 1);
	ck_assert_int_eq(d.timeout_ms, DAY_MS);
	ck_assert_int_eq(hw_learned_ms(&d.gaps, &d.rules), 0);
	steady(&d, 30, 20000);
	ck_assert_int_le(d.timeout_ms, 36000);
	ck_assert_int_eq(hw_learned_ms(&d.gaps, &d.rules), d.timeout_ms);
	ck_assert_uint_eq(hw_learn_seen(&d.gaps), HW_LEARN_COUNT_MAX);
	ck_assert_int_ge(hw_learn_median_ms(&d.gaps), 28500);
	ck_assert_int_le(hw_learn_median_ms(&d.gaps), 31600);
	ck_assert_int_ge(hw_learn_largest_ms(&d.gaps), 31000);
	ck_assert_int_le(hw_learn_largest_ms(&d.gaps), 32000);
}
END_TEST

START_TEST(test_bounds)
{
	for (unsigned n = 2; n <= 10; n++) {
		struct device d;
		begin(&d, 1, 30 * DAY_MS, n);
		steady(&d, 30, 1000);
		ck_assert_int_ge(d.timeout_ms, 29000 * (int64_t)n);
		ck_assert_int_le(d.timeout_ms, 35000 * (int64_t)n);
		ck_assert_uint_eq(d.offline, 0);
	}
	struct device d;
	begin(&d, 1, DAY_MS, 1);
	d.rules.timeout_min_ms = 60000;
	steady(&d, 30, 100);
	ck_assert_int_eq(d.timeout_ms, 60000);
	d.rules.timeout_min_ms = 1000;
	d.rules.timeout_max_ms = 20000;
	steady(&d, 30, 100);
	ck_assert_int_eq(d.timeout_ms, 20000);
}
END_TEST

/* Times that no device has, and clocks that step: no timeout leaves the bounds. */
START_TEST(test_any_numbers)
{
	for (unsigned round = 0; round < 200; round++) {
		struct device d;
		begin(&d, 1 + (unsigned)random_below(24), DAY_MS << random_below(12), 1 + (unsigned)random_below(10));
		for (unsigned i = 0; i < 500; i++) {
			int64_t gap_ms = (int64_t)(random64() >> (1 + random_below(63)));
			int64_t now_ms = random_below(8) ? d.now_ms + (gap_ms & 0xffffff) : (int64_t)(random64() >> 22);
			d.now_ms = now_ms;
			d.timeout_ms = hw_learn_gap(&d.gaps, &d.rules, now_ms, gap_ms);
			ck_assert_int_ge(d.timeout_ms, 1000);
			ck_assert_int_le(d.timeout_ms, DAY_MS);
		}
		ck_assert_uint_eq(hw_learn_seen(&d.gaps), HW_LEARN_COUNT_MAX);
	}
}
END_TEST

/* The text is read back as it was, and no other text is taken. Another program may have written any text of the right
 * form: whatever gaps it makes, no timeout leaves the bounds. */
START_TEST(test_text)
{
	char text[HW_LEARN_TEXT], old[HW_LEARN_TEXT];
	for (unsigned round = 0; round < 2000; round++) {
		struct device d;
		struct hw_gaps read;
		int64_t unit_ms;
		begin(&d, 1 + (unsigned)random_below(24), DAY_MS << random_below(12), 1 + (unsigned)random_below(10));
		for (int i = 0; i < 3; i++)
			d.gaps.word[i] = random64();
		hw_learn_print(&d.gaps, d.rules.unit_ms, text);
		ck_assert_uint_eq(strlen(text), HW_LEARN_TEXT - 1);
		ck_assert(hw_learn_parse(&read, &unit_ms, text, strlen(text)));
		ck_assert_mem_eq(&read, &d.gaps, sizeof(read));
		ck_assert_int_eq(unit_ms, d.rules.unit_ms);
		for (size_t len = 0; len < strlen(text); len++)
			ck_assert(!hw_learn_parse(&read, &unit_ms, text, len));
		snprintf(old, sizeof(old), "%.34s==", text); /* names no unit */
		ck_assert(hw_learn_parse(&read, &unit_ms, old, strlen(old)));
		ck_assert_mem_eq(&read, &d.gaps, sizeof(read));
		ck_assert_int_eq(unit_ms, 0);
		for (unsigned i = 0; i < 50; i++)
			gap(&d, (double)(random64() >> 20 >> random_below(44)) / 1000);
		ck_assert_int_ge(d.timeout_ms, 1000);
		ck_assert_int_le(d.timeout_ms, DAY_MS);
		size_t at = random_below(HW_LEARN_TEXT - 1);
		text[at] = (char)random_below(at < 2 ? 128 : 32);
		if (at < 2 ? text[0] != 'A' || text[1] < 'Q' || text[1] > 'f' : text[at] < '!')
			ck_assert(!hw_learn_parse(&read, &unit_ms, text, HW_LEARN_TEXT - 1));
	}
}
END_TEST

/* One outage over three timeouts, of whatever length: the timeout is as before after the next usual gaps. */
START_TEST(test_an_outage_is_not_learned)
{
	for (double outage = 100; outage < 3e6; outage *= 1.5) {
		struct device d;
		begin(&d, allowed[_i].mistakes, allowed[_i].per_ms, 1);
		steady(&d, 30, 3000 + (unsigned)random_below(3000));
		int64_t before = d.timeout_ms;
		gap(&d, outage);
		ck_assert_uint_ge(d.offline, 1);
		steady(&d, 30, 4);
		ck_assert_int_le(d.timeout_ms, before + before / 11);
	}
}
END_TEST

/* A short outage lengthens the timeout by no more than its own length, and for a time. */
START_TEST(test_a_short_outage)
{
	for (double outage = 35; outage < 95; outage += 5) {
		struct device d;
		begin(&d, allowed[_i].mistakes, allowed[_i].per_ms, 1);
		steady(&d, 30, 3000 + (unsigned)random_below(3000));
		gap(&d, outage);
		steady(&d, 30, 4);
		ck_assert_int_le(d.timeout_ms, (int64_t)(outage * 1100));
	}
}
END_TEST

/* A device that sends half as often is called offline once, a quarter as often at most three times. */
START_TEST(test_a_device_that_slows_down)
{
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned factor = 2; factor <= 4; factor *= 2) {
			struct device d;
			begin(&d, allowed[_i].mistakes, allowed[_i].per_ms, 1 + (unsigned)random_below(3));
			double seconds = uniform(5, 120);
			steady(&d, seconds, 500 + (unsigned)random_below(5000));
			d.offline = 0;
			steady(&d, seconds * factor, 20);
			/* With one a day or more allowed, one allowed mistake may be among these gaps. */
			unsigned most = (factor == 2 ? 1U : 3U) + (_i < 2 ? 1U : 0U);
			ck_assert_msg(d.offline <= most, "%u times offline at 1/%u", d.offline, factor);
		}
	}
}
END_TEST

/* After such a change too, the timeout is near the gaps of the device: the device may stop at any time. */
START_TEST(test_a_device_that_slows_down_and_stops)
{
	for (unsigned round = 0; round < 100; round++) {
		struct device d;
		begin(&d, allowed[_i].mistakes, allowed[_i].per_ms, 1 + (unsigned)random_below(3));
		double seconds = uniform(5, 120), factor = uniform(2, 4);
		steady(&d, seconds, 500 + (unsigned)random_below(5000));
		for (unsigned k = 0; k < 20; k++) {
			steady(&d, seconds * factor, 1);
			ck_assert_msg((double)d.timeout_ms < 30 * seconds * factor * 1000,
			              "%.1f times the gap after %u gaps of factor %.1f",
			              (double)d.timeout_ms / (seconds * factor * 1000), k + 1, factor);
		}
	}
}
END_TEST

/* Another number of mistakes is allowed, as by a reload; all that was learned is kept. */
static void other_rules(struct device *d, int i)
{
	int64_t unit_ms = d->rules.unit_ms;
	hw_learn_rules_init(&d->rules, 1000, DAY_MS, allowed[i].mistakes, allowed[i].per_ms, 1);
	if (d->rules.unit_ms != unit_ms)
		hw_learn_restart(&d->gaps, &d->rules, d->now_ms);
}

/* A device that sends more often is followed within two days or 500 gaps, whichever is later, also with other rules
 * than before. */
START_TEST(test_a_device_that_sends_more_often)
{
	int before = _i / N_ALLOWED, after = _i % N_ALLOWED;
	for (double seconds = 5; seconds < 40000; seconds *= 3) {
		struct device d;
		begin(&d, allowed[before].mistakes, allowed[before].per_ms, 1);
		steady(&d, seconds * 4, 1000);
		other_rules(&d, after);
		int64_t since = d.now_ms;
		for (unsigned n = 0; n < 500 || d.now_ms - since < 2 * DAY_MS; n++)
			steady(&d, seconds, 1);
		ck_assert_int_le(d.timeout_ms, (int64_t)(seconds * 1400));
	}
}
END_TEST

/* Random gaps without memory: over 60 days a device makes about as many mistakes as allowed. Twice as many, and 20 more
 * for chance, are not. */
START_TEST(test_mistakes_are_as_allowed)
{
	unsigned offline = 0;
	double days = 0;
	for (unsigned round = 0; round < 20; round++) {
		struct device d;
		begin(&d, 4, DAY_MS, 1);
		int64_t since = d.now_ms;
		while (d.now_ms - since < 60 * DAY_MS)
			gap(&d, .5 - 60 * log(uniform(1e-6, 1)));
		offline += d.offline;
		days += 60;
		ck_assert_uint_eq(hw_learn_mistakes(&d.gaps),
		                  d.offline < HW_LEARN_COUNT_MAX ? d.offline : HW_LEARN_COUNT_MAX);
	}
	ck_assert_msg(offline < 2 * 4 * days + 20, "%u mistakes in %.0f days", offline, days);
	ck_assert_msg(offline > days, "%u mistakes in %.0f days: the timeouts are too long", offline, days);
}
END_TEST

/* How often a device is called offline that beats each minute, from day 30 to day 180. Each message is lost with
 * probability `loss`; on two days of the week the device beats each `weekend` seconds. One mistake in 30 days is
 * allowed. */
static unsigned rarely(double loss, double weekend)
{
	struct device d;
	begin(&d, 1, 30 * DAY_MS, 2);
	int64_t since = d.now_ms;
	unsigned before = 0;
	while (d.now_ms - since < 180 * DAY_MS) {
		double interval = (d.now_ms / DAY_MS) % 7 < 2 ? weekend : 60, seconds = interval;
		while (uniform(0, 1) < loss)
			seconds += interval;
		gap(&d, seconds * uniform(.98, 1.02));
		if (d.now_ms - since < 30 * DAY_MS)
			before = d.offline;
	}
	return d.offline - before;
}

/* 20 devices in 150 days may make 100 mistakes; twice as many are not allowed. */
START_TEST(test_few_mistakes)
{
	static const struct {
		double loss, weekend;
	} cases[] = {{.01, 60}, {.02, 60}, {.03, 60}, {.05, 60}, {.1, 60}, {.2, 60}, {0, 240}, {0, 600}, {0, 3600}};
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		unsigned offline = 0;
		for (int i = 0; i < 20; i++)
			offline += rarely(cases[k].loss, cases[k].weekend);
		ck_assert_msg(offline <= 200, "loss %.2f, weekends %.0f s: %u mistakes", cases[k].loss,
		              cases[k].weekend, offline);
	}
}
END_TEST

/* 100 devices that beat each second and lose some heartbeats, in their first two hours. One mistake in 30 days is
 * allowed, so nearly all mistakes are of devices that had lost no heartbeat before. */
START_TEST(test_few_mistakes_from_the_first_loss_on)
{
	static const double losses[] = {.01, .02, .05, .1, .2};
	unsigned offline = 0;
	for (int i = 0; i < 100; i++) {
		struct device d;
		begin(&d, 1, 30 * DAY_MS, 2);
		hw_learn_rules_first(&d.rules, 10000);
		d.timeout_ms = 10000;
		for (unsigned k = 0; k < 7200; k++) {
			double seconds = uniform(.98, 1.02);
			while (uniform(0, 1) < losses[_i])
				seconds += 1;
			gap(&d, seconds);
		}
		offline += d.offline;
	}
	ck_assert_msg(offline <= 14, "loss %.2f: %u mistakes", losses[_i], offline);
}
END_TEST

/* A habit is remembered only where mistakes are rare. After a reload that allows more mistakes, the gaps of two days
 * decide. */
START_TEST(test_a_habit_and_other_rules)
{
	struct device d;
	begin(&d, 1, 30 * DAY_MS, 1);
	int64_t since = d.now_ms;
	while (d.now_ms - since < 30 * DAY_MS || d.now_ms / DAY_MS % 7 != 6)
		steady(&d, d.now_ms / DAY_MS % 7 < 2 ? 3600 : 60, 1);
	ck_assert_int_gt(d.timeout_ms, 3600000);
	other_rules(&d, _i);
	for (unsigned k = 0; k < 3000; k++) {
		steady(&d, 60, 1);
		ck_assert_msg(k < 100 || d.timeout_ms < 90000, "%lld ms after %u gaps", (long long)d.timeout_ms, k);
	}
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());
	Suite *suite = suite_create("learn");
	TCase *tc = tcase_create("learn");
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_a_device_that_is_steady, 0, N_ALLOWED);
	tcase_add_test(tc, test_bounds);
	tcase_add_test(tc, test_any_numbers);
	tcase_add_test(tc, test_text);
	tcase_add_loop_test(tc, test_an_outage_is_not_learned, 0, N_ALLOWED);
	tcase_add_loop_test(tc, test_a_short_outage, 0, N_ALLOWED);
	tcase_add_loop_test(tc, test_a_device_that_slows_down, 0, N_ALLOWED);
	tcase_add_loop_test(tc, test_a_device_that_slows_down_and_stops, 0, N_ALLOWED);
	tcase_add_loop_test(tc, test_a_device_that_sends_more_often, 0, N_ALLOWED * N_ALLOWED);
	tcase_add_test(tc, test_mistakes_are_as_allowed);
	tcase_add_test(tc, test_few_mistakes);
	tcase_add_loop_test(tc, test_few_mistakes_from_the_first_loss_on, 0, 5);
	tcase_add_loop_test(tc, test_a_habit_and_other_rules, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
