/* SPDX-License-Identifier: MIT */
/*
 * A limit on time that a busy machine may miss. If only such limits have failed in a program, it is run again alone
 * (tests/tools/suites.sh). So a test first asserts what must be true, and then how long it took.
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
