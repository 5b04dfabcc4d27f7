/* SPDX-License-Identifier: MIT */
/* What history's answer says, and in which order: against a naive twin, and what makes no sense. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../simulation/sim_random.h"
#include "../suite.h"
#include "tasks/follow/past.h"

#define ENTRIES 60
#define ROUNDS  20000

static uint64_t seed_of_run(void)
{
	const char *text = getenv("HW_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	printf("HW_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/*
 * A stream whose entries are I-0. Of each it is known whether history has it; what it does not have lies before the
 * first that it keeps, or in a gap of its own, which says how many it has.
 */
struct stream {
	bool kept[ENTRIES + 1]; /* from 1 */
	unsigned first, read;   /* the first that is kept, the last that was read */
};

static struct stream stream_of(struct sim_random *random)
{
	struct stream s = {.first = 1 + (unsigned)sim_below(random, 10), .read = ENTRIES};
	bool keeps = true;
	for (unsigned i = s.first; i <= ENTRIES; i++) {
		keeps = sim_below(random, 6) ? keeps : !keeps;
		s.kept[i] = keeps || i == s.first || i == ENTRIES;
	}
	return s;
}

/* What history answers to who asks for `limit` behind `after`. */
static void answer(const struct stream *s, unsigned after, unsigned limit, struct sim_random *random, char *out,
                   size_t cap)
{
	size_t n = (size_t)snprintf(out, cap, "{\"events\":[");
	unsigned rows = 0, last = after, i;
	for (i = after + 1; i <= ENTRIES && rows < limit; i++)
		if (s->kept[i]) {
			n += (size_t)snprintf(
				out + n, cap - n,
				"%s{\"id\":\"d\\u00e4%u\",\"state\":\"online\",\"time_ms\":%u,\"reason\":\"r\",\"last_"
				"seen_ms\":%u,\"group\":\"g\",\"node\":\"n\",\"seq\":%u,\"found\":false,\"event\":\"%u-"
				"0\"}",
				rows ? "," : "", i, i, i, i, i);
			rows++;
			last = i;
		}
	bool more = false;
	for (i = last + 1; i <= ENTRIES; i++)
		more |= s->kept[i];
	n += (size_t)snprintf(out + n, cap - n, "],\"at\":\"%u-0\",\"from\":\"%u-0\",\"gaps\":[", s->read, s->first);
	/* In whatever order, also those that lie before, and what is none. */
	const char *comma = "";
	if (sim_below(random, 2)) {
		n += (size_t)snprintf(out + n, cap - n, "{\"after\":\"9-0\",\"before\":\"3-0\",\"lost\":4}");
		comma = ",";
	}
	for (i = ENTRIES; i > s->first; i--) {
		if (!s->kept[i] || s->kept[i - 1])
			continue;
		unsigned begin = i - 1;
		while (!s->kept[begin])
			begin--;
		n += (size_t)snprintf(out + n, cap - n, "%s{\"after\":\"%u-0\",\"before\":\"%u-0\",\"lost\":%u}", comma,
		                      begin, i, i - 1 - begin);
		comma = ",";
	}
	snprintf(out + n, cap - n, "]%s}", more ? ",\"next\":\"x\"" : "");
}

/* Entry by entry: each is a transition, or lies in a hole, which ends where the next is kept. */
static void check_all(const struct stream *s, unsigned after, unsigned limit, struct sim_random *random)
{
	static char body[ENTRIES * 400];
	static struct hw_past_item item;
	unsigned at = after; /* all up to it is accounted for */
	struct hw_stream_id place = {after, 0};
	for (bool more = true; more;) {
		struct hw_past_page page;
		answer(s, at, limit, random, body, sizeof(body));
		ck_assert(hw_past_read(&page, place, body, strlen(body)));
		ck_assert_uint_eq(page.read.ms, ENTRIES);
		while (hw_past_next(&page, &item)) {
			unsigned next = at + 1, end = next;
			/* Between a place that is not kept and what is, there may have been something. */
			if (s->kept[next] && (s->kept[at] || place.seq > 0)) {
				ck_assert(!item.hole);
				ck_assert_uint_eq(item.id.ms, next);
				ck_assert_int_eq(item.device.time_ms, next);
				ck_assert_uint_eq(item.device.device.len, strlen("d\u00e4") + (next > 9 ? 2 : 1));
				at = next;
				place = item.id;
				continue;
			}
			while (!s->kept[end])
				end++;
			ck_assert(item.hole);
			ck_assert_int_eq(hw_stream_id_compare(item.after, place), 0);
			ck_assert_int_eq(
				hw_stream_id_compare(hw_stream_id_next(item.id), (struct hw_stream_id){end, 0}), 0);
			ck_assert_int_eq(item.lost, s->kept[at] ? (int64_t)(end - next) : -1);
			at = end - 1;
			place = item.id;
		}
		more = page.more;
	}
	ck_assert_uint_eq(at, ENTRIES);
}

