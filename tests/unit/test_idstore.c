/* SPDX-License-Identifier: MIT */
/* The id store: cells and chunks come and go, and no id touches another. */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "core/idstore.h"

START_TEST(ids_do_not_touch_each_other)
{
	enum { N = 2000 };
	struct hw_idstore s;
	static uint8_t *ids[N];
	char text[255];
	hw_idstore_init(&s);
	for (int pass = 0; pass < 3; pass++) {
		for (size_t i = 0; i < N; i++) {
			if (ids[i] != NULL)
				continue;
			size_t len = 1 + i % 255;
			memset(text, (int)(i % 251), len);
			ids[i] = hw_idstore_put(&s, text, len);
			ck_assert_ptr_nonnull(ids[i]);
		}
		for (size_t i = 0; i < N; i++) {
			size_t len = 1 + i % 255;
			memset(text, (int)(i % 251), len);
			if (ids[i][0] != len || memcmp(ids[i] + 1, text, len) != 0)
				ck_abort_msg("id %zu is damaged", i);
		}
		for (size_t i = (size_t)pass; i < N; i += pass == 2 ? 1 : 3) {
			if (ids[i] != NULL)
				hw_idstore_drop(&s, ids[i]);
			ids[i] = NULL;
		}
	}
	for (size_t i = 0; i < N; i++)
		if (ids[i] != NULL)
			hw_idstore_drop(&s, ids[i]);
	for (size_t class = 0; class < HW_IDSTORE_CLASSES; class ++)
		ck_assert_ptr_null(s.partial[class]); /* all chunks went back */
}
END_TEST

/* Many chunks of two classes that fill up, get room again and empty, in a fixed disorder. */
START_TEST(chunks_come_and_go)
{
	enum { N = 3000 };
	struct hw_idstore s;
	static uint8_t *ids[N];
	char text[200];
	uint32_t random = 12345;
	hw_idstore_init(&s);
	for (int step = 0; step < 60000; step++) {
		random = random * 1664525 + 1013904223;
		uint32_t i = (random >> 8) % N;
		size_t len = i % 2 == 0 ? 40 : 200;
		memset(text, (int)(i % 251), len);
		bool full_ahead = step % 20000 < 12000; /* mostly put, then mostly drop */
		if (ids[i] == NULL) {
			if (!full_ahead && random % 4 != 0)
				continue;
			ids[i] = hw_idstore_put(&s, text, len);
			ck_assert_ptr_nonnull(ids[i]);
		} else if (!full_ahead || random % 8 == 0) {
			if (ids[i][0] != len || memcmp(ids[i] + 1, text, len) != 0)
				ck_abort_msg("id %u is damaged", i);
			hw_idstore_drop(&s, ids[i]);
			ids[i] = NULL;
		}
	}
	for (size_t i = 0; i < N; i++)
		if (ids[i] != NULL)
			hw_idstore_drop(&s, ids[i]);
	for (size_t class = 0; class < HW_IDSTORE_CLASSES; class ++)
		ck_assert_ptr_null(s.partial[class]);
}
END_TEST

static void check_long_id(const uint8_t *id, uint32_t i)
{
	char text[250];
	memset(text, (int)(i % 251), sizeof(text));
	if (id[0] != sizeof(text) || memcmp(id + 1, text, sizeof(text)) != 0)
		ck_abort_msg("id %u is damaged", i);
}

/* So many that they are in huge pages: those fill up, get room again and go back. */
START_TEST(more_than_the_allocator_is_asked_for)
{
	enum { N = 100000 };
	struct hw_idstore s;
	char text[250];
	uint8_t **ids = calloc(N, sizeof(*ids));
	hw_idstore_init(&s);
	for (int pass = 0; pass < 3; pass++) {
		for (uint32_t i = 0; i < N; i++) {
			if (ids[i] != NULL)
				continue;
			memset(text, (int)(i % 251), sizeof(text));
			ids[i] = hw_idstore_put(&s, text, sizeof(text));
			ck_assert_ptr_nonnull(ids[i]);
		}
		ck_assert_uint_eq(s.small * 16384, (size_t)16 << 20);
		/* A third in one piece, so that pages empty, and of the rest here and there one. */
		for (uint32_t i = 0; i < N; i++) {
			check_long_id(ids[i], i);
			if (i / (N / 3) != (uint32_t)pass && i % 7 != 0)
				continue;
			hw_idstore_drop(&s, ids[i]);
			ids[i] = NULL;
		}
	}
	for (uint32_t i = 0; i < N; i++)
		if (ids[i] != NULL)
			hw_idstore_drop(&s, ids[i]);
	for (size_t class = 0; class < HW_IDSTORE_CLASSES; class ++)
		ck_assert_ptr_null(s.partial[class]);
	ck_assert_ptr_null(s.pages);
	ck_assert_uint_eq(s.small, 0);
	free(ids);
}
END_TEST

/* A cell that was dropped is used before a new one. */
START_TEST(cells_are_used_again)
{
	struct hw_idstore s;
	hw_idstore_init(&s);
	uint8_t *keep = hw_idstore_put(&s, "keep", 4), *first = hw_idstore_put(&s, "first", 5);
	uintptr_t where = (uintptr_t)first;
	hw_idstore_drop(&s, first);
	uint8_t *second = hw_idstore_put(&s, "second", 6);
	ck_assert((uintptr_t)second == where);
	hw_idstore_drop(&s, second);
	hw_idstore_drop(&s, keep);
}
END_TEST

/* ... also one of a chunk that was full. */
START_TEST(full_chunk_gets_room_again)
{
	struct hw_idstore s;
	static uint8_t *ids[4096];
	size_t n = 0;
	hw_idstore_init(&s);
	do {
		ck_assert_uint_lt(n, 4096);
		ids[n++] = hw_idstore_put(&s, "1234567", 7);
	} while (s.partial[0] != NULL);
	ck_assert_uint_gt(n, 1900); /* 8 bytes each */
	uintptr_t where = (uintptr_t)ids[100];
	hw_idstore_drop(&s, ids[100]);
	ids[100] = hw_idstore_put(&s, "7654321", 7);
	ck_assert((uintptr_t)ids[100] == where);
	while (n > 0)
		hw_idstore_drop(&s, ids[--n]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("idstore");
	TCase *tc = tcase_create("idstore");
	tcase_add_test(tc, ids_do_not_touch_each_other);
	tcase_add_test(tc, chunks_come_and_go);
	tcase_add_test(tc, more_than_the_allocator_is_asked_for);
	tcase_add_test(tc, cells_are_used_again);
	tcase_add_test(tc, full_chunk_gets_room_again);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
