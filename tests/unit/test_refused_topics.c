/* SPDX-License-Identifier: MIT */
/*
 * Topics on which a broker closes the connection: each is found in few closes, and a topic on which the broker
 * acknowledges canaries is not refused.
 */
#include <check.h>
#include <stdlib.h>

#include "../suite.h"
#include "heartwheel/time.h"
#include "mqtt/refused_topics.h"

#define MINUTE (60 * HW_NS_PER_S)

/* One connection: canaries go to the topics from `first` on, in a ring of `n`. The broker closes it on topics up to
 * `denied`. All are in flight at once, or one by one. Whether it was closed. */
static bool connect_once(struct hw_refused_topics *r, unsigned first, unsigned n, unsigned denied, int64_t now)
{
	bool alone = hw_refused_topics_careful(r);
	for (unsigned i = 0; i < n; i++) {
		unsigned t = 1 + (first + i) % n;
		if (!hw_refused_topics_allow(r, t, now))
			continue;
		if (t <= denied) {
			hw_refused_topics_closed(r, alone ? t : 0, now);
			return true;
		}
		hw_refused_topics_acknowledged(r, t);
	}
	return false;
}

/* How often the broker closes connections until one lasts. Each begins `step` topics after the one before. */
static unsigned closes(struct hw_refused_topics *r, unsigned n, unsigned denied, unsigned step, int64_t now)
{
	unsigned times = 0;
	while (connect_once(r, times * step, n, denied, now))
		ck_assert_uint_lt(++times, 4000);
	return times;
}

START_TEST(each_denied_topic_is_found)
{
	const unsigned n = 2 * HW_REFUSED_TOPICS + 7;
	for (unsigned denied = 0; denied < HW_REFUSED_TOPICS; denied += denied / 2 + 1) {
		struct hw_refused_topics r = {0};
		unsigned times = closes(&r, n, denied, (unsigned)_i, 0);
		ck_assert_uint_le(times, denied > 0 ? 2 * denied + 1 : 0);
		ck_assert_uint_eq(closes(&r, n, denied, 0, 1), 0);
		for (unsigned t = 1; t <= n; t++)
			ck_assert_int_eq(hw_refused_topics_allow(&r, t, 1), t > denied);
	}
}
END_TEST

/* More topics than there are places: closes still end. */
START_TEST(more_topics_than_places)
{
	const unsigned n = HW_REFUSED_TOPICS + 50;
	struct hw_refused_topics r = {0};
	ck_assert_uint_le(closes(&r, n, n, 1, 0), 2 * HW_REFUSED_TOPICS + 1);
	ck_assert_uint_eq(closes(&r, n, 0, 0, 100 * MINUTE), 0);
	ck_assert_uint_eq(r.n, 0);
}
END_TEST

/* One minute, two, up to ten; and of many refused topics one is tried a minute. */
START_TEST(tries_become_rare)
{
	struct hw_refused_topics r = {0};
	static const int minutes[] = {1, 2, 4, 8, 10, 10};
	int64_t now = 0;
	hw_refused_topics_closed(&r, 0, now);
	ck_assert_int_eq(hw_refused_topics_closed(&r, 7, now), 0);
	for (unsigned i = 0; i < 6; i++) {
		ck_assert(hw_refused_topics_allow(&r, 7, now));
		ck_assert_int_eq(hw_refused_topics_closed(&r, 7, now), minutes[i] * MINUTE);
		ck_assert(!hw_refused_topics_allow(&r, 7, now + minutes[i] * MINUTE - 1));
		ck_assert(hw_refused_topics_allow(&r, 8, now));
		now += minutes[i] * MINUTE;
	}
	closes(&r, 6, 6, 0, now);
	ck_assert_uint_eq(closes(&r, 6, 6, 0, now + MINUTE), 1);
}
END_TEST

/* The right is given back: the next try ends the refusal, and after a while messages no longer go one by one. */
START_TEST(the_right_is_given_back)
{
	struct hw_refused_topics r = {0};
	closes(&r, 3, 2, 0, 0);
	ck_assert(hw_refused_topics_careful(&r));
	ck_assert_uint_eq(closes(&r, 3, 0, 0, MINUTE), 0);
	ck_assert_uint_eq(r.n, 0);
	closes(&r, 100, 0, 0, MINUTE);
	ck_assert(!hw_refused_topics_careful(&r));
}
END_TEST

/* Closes that have another cause: they come with any topic, and the next canary there is acknowledged. */
START_TEST(a_broker_that_restarts)
{
	struct hw_refused_topics r = {0};
	closes(&r, 3, 1, 0, 0); /* nor does a topic that is refused make others suspicious */
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t topic = 2 + i % 3;
		ck_assert_int_eq(hw_refused_topics_closed(&r, topic, 0), 0);
		ck_assert_int_eq(hw_refused_topics_closed(&r, 0, 0), 0);
		ck_assert(hw_refused_topics_allow(&r, topic, 0));
		hw_refused_topics_acknowledged(&r, topic);
	}
	hw_refused_topics_closed(&r, 7, 0);
	ck_assert_int_gt(hw_refused_topics_closed(&r, 7, 0), 0);
	ck_assert(!hw_refused_topics_allow(&r, 7, 0));
	hw_refused_topics_forget(&r);
	ck_assert(hw_refused_topics_allow(&r, 7, 0) && !hw_refused_topics_careful(&r));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("refused topics");
	TCase *t = tcase_create("refused topics");
	tcase_add_loop_test(t, each_denied_topic_is_found, 0, 4);
	tcase_add_test(t, more_topics_than_places);
	tcase_add_test(t, tries_become_rare);
	tcase_add_test(t, the_right_is_given_back);
	tcase_add_test(t, a_broker_that_restarts);
	suite_add_tcase(s, t);
	return suite_run(s);
}
