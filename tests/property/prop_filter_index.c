/* SPDX-License-Identifier: MIT */
/*
 * The index of filters finds the same filters as a comparison of all pairs. The random filters have a few levels, so
 * that they often overlap; some have more levels than the tree can hold.
 *
 * The seeds are fixed; HW_SEED sets another one. The seed is printed.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "heartwheel/filter_index.h"
#include "heartwheel/topic.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SEEDS    4
#define ROUNDS   100
#define FILTERS  150
#define LONG     300 /* levels */

static char filters[FILTERS][2 * LONG + 64];
static unsigned times[FILTERS];

static unsigned below(unsigned n)
{
	return (unsigned)(random64() % n);
}

static void draw(char *text)
{
	static const char *const levels[] = {"a", "b", "a", "b", "ab", "", "$x", "+", "+", "#"};
	unsigned n = 1 + below(5);
	*text = '\0';
	for (unsigned k = below(20) == 0 ? LONG : 0; k > 0; k--)
		strcat(text, "a/");
	for (unsigned k = 0; k < n; k++) {
		const char *level = levels[below(COUNT(levels))];
		strcat(strcat(text, level), k + 1 < n && *level != '#' ? "/" : "");
		if (*level == '#')
			return;
	}
	if (!*text)
		strcpy(text, "a");
}

static bool count(void *arg, size_t k)
{
	(void)arg;
	times[k]++;
	return false;
}

static bool stop(void *arg, size_t k)
{
	(void)k;
	++*(unsigned *)arg;
	return true;
}

static bool equals(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool covers(const char *wide, const char *narrow)
{
	struct hw_topic w, n;
	const char *why;
	ck_assert_int_eq(hw_topic_compile(&w, wide, HW_TOPIC_ANY, &why), 0);
	ck_assert_int_eq(hw_topic_compile(&n, narrow, HW_TOPIC_ANY, &why), 0);
	bool does = hw_topic_covers(&w, &n);
	hw_topic_fini(&w);
	hw_topic_fini(&n);
	return does;
}

static const struct {
	const char *name;
	bool (*search)(const struct hw_filter_index *x, const char *filter, hw_filter_found *found, void *arg);
	bool (*twin)(const char *stored, const char *filter);
} kinds[] = {{"equal", hw_filter_index_equal, equals},
             {"covers", hw_filter_index_covers, covers},
             {"overlaps", hw_filter_index_overlaps, hw_topic_filters_overlap}};

static unsigned compare(const struct hw_filter_index *x, size_t n, size_t kind, const char *filter)
{
	unsigned found = 0, calls = 0;
	memset(times, 0, sizeof(times));
	ck_assert(!kinds[kind].search(x, filter, count, NULL));
	for (size_t k = 0; k < n; k++) {
		if (times[k] != kinds[kind].twin(filters[k], filter))
			ck_abort_msg("%s: '%s', '%s': found %u times", kinds[kind].name, filters[k], filter, times[k]);
		found += times[k];
	}
	bool any = kinds[kind].search(x, filter, stop, &calls);
	if (any != (found > 0) || calls != (found > 0))
		ck_abort_msg("%s: '%s' does not stop at the first", kinds[kind].name, filter);
	return found;
}

START_TEST(the_index_finds_what_all_pairs_find)
{
	unsigned found[COUNT(kinds)] = {0};
	random_begin((uint64_t)_i);
	for (int round = 0; round < ROUNDS; round++) {
		struct hw_filter_index x = {0};
		size_t n = below(FILTERS + 1);
		for (size_t k = 0; k < n; k++) {
			draw(filters[k]);
			ck_assert_int_eq(hw_filter_index_add(&x, filters[k], k), 0);
		}
		for (int k = 0; k < 10; k++) {
			char filter[sizeof(filters[0])];
			draw(filter);
			for (size_t kind = 0; kind < COUNT(kinds); kind++)
				found[kind] += compare(&x, n, kind, filter);
		}
		hw_filter_index_fini(&x);
	}
	for (size_t kind = 0; kind < COUNT(kinds); kind++)
		ck_assert_uint_gt(found[kind], 500);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("filter_index");
	TCase *tc = tcase_create("properties");
	int last = getenv("HW_SEED") || getenv("HW_FEW_ROUNDS") ? 2 : 1 + SEEDS;
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, the_index_finds_what_all_pairs_find, 1, last);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
