/* SPDX-License-Identifier: MIT */
/* What a test program ends with. */
#ifndef HW_TEST_SUITE_H
#define HW_TEST_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Runs the suite and frees it. The program's exit status. */
static inline int suite_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
