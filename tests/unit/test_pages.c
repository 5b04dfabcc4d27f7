/* SPDX-License-Identifier: MIT */
/* Memory of the registry's arrays: what is kept, what is zero, where it lies, at sizes on both sides of the mapped
 * ones. */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../suite.h"
#include "core/pages.h"

#define MIB ((size_t)1 << 20)

static void expect(const uint8_t *p, size_t from, size_t to, uint8_t value)
{
	for (size_t i = from; i < to; i++)
		if (p[i] != value)
			ck_abort_msg("byte %zu is %d, not %d", i, p[i], value);
}

START_TEST(grows)
{
	static const size_t sizes[] = {64,      100,     4096,    MIB,         4 * MIB - 1,
	                               4 * MIB, 5 * MIB, 6 * MIB, 6 * MIB + 1, 40 * MIB + 3};
	uint8_t *p = NULL;
	size_t was = 0;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		p = hw_pages_grow(p, was, sizes[k]);
		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq((uintptr_t)p % 64, 0);
		if (sizes[k] >= MIB)
			ck_assert_uint_eq((uintptr_t)p % (2 * MIB), 0);
		expect(p, 0, was, 0xa5);
		expect(p, was, sizes[k], 0);
		memset(p, 0xa5, sizes[k]);
		was = sizes[k];
	}
	hw_pages_free(p, was);
	hw_pages_free(NULL, 0);
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* their own memory counts */
#else
#define SANITIZED 0
#endif

static bool limited_memory_is_possible(void)
{
	const char *preload = getenv("LD_PRELOAD"); /* valgrind does not survive it */
	return !SANITIZED && (preload == NULL || strstr(preload, "vgpreload") == NULL);
}

/* From nothing, from a small size and from a large one. */
START_TEST(no_memory)
{
	static const size_t sizes[] = {0, MIB, 8 * MIB};
	if (!limited_memory_is_possible())
		return;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct rlimit before, tight;
		uint8_t *p = sizes[k] ? hw_pages_grow(NULL, 0, sizes[k]) : NULL;
		if (p)
			memset(p, 0xa5, sizes[k]);
		ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
		tight = before;
		tight.rlim_cur = 64 * MIB;
		ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
		void *grown = hw_pages_grow(p, sizes[k], 1024 * MIB);
		ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
		ck_assert_ptr_null(grown);
		if (p)
			expect(p, 0, sizes[k], 0xa5);
		hw_pages_free(p, sizes[k]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pages");
	TCase *tc = tcase_create("pages");
	tcase_add_test(tc, grows);
	tcase_add_test(tc, no_memory);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