START_TEST(as_the_twin)
{
	struct sim_random random = {seed_of_run()};
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct stream s = stream_of(&random);
		check_all(&s, 1 + (unsigned)sim_below(&random, ENTRIES - 1), 1 + (unsigned)sim_below(&random, 20),
		          &random);
	}
}
END_TEST

/* Many holes ahead of many transitions cost no more than reading them: the loop does nothing else meanwhile. */
START_TEST(many_holes_are_not_read_again_for_each_transition)
{
	enum { ROWS = 2000, HOLES = 5000 };
	static char body[ROWS * 120 + HOLES * 60 + 200];
	static struct hw_past_item item;
	struct hw_past_page page;
	size_t n = (size_t)snprintf(body, sizeof(body), "{\"events\":["), rows = 0;
	for (unsigned i = 1; i <= ROWS; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n,
		                      "%s{\"id\":\"d\",\"state\":\"online\",\"event\":\"%u-0\"}", i > 1 ? "," : "", i);
	n += (size_t)snprintf(body + n, sizeof(body) - n, "],\"at\":\"9-0\",\"from\":\"1-0\",\"gaps\":[");
	for (unsigned i = 0; i < HOLES; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n,
		                      "%s{\"after\":\"%u-0\",\"before\":\"%u-5\",\"lost\":4}", i ? "," : "", ROWS + i,
		                      ROWS + i);
	snprintf(body + n, sizeof(body) - n, "],\"next\":\"x\"}");
	clock_t begun = clock();
	ck_assert(hw_past_read(&page, (struct hw_stream_id){1, 0}, body, strlen(body)));
	while (hw_past_next(&page, &item))
		rows += !item.hole;
	ck_assert_uint_eq(rows, ROWS - 1);
	ck_assert_msg(clock() - begun < CLOCKS_PER_SEC / 2, "it took %.3f s",
	              (double)(clock() - begun) / CLOCKS_PER_SEC);
}
END_TEST

/* Each beginning of an answer, and an answer with a byte that is another one: nothing is read beyond it. */
START_TEST(no_answer_is_believed_further_than_it_goes)
{
	struct sim_random random = {seed_of_run()};
	static char body[ENTRIES * 400];
	static struct hw_past_item item;
	for (unsigned round = 0; round < 2000; round++) {
		struct stream s = stream_of(&random);
		answer(&s, 1, 5, &random, body, sizeof(body));
		size_t len = strlen(body);
		if (round % 2)
			len = (size_t)sim_below(&random, (int64_t)len);
		else
			body[sim_below(&random, (unsigned)len)] = (char)sim_below(&random, 256);
		char *copy = malloc(len + 1);
		memcpy(copy, body, len);
		struct hw_past_page page;
		unsigned items = 0;
		if (hw_past_read(&page, (struct hw_stream_id){1, 0}, copy, len))
			while (hw_past_next(&page, &item))
				ck_assert_uint_lt(items++, 2 * ENTRIES);
		free(copy);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("past");
	TCase *tc = tcase_create("past");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, as_the_twin);
	tcase_add_test(tc, no_answer_is_believed_further_than_it_goes);
	tcase_add_test(tc, many_holes_are_not_read_again_for_each_transition);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
