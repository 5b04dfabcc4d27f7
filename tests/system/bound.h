/* SPDX-License-Identifier: MIT */
/*
 * A bound on time that a busy machine may miss. A program in which nothing but such bounds has failed is run again,
 * alone (tests/tools/suites.sh). So a test asserts what must be true before it asserts how long that took.
 */
#ifndef HW_TEST_BOUND_H
#define HW_TEST_BOUND_H

#include <check.h>

#define ck_assert_within(took, most, unit)                                                                             \
	do {                                                                                                           \
		long long took_ = (took), most_ = (most);                                                              \
		ck_assert_msg(took_ < most_, "not within %lld %s: %lld %s", most_, unit, took_, unit);                 \
	} while (0)

#endif
