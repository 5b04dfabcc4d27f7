/* SPDX-License-Identifier: MIT */
/* The table of expected devices against a naive twin, an array of a fixed pool of ids. */
#include <errno.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "heartwheel/expected.h"

#define POOL  3000
#define STEPS 300000

struct twin {
	bool there, named;
	enum hw_expected_state state;
	int64_t at_ms, since_ms, timeout_ms;
	uint16_t group;
	int source, text;
};

static struct twin twin[POOL];
static const char *const sources[] = {"", "pumps.csv", "valves.csv"};

static struct hw_id id_of(int k)
{
	static char text[32];
	int n = snprintf(text, sizeof(text), "device-%d", k);
	return (struct hw_id){text, (size_t)n};
}

static struct hw_id text_of(int k)
{
	static char text[200];
	memset(text, 'a' + k % 26, sizeof(text));
	return (struct hw_id){text, (size_t)(k % 200)};
}

#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

static void put(struct hw_expected *e, int k)
{
	struct twin *t = &twin[k];
	uint32_t i;
	t->since_ms = (int64_t)random_below(2000000000) * 800;
	t->timeout_ms = random_below(2) ? (int64_t)random_below(2000000000) * 150 : 0;
	t->group = (uint16_t)random_below(HW_EXPECTED_GROUPS);
	t->source = (int)random_below(3);
	t->text = (int)random_below(5000);
	struct hw_expected_view v = {.id = id_of(k),
	                             .text = text_of(t->text),
	                             .source = sources[t->source],
	                             .since_ms = t->since_ms,
	                             .timeout_ms = t->timeout_ms,
	                             .group = t->group};
	MUST(hw_expected_put(e, &v, &i) == 0);
	if (!t->there)
		t->state = HW_EXPECTED_RESTS;
	t->there = t->named = true;
}

static void compare(struct hw_expected *e, int k)
{
	const struct twin *t = &twin[k];
	struct hw_id id = id_of(k);
	uint32_t i = hw_expected_find(e, id.text, id.len);
	MUST((i != HW_NIL) == t->there);
	if (!t->there)
		return;
	struct hw_expected_view v = hw_expected_at(e, i);
	struct hw_id text = text_of(t->text);
	MUST(v.id.len == id.len && memcmp(v.id.text, id.text, id.len) == 0);
	MUST(v.text.len == text.len && memcmp(v.text.text, text.text, text.len) == 0);
	MUST(v.since_ms == t->since_ms && v.timeout_ms == t->timeout_ms && v.group == t->group);
	MUST(strcmp(v.source, sources[t->source]) == 0);
	MUST(v.state == t->state && (t->state == HW_EXPECTED_RESTS || v.at_ms == t->at_ms));
	MUST(hw_expected_is_missing(e, i) != t->named);
}

static void step(struct hw_expected *e)
{
	int k = (int)random_below(POOL);
	struct twin *t = &twin[k];
	struct hw_id id = id_of(k);
	uint32_t i = hw_expected_find(e, id.text, id.len);
	t->at_ms = i == HW_NIL || t->state == HW_EXPECTED_RESTS || random_below(2) ? (int64_t)random_below(1000000)
	                                                                           : t->at_ms;
	switch (i == HW_NIL ? 0 : random_below(9)) {
	case 0:
	case 1:
		if (i != HW_NIL)
			t->at_ms = hw_expected_at(e, i).at_ms;
		put(e, k);
		break;
	case 2:
		hw_expected_remove(e, i);
		t->there = false;
		break;
	case 3:
	case 4:
		MUST(hw_expected_wait(e, i, t->at_ms) == 0);
		t->state = HW_EXPECTED_WAITS;
		break;
	case 5:
		MUST(hw_expected_set_unseen(e, i, t->at_ms) == 0);
		t->state = HW_EXPECTED_UNSEEN;
		break;
	case 6:
		hw_expected_rest(e, i);
		t->state = HW_EXPECTED_RESTS;
		break;
	case 7:
		MUST(hw_expected_refuse(e, i, t->at_ms) == 0);
		t->state = HW_EXPECTED_REFUSED;
		break;
	default:
		t->at_ms = hw_expected_at(e, i).at_ms;
		hw_expected_found(e, i);
		t->named = true;
	}
	compare(e, k);
}

static void compare_all(struct hw_expected *e)
{
	uint32_t count = 0, unseen = 0;
	int64_t first = INT64_MAX, at = INT64_MAX;
	for (int k = 0; k < POOL; k++) {
		compare(e, k);
		count += twin[k].there;
		unseen += twin[k].there && twin[k].state == HW_EXPECTED_UNSEEN;
		bool timed = twin[k].state == HW_EXPECTED_WAITS || twin[k].state == HW_EXPECTED_REFUSED;
		if (twin[k].there && timed && twin[k].at_ms < first)
			first = twin[k].at_ms;
	}
	MUST(hw_expected_count(e) == count && hw_expected_unseen(e) == unseen);
	MUST((hw_expected_first(e, &at) == HW_NIL) == (first == INT64_MAX) && at == first);
	for (uint32_t k = 0; k < unseen; k++)
		MUST(hw_expected_at(e, hw_expected_unseen_at(e, k)).state == HW_EXPECTED_UNSEEN);
}

START_TEST(test_against_the_twin)
{
	static const uint8_t key[16] = {1};
	struct hw_expected *e = hw_expected_new(key);
	memset(twin, 0, sizeof(twin));
	for (int n = 0; n < STEPS; n++) {
		step(e);
		if (n % 10000 == 0) {
			compare_all(e);
			hw_expected_reading(e);
			for (int k = 0; k < POOL; k++)
				twin[k].named = false;
		}
	}
	compare_all(e);
	hw_expected_free(e);
}
END_TEST

START_TEST(test_bounds)
{
	static const uint8_t key[16] = {1};
	char text[HW_EXPECTED_TEXT_MAX + 1];
	struct hw_expected *e = hw_expected_new(key);
	uint32_t i;
	memset(text, 'a', sizeof(text));
	MUST(hw_expected_find(e, "a", 1) == HW_NIL);
	MUST(hw_expected_put(e, &(struct hw_expected_view){.id = {text, 256}}, &i) == -EINVAL);
	MUST(hw_expected_put(e, &(struct hw_expected_view){.id = {"a", 0}}, &i) == -EINVAL);
	MUST(hw_expected_put(e, &(struct hw_expected_view){.id = {"a", 1}, .text = {text, sizeof(text)}}, &i) ==
	     -EINVAL);
	MUST(hw_expected_count(e) == 0);
	MUST(hw_expected_put(e, &(struct hw_expected_view){.id = {text, 255}, .text = {text, sizeof(text) - 1}}, &i) ==
	     0);
	MUST(hw_expected_at(e, i).text.len == HW_EXPECTED_TEXT_MAX && hw_expected_at(e, i).source[0] == '\0');
	hw_expected_free(e);
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());
	Suite *suite = suite_create("expected");
	TCase *tc = tcase_create("expected");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_against_the_twin);
	tcase_add_test(tc, test_bounds);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
